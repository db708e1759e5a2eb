package engine

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCounter(t *testing.T) {
	const text = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: InNoRoutes ListenOverflows\nIpExt: 4 5\n"
	for _, c := range []struct {
		text string
		want uint64
		ok   bool
	}{
		{text, 22, true},
		{strings.ReplaceAll(text, "TcpExt", "MPTcpExt"), 0, false},
		{"TcpExt: ListenOverflows\n", 0, false},
		{"TcpExt: A ListenOverflows\nTcpExt: 1\n", 0, false},
		{"TcpExt: ListenOverflows\nTcpExt: many\n", 0, false},
		{"", 0, false},
	} {
		if got, err := counter(c.text, "ListenOverflows"); got != c.want || (err == nil) != c.ok {
			t.Errorf("%q: %d, %v; want %d", c.text, got, err, c.want)
		}
	}
	text2, err := os.ReadFile("/proc/self/net/netstat")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := counter(string(text2), "ListenOverflows"); err != nil {
		t.Errorf("this kernel: %v", err)
	}
}

func FuzzCounter(f *testing.F) {
	f.Add("TcpExt: A B\nTcpExt: 1 2\n", "B")
	f.Add("TcpExt:\nTcpExt: 1", "")
	f.Fuzz(func(t *testing.T, text, name string) {
		if _, err := counter(text, name); err == nil && !strings.Contains(text, name) {
			t.Errorf("%q was found in %q", name, text)
		}
	})
}

// TestDropsAreTheSockets sends datagrams to a socket that is not read, until they no longer fit.
func TestDropsAreTheSockets(t *testing.T) {
	fds := make([]int, 2)
	for i := range fds {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			t.Fatal(err)
		}
		fds[i] = fd
	}
	to, err := unix.Getsockname(fds[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_RCVBUF, 4096); err != nil {
		t.Fatal(err)
	}
	const sent = 100
	for range sent {
		if err := unix.Sendto(fds[0], make([]byte, 1000), 0, to); err != nil {
			t.Fatal(err)
		}
	}
	received := uint64(0)
	for {
		if _, _, err := unix.Recvfrom(fds[1], make([]byte, 2000), unix.MSG_DONTWAIT); err != nil {
			break
		}
		received++
	}
	if got := dropsOf(fds[1]); received == 0 || received == sent || got != sent-received {
		t.Errorf("%d of %d received, %d dropped", received, sent, got)
	}
	if got := dropsOf(fds[0]); got != 0 {
		t.Errorf("the sender's socket dropped %d", got)
	}
	if _, receive, err := buffersOf(fds[1]); err != nil || receive != 2*4096 {
		t.Errorf("a receive buffer of %d bytes, %v; want twice 4096", receive, err)
	}
	if got := dropsOf(-1); got != 0 {
		t.Errorf("no socket dropped %d", got)
	}
}
