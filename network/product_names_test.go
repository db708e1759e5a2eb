package network

import (
	"slices"
	"testing"
)

// A product's name finds the network that stands in for it, called as the product; a list without that network lacks the product, too.
func TestProductsKeepTheirNames(t *testing.T) {
	for _, p := range Products() {
		n, err := Find(Catalogue(), p.Name)
		if err != nil || n.Name != p.Name || !slices.Equal(n.UsedBy, []string{p.Network}) || Mechanism(p.Name) != p.Network {
			t.Errorf("%s: %q used by %q, %v", p.Name, n.Name, n.UsedBy, err)
			continue
		}
		topology, err := NewTopology(Layout{Nodes: 2, PodsPerNode: 1, MTU: 1500})
		if err != nil {
			t.Fatal(err)
		}
		if plan, err := n.Plan(topology); err != nil || plan.Network != p.Name {
			t.Errorf("%s: the plan is of %q, %v", p.Name, plan.Network, err)
		}
	}
	if _, err := Find([]Network{host()}, "flannel"); err == nil {
		t.Error("flannel was found without the network that stands in for it")
	}
	if Mechanism("bridge") != "bridge" || IsDemonstration("flannel-udp") || !IsDemonstration("udp-tun") {
		t.Error("a mechanism is its own; what the user named is no demonstration")
	}
}
