package hops_test

import (
	"net"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/internal/clock"
	"netdelta/internal/leak"
	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/probe/hops"
	"netdelta/probe/probetest"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// open opens a tracer where this machine has one.
func open(t *testing.T, o hops.Options) *hops.Tracer {
	t.Helper()
	tracer, err := hops.Open(o)
	probetest.Supported(t, err)
	t.Cleanup(func() {
		for range 2 {
			if err := tracer.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return tracer
}

// talk has a client and a server on loopback exchange messages, and gives what a tracer of the server's port noted.
func talk(t *testing.T, o hops.Options, exchanges int) (noted hops.Noted, transactions []hops.Transaction, port uint16) {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	there := make(chan int64, exchanges)
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			there <- int64(clock.Now())
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
	}()
	port = uint16(listener.Addr().(*net.TCPAddr).Port)
	o.First, o.Last = port, port
	tracer := open(t, o)
	c, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := tracer.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	for range exchanges {
		transaction := hops.Transaction{Begun: int64(clock.Now())}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(b); err != nil {
			t.Fatal(err)
		}
		transaction.There, transaction.Ended = <-there, int64(clock.Now())
		transactions = append(transactions, transaction)
	}
	if noted, err = tracer.Stop(); err != nil {
		t.Fatal(err)
	}
	return noted, transactions, port
}

// Each message is seen once where it is sent and once where it is received, and by the sockets.
func TestEvents(t *testing.T) {
	const exchanges = 50
	noted, _, port := talk(t, hops.Options{Level: hops.Everything}, exchanges)
	events, lost := noted.Events, noted.Lost
	counts := map[hops.Kind]int{}
	for i, e := range events {
		counts[e.Kind]++
		if e.Source != port && e.Destination != port || i > 0 && e.At < events[i-1].At {
			t.Fatalf("event %d is %+v", i, e)
		}
		if (e.Kind == hops.Sent || e.Kind == hops.Received) && e.Length != 100 {
			t.Errorf("a message of 100 bytes is seen as one of %d", e.Length)
		}
	}
	if lost != 0 || counts[hops.Sent] != 2*exchanges || counts[hops.Received] != 2*exchanges {
		t.Errorf("of %d exchanges: %v, %d lost", exchanges, counts, lost)
	}
	to, otherwise := hops.FollowSegments(events, true, port, port)
	if len(to.Times) != exchanges || otherwise != 0 || len(to.Places) != 2 {
		t.Errorf("%d segments of %d were followed through %d places, %d otherwise", len(to.Times), exchanges, len(to.Places), otherwise)
	}
}

// What there is no room for is counted, and a transaction of which events are missing is not taken for one that passes nothing: room for
// one processor's events is full before the other's.
func TestLostEvents(t *testing.T) {
	const exchanges = 400
	noted, transactions, port := talk(t, hops.Options{Level: hops.Everything, Room: 500}, exchanges)
	whole := noted.Whole(transactions)
	if noted.Lost == 0 || len(whole) == 0 || len(whole) == exchanges {
		t.Fatalf("%d events were lost, and %d of %d transactions are whole", noted.Lost, len(whole), exchanges)
	}
	f := hops.Follow(noted.Events, whole, port, port)
	if len(f.Request.Places) == 0 || len(f.Request.Times) != len(whole) {
		t.Errorf("%d of %d whole transactions were followed, through %d places", len(f.Request.Times), len(whole), len(f.Request.Places))
	}
}

// A tracer that was killed leaves nothing in the kernel.
func TestKilled(t *testing.T) {
	open(t, hops.Options{First: 1, Last: 1}) // or this test is skipped
	probetest.Killed(t, "NETDELTA_HOPS_HANG", []string{"sent", "received", "arrived", "ready", "written"}, func() {
		tracer := open(t, hops.Options{First: 1, Last: 1, Level: hops.Everything})
		if err := tracer.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// Transactions of any length over any way come out as they went in, whatever is lost of a few of them.
func TestFollow(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		const port, count = 20000, 40
		places := rapid.IntRange(0, 6).Draw(t, "places")
		packets := rapid.IntRange(1, 3).Draw(t, "packets")
		gone := rapid.SampledFrom([]int{-1, 3, 17}).Draw(t, "gone")
		var events []hops.Event
		var transactions []hops.Transaction
		at := int64(1000)
		tick := func() int64 { at += int64(rapid.IntRange(1, 50).Draw(t, "tick")); return at }
		way := func(from, to uint16, device uint32, lose bool) {
			for range packets {
				for k := range places {
					e := hops.Event{At: tick(), Kind: hops.Sent, Space: 1, Device: device + uint32(k), Source: from, Destination: to, Length: 1}
					if !lose || k != places/2 {
						events = append(events, e)
					}
				}
			}
		}
		for i := range count {
			begun := tick()
			way(3000, port, 1, i == gone)
			there := tick()
			way(port, 3000, 100, false)
			transactions = append(transactions, hops.Transaction{Begun: begun, There: there, Ended: tick()})
		}
		f := hops.Follow(events, transactions, port, port)
		want := count
		if gone >= 0 && places > 0 {
			want--
		}
		if len(f.Request.Times) != want || f.Otherwise != count-want || len(f.Request.Places) != places || len(f.Response.Places) != places {
			t.Fatalf("followed %d transactions, %d otherwise, want %d; through %d places, want %d", len(f.Request.Times), f.Otherwise, want, len(f.Request.Places), places)
		}
		for i, times := range f.Request.Times {
			if !slices.IsSorted(times) || !slices.IsSorted(f.Response.Times[i]) || times[len(times)-1] != f.Response.Times[i][0] {
				t.Fatalf("times %v and %v", times, f.Response.Times[i])
			}
		}
		sum := 0.0
		for _, d := range append(f.Request.Durations(0), f.Response.Durations(0)...) {
			for _, v := range d {
				sum += v
			}
		}
		whole := 0.0
		for i, times := range f.Request.Times {
			back := f.Response.Times[i]
			whole += float64(back[len(back)-1] - times[0])
		}
		if sum != whole {
			t.Fatalf("the stretches sum up to %v of %v", sum, whole)
		}
	})
}

// A segment that is cut up on its way, or joined with others, is there when its last byte is; one that is sent again counts
// as such. Numbers wrap around.
func TestSegments(t *testing.T) {
	const port = 80
	start := ^uint32(0) - 1500 // so that they wrap
	event := func(at int64, device, sequence, length uint32) hops.Event {
		return hops.Event{At: at, Kind: hops.Sent, Space: 1, Device: device, Source: 5000, Destination: port, Sequence: start + sequence, Length: length}
	}
	events := []hops.Event{
		event(10, 1, 0, 3000), event(20, 2, 0, 1000), event(30, 2, 1000, 1000), event(40, 2, 2000, 1000), event(50, 3, 0, 3000),
		event(60, 1, 3000, 100), event(61, 1, 3100, 100), event(70, 2, 3000, 100), event(71, 2, 3100, 100), event(80, 3, 3000, 200),
		event(90, 1, 3100, 100), // again
	}
	passed, otherwise := hops.FollowSegments(events, true, port, port)
	want := [][]int64{{10, 40, 50}, {60, 70, 80}, {61, 71, 80}}
	if d := cmp.Diff(want, passed.Times); d != "" || otherwise != 1 {
		t.Errorf("%d otherwise; times (-want +got):\n%s", otherwise, d)
	}
	if d := passed.Between(5); d[0][0] != 25 || d[1][2] != 4 {
		t.Errorf("stretches %v", d)
	}
	if back, _ := hops.FollowSegments(events, false, port, port); len(back.Times) != 0 {
		t.Errorf("%d segments come back", len(back.Times))
	}
}

// A hop is named by what its devices are, not by how they are called.
func TestHopsAreNamedByRole(t *testing.T) {
	m := hops.Map{
		Spaces: map[uint32]network.Space{1: network.InPod(0), 2: network.InNode(0), 3: network.InNode(1)},
		Devices: map[hops.Address]network.Device{
			{Space: 1, Device: 2}: {In: network.InPod(0), Name: "a"}, {Space: 2, Device: 5}: {In: network.InNode(0), Name: "b"},
			{Space: 2, Device: 7}: {In: network.InNode(0), Name: "c"}, {Space: 2, Device: 3}: {In: network.InNode(0), Name: "d"},
			{Space: 3, Device: 3}: {In: network.InNode(1), Name: "d"},
		},
		Roles: map[network.Device]network.Role{
			{In: network.InNode(0), Name: "c"}: network.RoleEncapsulation,
			{In: network.InNode(0), Name: "d"}: network.RolePort, {In: network.InNode(1), Name: "d"}: network.RolePort,
		},
	}
	places := []hops.Point{
		{Kind: hops.Sent, Space: 1, Device: 2}, {Kind: hops.Received, Space: 2, Device: 5}, {Kind: hops.Sent, Space: 2, Device: 7},
		{Kind: hops.Sent, Space: 2, Device: 3, Wraps: 1}, {Kind: hops.Received, Space: 3, Device: 3, Wraps: 1}, {Kind: hops.Received, Space: 3, Device: 9},
	}
	var names []string
	for _, h := range m.Hops(places, "pod0", "node1") {
		names = append(names, h.String())
	}
	want := []string{
		"pod0: socket, TCP/IP out", "link, pod0 a to node0 b", "node0: forwarding", "node0: encapsulation",
		"underlay, node0 d to node1 d", "node1: decapsulation", "node1: TCP/IP in, wake-up and read",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
}
