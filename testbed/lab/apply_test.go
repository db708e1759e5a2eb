package lab

import (
	"net/netip"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab/datapath"
)

// unknownOp is an operation that the lab does not have.
type unknownOp struct{ network.Op }

// String renders the step.
func (unknownOp) String() string { return "unknown" }

// Kinds that the lab does not know are errors, and are not taken for another kind.
func TestWrongKindsAreErrors(t *testing.T) {
	require.Namespaces(t)
	s, err := newSpace("node0", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	in := network.InNode(0)
	b := newBuilder(map[network.Space]*space{in: s})
	if err := b.apply(t.Context(), trials(in)[network.NeedVeth]); err != nil {
		t.Fatal(err)
	}
	a, over := network.Device{In: in, Name: "a"}, network.Device{In: in, Name: "over"}
	for want, op := range map[string]network.Op{
		"layer 4: need 2 or 3":         network.IPVlan{Device: over, Parent: a, Layer: 4, MTU: 1500},
		"layer 0: need 2 or 3":         network.Netkit{Primary: network.End{Device: over}, Peer: network.End{Device: network.Device{In: in, Name: "peer"}}, MTU: 1500},
		`kind of tunnel "sit"`:         network.Tunnel{Device: over, Kind: "sit", Local: netip.MustParseAddr("198.18.0.1"), Under: a, MTU: 1500},
		`bond mode "lacp" is unknown`:  network.Bond{Device: over, Mode: "lacp", MTU: 1500},
		`a switch to "auto": need on `: network.Features{In: in, GRO: "auto"},
		`a switch to "half": need on`:  network.Steer{In: in, To: "half"},
		`unknown hook "ingress"`:       network.Rules{In: in, Table: "t", Chains: []network.Chain{{Name: "c", Hook: "ingress"}}},
		"unknown verdict 9":            network.Rules{In: in, Table: "t", Chains: []network.Chain{{Name: "c", Hook: network.Input, Rules: []network.Rule{{Do: 9}}}}},
		"can't carry out lab.unknown":  unknownOp{},
	} {
		if err := b.apply(t.Context(), []network.Op{op}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %s", op, err, want)
		}
	}
}

// A setting that is so already is not written: the kernel would refuse to have this one changed.
func TestSettingsThatAreSoStay(t *testing.T) {
	const name = "net.ipv4.tcp_available_congestion_control"
	now, err := testbed.ReadSettings([]string{name})
	if err != nil || now[name] == "" {
		t.Fatalf("%s is %q: %v", name, now[name], err)
	}
	s := &space{}
	if err := s.write(network.Sysctl{Name: name, Value: now[name]}); err != nil {
		t.Error(err)
	}
	if err := s.write(network.Sysctl{Name: name, Value: "none"}); err == nil {
		t.Errorf("%s was changed", name)
	}
}

// A guard lets in or drops; it does nothing else.
func TestGuardVerdicts(t *testing.T) {
	guard := network.Guard{Entries: []network.GuardEntry{{Do: network.Masquerade}}}
	if _, err := datapath.Guard(guard, nil); err == nil || !strings.Contains(err.Error(), "verdict 2") {
		t.Errorf("a guard that masquerades: got error %v", err)
	}
}

// Each need has words and is tried; one that nothing tries is not taken for met.
func TestEachNeedIsTried(t *testing.T) {
	tried := trials(network.InNode(0))
	for need := range tried {
		if need.Requirement().What == "" {
			t.Errorf("need %d has no words", need)
		}
	}
	last := network.Need(len(tried))
	if last.Requirement().What != "" {
		t.Errorf("nothing tries %s", last)
	}
	if err := try(last); err == nil || !strings.Contains(err.Error(), "nothing tries") {
		t.Errorf("a need that is unknown: got error %v", err)
	}
}
