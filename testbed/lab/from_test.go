package lab_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/network/networktest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// Virtual addresses lead there too: they are resolved where the client is.
func TestServiceFromNode(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	driver := shared()
	for _, service := range services() {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"host", "bridge", "routed", "vxlan-routed"} {
				n, err := network.Find(network.Catalogue(), name)
				if err != nil {
					t.Fatal(err)
				}
				networktest.RunUnder(t, driver, n, result.Conditions{From: result.FromNode, Service: service}.Plain())
			}
		})
	}
}

// What can't be had says why, by the network's name.
func TestFromNodeIsRefusedByName(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	from := result.Conditions{From: result.FromNode}
	for want, spec := range map[string]testbed.Spec{
		"network vxlan is not possible with from=node: its nodes have no way of their own to pods": {Network: "vxlan", Conditions: from},
		"network routed is not possible with from=node: networks are swapped beneath pods, and a node's namespace goes with its network": {
			Network: "routed", Conditions: from, PodsOutlive: true,
		},
	} {
		if err := driver.Supports(t.Context(), spec); err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
