package cli

import (
	"path/filepath"
	"testing"
)

// A lab's keeper runs in another folder: the path of a list of plugins has to hold there too, for lab up and lab swap.
func TestFindNetworkOfListInThisFolder(t *testing.T) {
	n, err := findNetwork("cni:../docs/cni/bridge.conflist")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := filepath.Abs("../docs/cni/bridge.conflist")
	if err != nil {
		t.Fatal(err)
	}
	if want := "cni:" + whole; n.Name != want {
		t.Errorf("got %s, want %s", n.Name, want)
	}
	spec, err := labOptions{nodes: 2, pods: 2, mtu: "1500", family: "ipv4"}.spec("cni:../docs/cni/bridge.conflist")
	if err != nil || spec.Network != n.Name {
		t.Errorf("the keeper is told of %s, %v", spec.Network, err)
	}
	if n, err := findNetwork("vxlan"); err != nil || n.Name != "vxlan" {
		t.Errorf("got %s, %v", n.Name, err)
	}
}
