package survey

import (
	"slices"
	"strings"
	"testing"

	"netdelta/testbed"
)

// What other products make is named by node, and what the cluster's own make is not.
func TestForeign(t *testing.T) {
	standing := map[string][]string{
		"w1": {"chains FLANNEL-POSTRTG of table nat", "chains KUBE-SVC of table nat", "chains cali-tw of table filter", "device eth0 with MTU 1500", "table kube-proxy"},
		"w2": {"device flannel.1 with MTU 1450"},
	}
	for _, c := range []struct {
		network  Network
		services string
		want     []string
	}{
		{Network{Plugin: "flannel", Policies: "none"}, "nftables", []string{
			"node w1 has what calico makes, and the cluster has flannel: chains cali-tw of table filter",
			"node w1 has what kube-proxy with iptables makes, and the cluster has services by nftables: chains KUBE-SVC of table nat",
		}},
		{Network{Plugin: "flannel", Policies: "calico", Others: []string{"calico"}}, "iptables", []string{
			"node w1 has what kube-proxy with nftables makes, and the cluster has services by iptables: table kube-proxy",
		}},
		{Network{Plugin: "calico"}, "", []string{
			"node w1 has what flannel makes, and the cluster has calico: chains FLANNEL-POSTRTG of table nat",
			"node w2 has what flannel makes, and the cluster has calico: device flannel.1 with MTU 1450",
		}},
		{Network{}, "", nil},
	} {
		if got := (Survey{Network: c.network, Services: Services{Mode: c.services}}).Foreign(standing); !slices.Equal(got, c.want) {
			t.Errorf("%+v, services by %q: %q, want %q", c.network, c.services, got, c.want)
		}
	}
}

// The doctor warns of devices that other products have left.
func TestJudgeForeign(t *testing.T) {
	s := Survey{Network: Network{Plugin: "flannel"}, Devices: true, Nodes: []Node{{Name: "w1", Devices: []testbed.Interface{{Name: "vxlan.calico", Kind: "vxlan"}, {Name: "flannel.1", Kind: "vxlan"}}}}}
	found := Judge(s)
	at := slices.IndexFunc(found, func(f Finding) bool { return f.Topic == "leftovers" })
	if at < 0 || found[at].Severity != Warning || !strings.Contains(found[at].Says, "vxlan.calico") || strings.Contains(found[at].Says, "flannel.1") {
		t.Errorf("found %+v", found)
	}
}
