package nsmonitor

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/require"
)

// Packets that the other end of a way takes are told from larger ones, over both versions of IP, also where the first device takes more.
func TestLargestPacket(t *testing.T) {
	require.Namespaces(t)
	near, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = near.Close() }()
	far, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = far.Close() }()
	err = far.WithFD(func(fd int) error {
		return near.Do(func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "way", MTU: 2000}, PeerName: "way", PeerNamespace: netlink.NsFd(fd), PeerMTU: 2000})
		})
	})
	for ns, addresses := range map[*netns.Namespace][]string{near: {"10.5.0.1/24", "fd05::1/64"}, far: {"10.5.0.2/24", "fd05::2/64"}} {
		err = errors.Join(err, ns.Do(func() error { return raise(addresses) }))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(near.Do(up), far.Do(up)); err != nil {
		t.Fatal(err)
	}
	const device, narrow, tag = 2000, 1400, 4 // of a VLAN, for which there may be room
	look := func(to string, least, most int) {
		t.Helper()
		err := near.Do(func() error {
			way, first, err := LargestPacket(netip.MustParseAddr(to))
			if way < least || way > most || first != device {
				t.Errorf("to %s packets of %d bytes pass, want %d to %d; the device has an MTU of %d", to, way, least, most, first)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	look("10.5.0.2", device, device)
	look("fd05::2", device, device)
	if err := far.Do(func() error {
		link, err := netlink.LinkByName("way")
		return errors.Join(err, netlink.LinkSetMTU(link, narrow))
	}); err != nil {
		t.Fatal(err)
	}
	look("fd05::2", narrow, narrow+tag)
}

// raise gives the device of the calling thread's namespace addresses that it has at once.
func raise(addresses []string) error {
	link, err := netlink.LinkByName("way")
	if err != nil {
		return err
	}
	for _, text := range addresses {
		a, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		a.Flags = unix.IFA_F_NODAD
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// up waits until the device of the calling thread's namespace carries packets.
func up() error {
	return require.Await(20*time.Second, "the way comes up", func() error {
		link, err := netlink.LinkByName("way")
		if err == nil && link.Attrs().OperState != netlink.OperUp {
			err = fmt.Errorf("it is %v", link.Attrs().OperState)
		}
		return err
	})
}
