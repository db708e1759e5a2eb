package cli

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/study"
	"netdelta/testbed"
)

// A product keeps its name, and is said to have a stand-in; a study's own name for a change of the cluster is no product.
func TestStandIn(t *testing.T) {
	o := study.Overrides{Networks: []string{"host", "calico-vxlan", "flannel", "cilium", "bridge"}, Baseline: "docker"}
	notes, err := standIn(&o, &study.Study{}, kind{name: labTestbed})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"host", "calico-vxlan", "flannel", "cilium", "bridge"}, o.Networks); diff != "" || o.Baseline != "docker" {
		t.Errorf("networks (-want +got):\n%s\nbaseline %s", diff, o.Baseline)
	}
	if len(notes) != 4 || !slices.Contains(notes, "calico-vxlan: measured as vxlan-routed, a stand-in for its datapath") {
		t.Errorf("notes %q", notes)
	}
	own := clusterNetworks()
	cluster := kind{name: kubeTestbed, networks: &own}
	changing := study.Study{Changes: []testbed.Change{{Network: "calico-vxlan"}}}
	o = study.Overrides{Networks: []string{"calico-vxlan"}}
	if notes, err := standIn(&o, &changing, cluster); err != nil || len(notes) != 0 || o.Networks[0] != "calico-vxlan" {
		t.Errorf("a change of the cluster: %v, %q, %q", err, notes, o.Networks)
	}
}
