package engine_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/result"
)

func TestSocketsOfBothEnds(t *testing.T) {
	port := uint16(20600)
	for _, c := range []struct {
		name        string
		connections int
		tcp, both   bool // TCP_INFO of the client, and of the server
	}{
		{"tcp-rr", 1, true, true},
		{"tcp-rr", 3, true, false},
		{"tcp-stream", 2, true, true},
		{"udp-rr", 1, false, false},
		{"udp-rr", 3, false, false},
		{"udp-stream", 1, false, false},
		{"tcp-crr", 1, false, false},
	} {
		port += 20
		server, client := armBoth(t, nil, named(t, c.name), result.Params{Connections: c.connections}, port)
		burst(t, client, engine.BurstSpec{Duration: 10 * time.Millisecond})
		mine, err := client.Collect(false)
		if err != nil {
			t.Fatal(err)
		}
		theirs := server.Totals()
		if (mine.TCP != nil) != c.tcp || (theirs.TCP != nil) != c.both {
			t.Errorf("%s on %d: TCP_INFO of the client %v, of the server %v", c.name, c.connections, mine.TCP, theirs.TCP)
		}
		if tcp := theirs.TCP; tcp != nil && (tcp.CongestionControl != mine.TCP.CongestionControl || tcp.MSS == 0) {
			t.Errorf("%s: the server's end is %+v, the client's %+v", c.name, tcp, mine.TCP)
		}
		if (mine.Sockets != nil) != (c.name != "tcp-crr") || mine.Sockets != nil && (mine.Sockets.SendBuffer <= 0 || mine.Sockets.ReceiveBuffer <= 0) {
			t.Errorf("%s: the client's sockets are %+v", c.name, mine.Sockets)
		}
		if theirs.Sockets == nil || theirs.Sockets.Overflows != 0 || theirs.Sockets.Dropped != 0 {
			t.Errorf("%s: the server's sockets are %+v", c.name, theirs.Sockets)
		}
	}
}

// TestListenQueueOverflows keeps a server busy with a client that says nothing, while others queue up.
func TestListenQueueOverflows(t *testing.T) {
	in := namespace(t, 1500, "")
	var busy, idle engine.Server
	w := named(t, "tcp-crr")
	if err := in.Do(func() (err error) {
		if busy, err = w.Serve(t.Context(), result.Params{}, loopback(7000), -1); err != nil {
			return err
		}
		idle, err = w.Serve(t.Context(), result.Params{}, loopback(7001), -1)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	const queue, tried = 128, 200
	var fds []int
	if err := in.Do(func() error {
		for range tried {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 7000, Addr: [4]byte{127, 0, 0, 1}}); err != nil && !errors.Is(err, unix.EINPROGRESS) {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	// Those who queue: the one that is served meanwhile, and one more than the queue is said to hold.
	if got := busy.Totals().Sockets.Overflows; got < tried-queue-10 || got > 5*tried {
		t.Errorf("%d overflows of %d connections to a queue of %d", got, tried, queue)
	}
	if got := idle.Totals().Sockets.Overflows; got != 0 {
		t.Errorf("another server has %d overflows", got)
	}
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(busy.Close(), idle.Close()); err != nil {
		t.Error(err)
	}
}
