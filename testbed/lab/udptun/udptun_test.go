package udptun

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) {
	if Asked() {
		os.Exit(Become())
	}
	os.Exit(leak.Main(m))
}

// packet is the beginning of an IP packet to an address.
func packet(to string) []byte {
	a := netip.MustParseAddr(to)
	if a.Is4() {
		b := make([]byte, 40)
		b[0] = 0x45
		copy(b[16:], a.AsSlice())
		return b
	}
	b := make([]byte, 60)
	b[0] = 0x60
	copy(b[24:], a.AsSlice())
	return b
}

func TestFind(t *testing.T) {
	ranges := []string{"198.19.0.0/24", "198.19.0.0/16", "2001:2:0:100::/64", "2001:2:0:100::/56", "0.0.0.0/0"}
	var all [5]target
	for i, r := range ranges {
		all[i] = newTarget(Peer{Pods: netip.MustParsePrefix(r), Node: netip.MustParseAddrPort("198.18.0.1:8285")})
	}
	c := &carrier{targets: unsafe.Pointer(&all), count: uintptr(len(all))}
	for _, one := range []struct {
		to   string
		want int // index into ranges, -1 for none
	}{
		{"198.19.0.10", 0}, {"198.19.0.255", 0}, {"198.19.1.0", 1}, {"198.18.0.1", 4}, {"255.255.255.255", 4},
		{"2001:2:0:100::10", 2}, {"2001:2:0:101::10", 3}, {"2001:2:0:1ff:ffff::", 3}, {"2001:2:0:200::", -1}, {"::", -1},
	} {
		b := packet(one.to)
		got := c.find(unsafe.Pointer(&b[0]), uintptr(len(b)))
		if one.want < 0 && got != nil || one.want >= 0 && got != &all[one.want] {
			t.Errorf("%s: got %v, want number %d", one.to, got, one.want)
		}
	}
	for _, bad := range [][]byte{make([]byte, 40), {0x45, 0, 0}, append([]byte{0x60}, make([]byte, 38)...)} {
		if c.find(unsafe.Pointer(&bad[0]), uintptr(len(bad))) != nil {
			t.Errorf("% x: taken for a packet", bad)
		}
	}
}

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "{}", `{"mtu": 70000}`, `{"mtu": 1500, "peers": [{}]}`, `{"mtu": 1500, "peers": [{"pods": "x"}]}`} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%q: taken for a tunnel's configuration", bad)
		}
	}
}

// TestCarries runs a tunnel between a pair of packet sockets, which stand for the TUN device, and two UDP sockets.
func TestCarries(t *testing.T) {
	for _, network := range []string{"127.0.0.1", "::1"} {
		t.Run(network, func(t *testing.T) { testCarries(t, net.ParseIP(network)) })
	}
}

func testCarries(t *testing.T, local net.IP) {
	far, err := net.ListenUDP("udp", &net.UDPAddr{IP: local})
	require.Need(t, "a loopback device that speaks "+local.String(), err == nil)
	defer far.Close()
	near, err := net.ListenUDP("udp", &net.UDPAddr{IP: local})
	if err != nil {
		t.Fatal(err)
	}
	nearAt := near.LocalAddr().(*net.UDPAddr)
	socket, err := near.File()
	if err != nil {
		t.Fatal(err)
	}
	near.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "device"), os.NewFile(uintptr(pair[1]), "its other end")
	defer ours.Close()

	to := far.LocalAddr().(*net.UDPAddr).AddrPort()
	to = netip.AddrPortFrom(to.Addr().Unmap(), to.Port())
	config := Config{MTU: 1000, Peers: []Peer{{Pods: netip.MustParsePrefix("198.19.1.0/24"), Node: to}}}
	arguments, err := config.Arguments()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], arguments...)
	cmd.ExtraFiles = []*os.File{theirs, socket}
	input, output := require.Pipes(t, cmd)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	socket.Close()
	said := make([]byte, len(Ready))
	if _, err := output.Read(said); err != nil || string(said) != Ready {
		t.Fatalf("the tunnel said %q: %v", said, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	if err := errors.Join(far.SetReadDeadline(deadline)); err != nil {
		t.Fatal(err)
	}

	// Out: what has a peer arrives, as it is; what has none or is too large does not.
	sent := packet("198.19.1.10")
	sent[39] = 7
	tooLarge := append(packet("198.19.1.10"), make([]byte, 1000)...)
	for _, b := range [][]byte{packet("198.19.2.10"), tooLarge, {1, 2, 3}, sent} {
		if _, err := ours.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 2000)
	n, err := far.Read(got)
	if err != nil || !bytes.Equal(got[:n], sent) {
		t.Fatalf("got % x, %v; want % x", got[:n], err, sent)
	}
	// In: more than a batch.
	for i := range 3 * batch {
		b := packet("198.19.0.10")
		b[39] = byte(i)
		if _, err := far.WriteTo(b, nearAt); err != nil {
			t.Fatal(err)
		}
		n, err := ours.Read(got)
		if err != nil || n != len(b) || got[39] != byte(i) {
			t.Fatalf("packet %d: got % x, %v", i, got[:n], err)
		}
	}
	// It ends with its input.
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
