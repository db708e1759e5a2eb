package joined_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
)

// known are machines that are not asked, with the names and addresses by which others know them.
func known(hosts ...[]string) *joined.Driver {
	var nodes []joined.Node
	for _, h := range hosts {
		nodes = append(nodes, joined.Node{Hosts: h})
	}
	return joined.NewDriver("machines", append(network.Found(), network.Catalogue()...), nodes)
}

// TestLocate: an endpoint stands on the machine that has its name or address; what each machine has for itself is no endpoint.
func TestLocate(t *testing.T) {
	d := known([]string{"root@a", "a", "10.0.0.1"}, []string{"root@b", "b", "10.0.0.2"})
	for host, on := range map[string]string{"a": "root@a", "B": "root@b", "10.0.0.2": "root@b", "10.0.0.3": "", "elsewhere": ""} {
		site, err := d.Locate(t.Context(), host)
		if err != nil || strings.Join(site.Nodes, "") != on || (site.NoSameNode == "") != (on != "") || (site.MaybeSameNode == "") != (on != "") {
			t.Errorf("%s is on %+v: %v, want it on %q", host, site, err, on)
		}
	}
	for _, host := range []string{"localhost", "127.0.1.1", "::1"} {
		if _, err := d.Locate(t.Context(), host); err == nil {
			t.Errorf("%s is taken for an endpoint", host)
		}
	}
	if site, err := known([]string{"a"}).Locate(t.Context(), "a"); err != nil || site.MaybeSameNode == "" {
		t.Errorf("the only machine is %+v: %v", site, err)
	}
}

// TestTargetNetworks: a network whose pods reach no target is refused, with what would do.
func TestTargetNetworks(t *testing.T) {
	alone := known([]string{"a"})
	alone.ShareLink(joined.Shared{First: 16, Addresses: [][]netip.Prefix{{netip.MustParsePrefix("10.0.0.200/24")}}})
	d, given := known([]string{"a"}, []string{"b"}), known([]string{"a"}, []string{"b"})
	given.ShareLink(joined.Shared{First: 16, Addresses: [][]netip.Prefix{{netip.MustParsePrefix("10.0.0.200/24"), netip.MustParsePrefix("10.0.0.201/24")}}})
	for says, c := range map[string]struct {
		driver *joined.Driver
		spec   testbed.Spec
	}{
		"measure networks metal and host":  {given, testbed.Spec{Network: "vxlan", Target: "10.0.0.7"}},
		"--nic macvlan:CARD":               {d, testbed.Spec{Network: "host", Target: "10.0.0.7"}},
		"or measure network metal":         {alone, testbed.Spec{Network: "host", Target: "10.0.0.7"}},
		"in the subnet":                    {given, testbed.Spec{Network: "host", Target: "10.1.0.7"}},
		"name it by its address there":     {given, testbed.Spec{Network: "host", Target: "web"}},
		"measure it without --blocks":      {given, testbed.Spec{Network: network.Metal, Target: "web", PodsOutlive: true}},
		"leave the conditions out":         {given, testbed.Spec{Network: "host", Target: "10.0.0.7", Conditions: result.Conditions{Policy: result.PolicyNFTables, PolicyRules: 10}}},
		"needs 4 machines, one for each":   {d, testbed.Spec{Network: "routed", PodsOutlive: true, Peers: testbed.Peers{Count: 3}}},
		"needs 3 machines, one for each":   {d, testbed.Spec{Network: "routed", PodsOutlive: true, Peers: testbed.Peers{Count: 1, Clients: 2}}},
		"with 2 servers on 2 machines":     {d, testbed.Spec{Network: "vxlan", PodsOutlive: true, Peers: testbed.Peers{Count: 2}}},
		"the machines' own cards are not ": {d, testbed.Spec{Network: network.Metal, Target: "web"}},
	} {
		err := c.driver.Supports(t.Context(), c.spec)
		_, impossible := errors.AsType[*network.NotPossibleError](err)
		if err == nil || !errors.Is(err, testbed.ErrUnsupported) && !impossible || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want that it says %q", c.spec, err, says)
		}
	}
}

// TestCallerGone: a process of a caller that is gone may put in order what it has to, as an agent does that holds an endpoint.
func TestCallerGone(t *testing.T) {
	require.Namespaces(t)
	here, there := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- joined.Serve(context.WithoutCancel(t.Context()), there, network.Catalogue()) }()
	m, err := joined.Connect(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	d := joined.NewDriver("one", network.Catalogue(), []joined.Node{{Machine: m}})
	bed, err := d.Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: "bridge"})
	note := filepath.Join(t.TempDir(), "note")
	if err == nil {
		_, err = bed.Pods()[0].Start(t.Context(), testbed.Command{Path: "/bin/sh", Args: []string{"-c", "cat; sleep 0.2; echo over >" + note}})
	}
	if err != nil {
		t.Error(err)
	}
	_ = m.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if said, err := os.ReadFile(note); err != nil || string(said) != "over\n" {
		t.Errorf("the process left %q: %v", said, err)
	}
}
