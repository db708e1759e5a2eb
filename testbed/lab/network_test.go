package lab_test

import (
	"errors"
	"fmt"
	"strings"
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
// listener reports of their addresses have been sent and answered for.
func TestQuiet(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	driver := shared()
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
	for deadline := time.Now().Add(time.Minute); ; {
		time.Sleep(settled)
		var moved []string
		for tb, was := range before {
			now, err := tb.Counters(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for device, c := range now {
				if tb.Spec().Family == result.IPv4 && c != (testbed.Counters{Index: c.Index}) {
					t.Errorf("network %s, unused: %s has counted %+v", tb.Plan().Network, device, c)
				}
				if c != was[device] {
					moved = append(moved, fmt.Sprintf("network %s, %s, unused: %s has counted %+v, %+v before", tb.Plan().Network, tb.Spec().Family, device, c, was[device]))
				}
			}
			before[tb] = now
		}
		if len(moved) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(strings.Join(moved, "\n"))
		}
	}
}

// settled is longer than the kernel takes for the reports of an IPv6 address's groups, and to ask a neighbour that they were sent to
// whether it is still there (five seconds).
const settled = 6 * time.Second
