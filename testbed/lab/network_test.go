package lab_test

import (
	"errors"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/network/networktest"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

func TestNetworks(t *testing.T) {
	require.Namespaces(t)
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		t.Fatal(err)
	}
	networks = append(networks, network.Filtered(routed, 10))
	driver := lab.NewDriver(networks)
	for _, n := range networks {
		networktest.Run(t, driver, n)
	}
}

// Nothing but the measured traffic moves: with nobody using them, networks carry not a single packet.
func TestQuiet(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	var up []testbed.Observer
	for _, n := range network.Catalogue() {
		tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: n.Name, PodsOutlive: true})
		if errors.Is(err, testbed.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer tb.Close()
		up = append(up, tb.(testbed.Observer))
	}
	time.Sleep(3 * time.Second)
	for _, tb := range up {
		counters, err := tb.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for device, c := range counters {
			if c != (testbed.Counters{}) {
				t.Errorf("network %s, unused: %s has counted %+v", tb.Plan().Network, device, c)
			}
		}
	}
}
