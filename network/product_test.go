package network_test

import (
	"slices"
	"testing"

	"netdelta/network"
)

// Names of products are not names of networks, each stands for a network that there is, and moves stay within a system.
func TestProducts(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range network.Products() {
		n, err := network.Find(network.Catalogue(), p.Network)
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if seen[p.Name] || p.Name == n.Name {
			t.Errorf("%s has two meanings", p.Name)
		}
		seen[p.Name] = true
		if p.System == "" || len(n.UsedBy) == 0 {
			t.Errorf("%s: no system uses it", p.Name)
		}
	}
	for _, m := range network.Moves() {
		if m.From.System == "" || m.From.System != m.To.System || m.From.Network == m.To.Network {
			t.Errorf("from %q to %q is no change within a system", m.From.Name, m.To.Name)
		}
	}
	if p, found := network.FindProduct("Calico-VXLAN"); !found || p.Network != "vxlan-routed" {
		t.Errorf("Calico-VXLAN is %+v, %v", p, found)
	}
	for _, own := range [][3]string{{"flannel", "vxlan", "flannel"}, {"calico", "none", "calico-native"}, {"cilium", "none", "cilium-native"}, {"cilium", "vxlan", "cilium"}} {
		if p, found := network.ProductOf(own[0], own[1]); !found || p.Name != own[2] {
			t.Errorf("%s in %s is %+v, %v", own[0], own[1], p, found)
		}
	}
	if p, found := network.ProductOf("bridge", "none"); found {
		t.Errorf("a bridge of no product is %+v", p)
	}
	if slices.ContainsFunc(network.Catalogue(), func(n network.Network) bool { _, found := network.FindProduct(n.Name); return found }) {
		t.Error("a network's name is a product's as well")
	}
}
