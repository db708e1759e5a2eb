package cli

import (
	"io"
	"slices"
	"testing"

	"netdelta/network"
	"netdelta/testbed/lab"
)

// What users of a product could change to is measured with it; without a name, what users of all products have.
func TestWorthHere(t *testing.T) {
	env := &environment{err: io.Discard, lab: lab.NewDriver(network.Catalogue())}
	naming := func(networks ...string) (o runOptions) {
		o.overrides.Networks = networks
		return o
	}
	mine, err := worthHere(t.Context(), env, naming("flannel", "bridge"))
	if err != nil {
		t.Fatal(err)
	}
	if len(mine) < 2 || mine[0] != "host" || !slices.Contains(mine, "bridge") || !slices.Contains(mine, "vxlan-routed") || slices.Contains(mine, "ebpf-vxlan") {
		t.Errorf("for flannel and bridge: %q", mine)
	}
	all, err := worthHere(t.Context(), env, naming())
	if err != nil || !slices.Contains(all, "host") || slices.Contains(all, "xdp") {
		t.Errorf("for all: %q, %v", all, err)
	}
	if _, err := worthHere(t.Context(), env, naming("flanel")); !isUsage(err) {
		t.Errorf("a network that there is not: %v", err)
	}
}
