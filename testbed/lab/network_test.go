package lab_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/network/networktest"
	"netdelta/result"
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

// Nothing but the measured traffic moves: idle networks carry not a single packet. Under IPv6 this holds once the multicast
// listener reports of their addresses have been sent.
func TestQuiet(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	before := map[testbed.Observer]map[network.Device]testbed.Counters{}
	for _, family := range []result.Family{result.IPv4, result.IPv6} {
		for _, n := range network.Catalogue() {
			tb, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 2, Family: family, Network: n.Name, PodsOutlive: true})
			if errors.Is(err, testbed.ErrUnsupported) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			defer tb.Close()
			before[tb.Instruments().Observer] = nil
		}
	}
	counters := func(tb testbed.Observer) map[network.Device]testbed.Counters {
		now, err := tb.Counters(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	// The reports are over when none has come for longer than the kernel waits between two.
	for deadline, still := time.Now().Add(time.Minute), false; !still && time.Now().Before(deadline); {
		time.Sleep(reported)
		still = true
		for tb, was := range before {
			before[tb] = counters(tb)
			still = still && maps.Equal(was, before[tb])
		}
	}
	time.Sleep(3 * time.Second)
	for tb, was := range before {
		for device, c := range counters(tb) {
			if tb.Spec().Family == result.IPv4 {
				was[device] = testbed.Counters{Index: c.Index} // quiet from the beginning
			}
			if c != was[device] {
				t.Errorf("network %s, %s, unused: %s has counted %+v, %+v before", tb.Plan().Network, tb.Spec().Family, device, c, was[device])
			}
		}
	}
}

// reported is longer than the kernel waits between two reports of an IPv6 address's groups.
const reported = 1100 * time.Millisecond
