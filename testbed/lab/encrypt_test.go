package lab_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

func encryptions() []string { return []string{result.WireGuard, result.IPsec} }

// The networks that can't be encrypted are those whose pods are on the link between the nodes, those that send packets past
// the stack that would do it, and those that do it anyway.
func TestEncryptionIsPossibleOnEachKernel(t *testing.T) {
	require.Namespaces(t)
	onLink := []string{"bridge", "macvlan", "ipvlan-l2", "ipvlan-l3", "sriov"}
	own := []string{"wireguard", "ipsec"}
	past := []string{"ebpf-routed", "xdp"}
	driver := lab.NewDriver(network.Catalogue())
	for _, encryption := range encryptions() {
		for _, n := range network.Catalogue() {
			err := driver.Supports(t.Context(), testbed.Spec{Network: n.Name, Conditions: result.Conditions{Encryption: encryption}})
			var impossible *network.NotPossibleError
			excluded := errors.As(err, &impossible)
			if want := slices.Contains(onLink, n.Name) || slices.Contains(own, n.Name) || slices.Contains(past, n.Name); n.Crossing != network.CrossUnstated && excluded != want {
				t.Errorf("%s with %s: %v", n.Name, encryption, err)
			}
		}
	}
}

// What pods send to another node is readable in the pods, and nowhere on the link between the nodes. Versions of IP take turns, so that
// each meets every network and every encryption.
func TestNothingIsReadableOnEachKernel(t *testing.T) {
	t.Parallel()
	require.Namespaces(t)
	driver := shared()
	for i, n := range network.Catalogue() {
		for j, encryption := range encryptions() {
			family := families()[(i+j)%2]
			spec := testbed.Spec{
				Nodes: 2, PodsPerNode: 1, Network: n.Name, Family: family, Conditions: result.Conditions{Encryption: encryption},
			}
			if n.Encryption == encryption {
				spec.Conditions = result.Conditions{}
			}
			t.Run(n.Name+"/"+string(family)+"/"+encryption, func(t *testing.T) {
				t.Parallel()
				readsNothing(t, driver, spec)
			})
		}
	}
}

func readsNothing(t *testing.T, driver testbed.Provider, spec testbed.Spec) {
	err := driver.Supports(t.Context(), spec)
	var impossible *network.NotPossibleError
	if errors.As(err, &impossible) {
		return
	}
	var unsupported *testbed.UnsupportedError
	if errors.As(err, &unsupported) {
		require.Need(t, unsupported.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	tb, err := driver.Open(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	o := tb.Instruments().Observer
	pods := tb.Pods()
	client, server := testbedtest.StartPeer(t, pods[0]), testbedtest.StartPeer(t, pods[1])
	port, _ := pods[1].Ports()
	if err := server.Serve("udp", port); err != nil {
		t.Fatal(err)
	}
	tap, err := o.Tap(t.Context(), append(everywhere(o), network.InSwitch()))
	if err != nil {
		t.Fatal(err)
	}
	defer tap.Close()
	const count = 20
	if _, err := client.Exchange("udp", o.Endpoint(pods[0], pods[1], port), 1000, count); err != nil {
		t.Fatal(err)
	}
	way := o.Path(pods[0], pods[1], network.UDP)
	// Pods that share their node's namespace have no device on which IPsec has not encrypted yet, or has decrypted.
	r := readings{kind: o.Plan().Encryption.Kind, way: way, hidden: way[0].Encrypted}
	require.NoError(t, require.Await(20*time.Second, fmt.Sprintf("the packets of %d exchanges are seen", count), func() error {
		seen, _, err := tap.Packets()
		require.NoError(t, err)
		for _, p := range seen {
			r.look(t, p)
		}
		if r.wants(2 * count) {
			return fmt.Errorf("%d were seen where they can be read, %d on the switch", r.readable, r.onSwitch)
		}
		return nil
	}))
}

// readings are what was seen of encrypted exchanges.
type readings struct {
	kind               string
	way                []network.Hop
	hidden             bool // can be read nowhere
	readable, onSwitch int
}

// wants tells whether too little was seen yet to say anything.
func (r *readings) wants(packets int) bool {
	return r.onSwitch < packets || r.readable == 0 && !r.hidden
}

// look counts a packet, and fails the test if it could be read where it may not.
func (r *readings) look(t *testing.T, p testbed.Packet) {
	t.Helper()
	encrypted := slices.ContainsFunc(r.way, func(h network.Hop) bool { return h.Device == p.Device && h.Encrypted })
	// IPsec shows what it has decrypted to the device that it came by once more.
	encrypted = encrypted && (p.Outgoing || r.kind == result.WireGuard)
	if p.Device.In.Kind == network.SwitchSpace {
		r.onSwitch++
		encrypted = true
	}
	switch readable := showsPayload(p.Head); {
	case readable && encrypted:
		t.Errorf("%s has a packet that can be read: %x", p.Device, p.Head)
	case readable:
		r.readable++
	}
}

// showsPayload looks for what the peers send and answer: bytes that rise or fall by 7 each, in a row that is too long for
// anything encrypted to have it by chance.
func showsPayload(head []byte) bool {
	const step, row = 7, 16
	rising, falling := 0, 0
	for i := 1; i < len(head); i++ {
		switch head[i] - head[i-1] {
		case step:
			rising, falling = rising+1, 0
		case 256 - step:
			rising, falling = 0, falling+1
		default:
			rising, falling = 0, 0
		}
		if max(rising, falling) >= row {
			return true
		}
	}
	return false
}
