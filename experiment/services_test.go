package experiment_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
	"netdelta/workload/catalogue"
)

// Cells under policies and services are measured and their paths proved, also where datagrams are cut up on the way and put
// together again to be looked at.
func TestServicesAndPolicies(t *testing.T) {
	t.Parallel()
	s := small([]string{"host", "vxlan"})
	s.Workloads = []study.Workload{
		{Name: "udp-rr", Levels: study.Levels{"message": {unit.Bytes(64), unit.Bytes(3000)}}}, {Name: "tcp-crr", Levels: study.Levels{"message": {unit.Bytes(64)}}},
	}
	s.Factors = study.Levels{"family": {string(result.IPv4), string(result.IPv6)},
		"policy": {result.PolicyNFTables}, "policy.rules": {100},
		"service": {result.ServicePod, result.ServiceNFTables, result.ServiceIPVS}, "service.count": {100}}
	s.Design.Rounds = 1                    // paths are proved before the first, and audited over all
	s.Design.TimeBudget = 10 * time.Minute // an emulated machine takes some of them
	c := setUp(t, s, 1, nil)
	run := mustRun(t, c)
	trials := journal(t, c)
	want := 0
	for _, c := range run.Cells {
		if c.Unsupported == "" {
			want++
		} else if c.Params.Conditions.Service != result.ServiceIPVS {
			t.Errorf("%s: %s", c.ID, c.Unsupported)
		}
	}
	if len(trials) != want {
		t.Errorf("%d trials, want %d", len(trials), want)
	}
	for _, tr := range trials {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		if tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: path %+v", tr.ID(), tr.Path)
		}
	}
}

// What a network can't be had under anywhere is refused by name, with what is held against it, and the rest goes on.
func TestImpossibleCondition(t *testing.T) {
	require.Namespaces(t)
	s := small([]string{"host", "routed"}, result.CrossNode)
	s.Factors = study.Levels{"service": {result.ServicePod, result.ServiceEBPF}}
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), catalogue.Workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		refused := c.Unsupported != ""
		if refused != (c.Params.Conditions.Service == result.ServiceEBPF) {
			t.Errorf("%s: %q", c.ID, c.Unsupported)
		}
		if refused && c.Network == "host" && !strings.Contains(c.Unsupported, "service=ebpf") {
			t.Errorf("%s: %q", c.ID, c.Unsupported)
		}
	}
}

// willing is a driver that supports everything.
type willing struct{ testbed.Provider }

func (willing) Capabilities() testbed.Capabilities {
	return lab.NewDriver(network.Catalogue()).Capabilities()
}

func (willing) Supports(context.Context, testbed.Spec) error { return nil }

// Datagrams that IPVS would refuse are refused before they are measured: under IPv6, what is larger than the path's MTU.
func TestIPVSCutsNothing(t *testing.T) {
	s := small([]string{"host", "vxlan"})
	s.Workloads = []study.Workload{{Name: "udp-rr", Levels: study.Levels{"message": {unit.Bytes(1300), unit.Bytes(1450), unit.Bytes(3000)}}}, {Name: "tcp-rr"}}
	s.Factors = study.Levels{"family": {"ipv4", "ipv6"}, "service": {result.ServiceIPVS}}
	p, err := experiment.Prepare(t.Context(), s, willing{}, catalogue.Workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		// Over VXLAN pods have an MTU of 1430 bytes; on one node host's packets pass lo, which takes all.
		large := c.Params.Message == 3000 || c.Params.Message == 1450 && c.Network == "vxlan"
		onLo := c.Network == "host" && c.Placement == result.SameNode
		want := c.Workload == "udp-rr" && c.Params.Family == result.IPv6 && large && !onLo
		if refused := strings.Contains(c.Unsupported, "IPVS refuses"); refused != want {
			t.Errorf("%s: refused %v: %q", c.ID, refused, c.Unsupported)
		}
	}
}
