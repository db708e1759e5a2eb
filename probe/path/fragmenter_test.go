package path_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
	"netdelta/unit"
)

func families() []result.Family { return []result.Family{result.IPv4, result.IPv6} }

// inside holds the namespace of a pod.
func inside(t testing.TB, p testbed.Pod) *netns.Namespace {
	t.Helper()
	ns, err := netns.Of(testbedtest.StartPeer(t, p).PID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// fragmenter sends datagrams from the first pod to the third and back that their senders may cut into fragments.
type fragmenter struct {
	o              testbed.Observer
	from, to       testbed.Pod
	at             netip.AddrPort
	client, server *net.UDPConn
}

func newFragmenter(t *testing.T, o testbed.Observer) *fragmenter {
	t.Helper()
	f := &fragmenter{o: o, from: o.Pods()[0], to: o.Pods()[2]}
	port, _ := f.to.Ports()
	f.at = o.Endpoint(f.from, f.to, port)
	err := inside(t, f.to).Do(func() (err error) {
		f.server, err = net.ListenUDP("udp", &net.UDPAddr{Port: int(port)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.server.Close() })
	err = inside(t, f.from).Do(func() (err error) {
		f.client, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(f.at))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.client.Close() })
	for _, c := range []*net.UDPConn{f.client, f.server} {
		if f.at.Addr().Is4() {
			allowFragments(t, c)
		}
	}
	return f
}

// allowFragments lets everybody on the way cut datagrams up, which IPv4 does only where asked.
func allowFragments(t *testing.T, c *net.UDPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var inner error
	err = raw.Control(func(fd uintptr) {
		inner = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT)
	})
	if err := errors.Join(err, inner); err != nil {
		t.Fatal(err)
	}
}

// exchange sends datagrams there and back, one after another.
func (f *fragmenter) exchange(size, count int) error {
	soon := time.Now().Add(5 * time.Second)
	if err := errors.Join(f.client.SetDeadline(soon), f.server.SetDeadline(soon)); err != nil {
		return err
	}
	buffer := make([]byte, 1<<16)
	for range count {
		if _, err := f.client.Write(buffer[:size]); err != nil {
			return err
		}
		n, back, err := f.server.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return err
		}
		if _, err := f.server.WriteToUDPAddrPort(buffer[:n], back); err != nil {
			return err
		}
		if n, err := f.client.Read(buffer); err != nil || n != size {
			return fmt.Errorf("%d bytes came back: %w", n, err)
		}
	}
	return nil
}

func (f *fragmenter) proof(t *testing.T, size, count int) result.Path {
	t.Helper()
	if err := f.exchange(size, 1); err != nil {
		t.Fatal(err)
	}
	moved := unit.Bytes(size * count)
	p, err := path.NewPlannedProver(f.o).Prove(t.Context(), f.from, f.to, network.UDP, func(context.Context) (path.Load, error) {
		l := path.Load{Protocol: network.UDP, Server: f.at, Requests: moved, Responses: moved, Message: unit.Bytes(size)}
		return l, f.exchange(size, count)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
