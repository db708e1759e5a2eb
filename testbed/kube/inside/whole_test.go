package inside

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"netdelta/internal/require"
)

// wire passes datagrams between one client and an answerer. In each direction it loses packets above a size. Of a TCP stream it passes the
// first few bytes, or all of it where it is open.
type wire struct {
	out, back int
	open      bool
}

// start begins to pass datagrams on, and returns the address that the client sends them to.
func (w wire) start(t *testing.T, to netip.AddrPort) netip.AddrPort {
	t.Helper()
	at := freePort(t)
	near, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	far, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var client netip.AddrPort
	var group sync.WaitGroup
	t.Cleanup(func() {
		for _, c := range []io.Closer{near, far, listener} {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		group.Wait()
	})
	headers, _ := headersOf(at.Addr())
	group.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, from, err := near.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			mu.Lock()
			client = from
			mu.Unlock()
			if n+headers <= w.out {
				_, _ = far.Write(b[:n]) // the test sees what is missing
			}
		}
	})
	group.Go(func() {
		b := make([]byte, 1<<16)
		for {
			n, err := far.Read(b)
			if err != nil {
				return
			}
			mu.Lock()
			if n+headers <= w.back {
				_, _ = near.WriteToUDPAddrPort(b[:n], client) // as above
			}
			mu.Unlock()
		}
	})
	group.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer func() { _ = c.Close() }() // the test sees what is missing
				if w.open {
					_, _ = io.CopyN(c, c, streamSize) // as above
					return
				}
				_, _ = io.CopyN(c, c, 8)                   // as above
				_, _ = io.CopyN(io.Discard, c, streamSize) // as above
			})
		}
	})
	return at
}

// How large packets get through is found for each way on its own, and whether TCP gets by.
func TestTryWhole(t *testing.T) {
	at := freePort(t)
	input, end := io.Pipe()
	lines, said := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- answer(strconv.Itoa(int(at.Port())), input, said) }()
	if line, err := bufio.NewReader(lines).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("it said %q, %v", line, err)
	}
	t.Cleanup(func() {
		_ = end.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	const all = 1<<16 - 1 // as loopback takes
	for name, c := range map[string]struct {
		wire
		want Outcome
	}{
		"whole":   {wire{all, all, true}, Outcome{Out: Passing{all, all}, Back: Passing{all, all}}},
		"out":     {wire{1450, all, true}, Outcome{Out: Passing{1450, all}, Back: Passing{all, all}}},
		"back":    {wire{all, 1450, false}, Outcome{Out: Passing{all, all}, Back: Passing{1450, all}, Stuck: true}},
		"nothing": {wire{0, all, false}, Outcome{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.want.Out.Vanish() || c.want.Back.Vanish() {
				require.Long(t) // each size that does not pass is waited for
			}
			o := tried(t, Trial{At: []netip.AddrPort{c.start(t, at)}, Within: time.Second, Whole: true})
			o.Took = 0
			if name == "nothing" {
				if o.Error == "" {
					t.Errorf("got %+v", o)
				}
				return
			}
			if o != c.want {
				t.Errorf("got %+v, want %+v", o, c.want)
			}
		})
	}
}
