package engine_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func named(t testing.TB, name string) workload.Workload {
	t.Helper()
	all := catalogue.Workloads()
	i := slices.IndexFunc(all, func(w workload.Workload) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("the catalogue has no %s", name)
	}
	return all[i]
}

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// namespace makes a namespace in which only loopback is up, with the given MTU and nftables rules on it.
func namespace(t testing.TB, mtu int, rules string) *netns.Namespace {
	t.Helper()
	require.Namespaces(t)
	n, err := netns.New(func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMTU(lo, mtu); err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
	if err != nil {
		t.Fatal(err)
	}
	if rules != "" {
		load(t, n, rules)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// load loads nftables rules into a namespace.
func load(t testing.TB, n *netns.Namespace, rules string) {
	t.Helper()
	err := n.Do(func() error {
		cmd := exec.Command(require.Tool(t, "nft"), "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, out)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// arm starts a server and a client inside a namespace (nil: this program's).
func arm(t testing.TB, in *netns.Namespace, w workload.Workload, p result.Params, port uint16) engine.Client {
	t.Helper()
	_, client := armBoth(t, in, w, p, port)
	return client
}

func armBoth(t testing.TB, in *netns.Namespace, w workload.Workload, p result.Params, port uint16) (server engine.Server, client engine.Client) {
	t.Helper()
	return armOn(t, -1, in, w, p, port)
}

// armOn pins both ends to a processor.
func armOn(t testing.TB, cpu int, in *netns.Namespace, w workload.Workload, p result.Params, port uint16) (server engine.Server, client engine.Client) {
	t.Helper()
	open := func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if server, err = w.Serve(ctx, p, loopback(port), cpu); err != nil {
			return err
		}
		t.Cleanup(func() {
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
		client, err = w.Dial(ctx, p, loopback(port+1), loopback(port), cpu)
		return err
	}
	inside := func(f func() error) error { return f() }
	if in != nil {
		inside = in.Do
	}
	if err := inside(open); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return server, client
}

func burst(t testing.TB, c engine.Client, spec engine.BurstSpec) engine.Burst {
	t.Helper()
	spec.Deadline = 30 * time.Second
	b, err := c.Burst(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// dropNinth drops every ninth UDP datagram on the way. Nine is odd, so that it is requests and responses in turn.
const dropNinth = `table inet lossy {
	chain out {
		type filter hook %s priority 0;
		meta l4proto udp numgen inc mod 9 == 8 drop;
	}
}
`

func TestLostDatagramsAreCountedAndRepeated(t *testing.T) {
	w := named(t, "udp-rr")
	for _, connections := range []int{1, 4} {
		t.Run(fmt.Sprint(connections), func(t *testing.T) {
			c := arm(t, namespace(t, 1500, fmt.Sprintf(dropNinth, "input")), w, result.Params{Connections: connections}, 7000)
			b := burst(t, c, engine.BurstSpec{Transactions: 100})
			// Of 100 requests and as many responses a ninth is dropped, and a ninth of the repetitions.
			// A busy machine is late with some responses: their requests are repeated, and not lost.
			if late := b.Sent - b.Transactions - b.Lost; b.Transactions != 100 || b.Lost < 15 || b.Lost > 40 || late < 0 {
				t.Errorf("%d transactions, %d sent, %d lost; want 100 with about 25 lost", b.Transactions, b.Sent, b.Lost)
			}
			// A lost datagram shows in the latency.
			if p90 := time.Duration(b.P90); p90 > 0 && p90 < 10*time.Millisecond && b.P99 < 10e6 {
				t.Errorf("p90 %v, p99 %v: repetitions don't count", p90, time.Duration(b.P99))
			}
			totals, err := c.Collect(false)
			if err != nil || totals.Lost != b.Lost || totals.Sent != b.Sent {
				t.Errorf("totals %+v of burst %+v: %v", totals, b, err)
			}
		})
	}
}

func TestStreamLossIsCountedByTheReceiver(t *testing.T) {
	w := named(t, "udp-stream")
	for _, hook := range []string{"input", "output"} { // the sender's own firewall is on the way too
		t.Run(hook, func(t *testing.T) {
			connections := map[string]int{"input": 1, "output": 3}[hook]
			c := arm(t, namespace(t, 1500, fmt.Sprintf(dropNinth, hook)), w, result.Params{Connections: connections, Rate: 20 * unit.Mbit}, 7000)
			b := burst(t, c, engine.BurstSpec{Duration: 200 * time.Millisecond, Warmup: 10 * time.Millisecond})
			share := float64(b.Lost) / float64(b.Sent)
			// A busy machine sends fewer.
			if b.Sent < 100 || share < 0.08 || share > 0.14 || b.Transactions+b.Lost != b.Sent || b.Reordered != 0 {
				t.Errorf("%d sent, %d received, %d lost, %d reordered; want a ninth lost of up to 357", b.Sent, b.Transactions, b.Lost, b.Reordered)
			}
		})
	}
}

// TestSearchOnALossyPathWhenQuiet: where a ninth is lost at any rate, only trials of a few datagrams lose nothing, and more of the
// same trials decide.
func TestSearchOnALossyPathWhenQuiet(t *testing.T) {
	const message = 1000
	p := result.Params{Search: true, Message: message}
	c := arm(t, namespace(t, 1500, fmt.Sprintf(dropNinth, "input")), named(t, "udp-stream"), p, 7000)
	b := burst(t, c, engine.BurstSpec{Duration: 300 * time.Millisecond})
	// Trials of the last phase last 8 ms.
	if s := b.Search; s == nil || s.PartialDrop > 8*message*20/0.008 || s.AtLeast {
		t.Errorf("found %+v in %+v, want next to nothing", s, b)
	}
	if share := float64(b.Lost) / float64(b.Sent); share < 0.09 || share > 0.15 {
		t.Errorf("%d of %d were lost, want a ninth", b.Lost, b.Sent)
	}
}

func TestDatagramsLargerThanTheMTU(t *testing.T) {
	for _, name := range []string{"udp-rr", "udp-stream"} {
		c := arm(t, namespace(t, 1500, ""), named(t, name), result.Params{Message: 9000, Connections: 1}, 7000)
		if b := burst(t, c, engine.BurstSpec{Transactions: 50}); b.Transactions != 50 || b.Lost != 0 {
			t.Errorf("%s: %+v", name, b)
		}
	}
}

// TestCongestionControl also shows that it is the socket's, not the system's.
func TestCongestionControl(t *testing.T) {
	w := named(t, "tcp-rr")
	for i, algorithm := range []string{"reno", "cubic"} {
		c := arm(t, nil, w, result.Params{CongestionControl: algorithm}, uint16(17200+10*i))
		burst(t, c, engine.BurstSpec{Transactions: 10})
		totals, err := c.Collect(false)
		if err != nil {
			t.Fatal(err)
		}
		if tcp := totals.TCP; tcp == nil || tcp.CongestionControl != algorithm || tcp.RTT <= 0 || tcp.Cwnd == 0 || tcp.MSS == 0 {
			t.Errorf("TCP_INFO %+v, want %s", tcp, algorithm)
		}
	}
	_, err := w.Serve(t.Context(), result.Params{CongestionControl: "nosuch"}, loopback(17230), -1)
	if err == nil || !strings.Contains(err.Error(), "nosuch") || !strings.Contains(err.Error(), "reno") {
		t.Errorf("an unknown congestion control: %v", err)
	}
}

// TestConnectPorts has a server of another make, which notes the ports that a connecting client comes from.
func TestConnectPorts(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ports := make(chan uint16, 10_000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			ports <- c.RemoteAddr().(*net.TCPAddr).AddrPort().Port()
			message := make([]byte, 64)
			if _, err := c.Read(message); err == nil {
				_, _ = c.Write(message)
			}
			_ = c.Close()
		}
	}()
	w := named(t, "tcp-crr")
	const first = 17300
	c, err := w.Dial(t.Context(), result.Params{}, loopback(first), l.Addr().(*net.TCPAddr).AddrPort(), -1)
	if err != nil {
		t.Fatal(err)
	}
	// Several times around, so that ports are used again.
	burst(t, c, engine.BurstSpec{Transactions: 500})
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	<-ended
	close(ports)
	count := map[uint16]int{}
	for p := range ports {
		count[p]++
	}
	if n := w.SourcePorts(result.Params{}); len(count) != n {
		t.Errorf("%d different ports, want %d", len(count), n)
	}
	for p := range count {
		if int(p) < first || int(p) >= first+w.SourcePorts(result.Params{}) {
			t.Errorf("port %d is out of the range from %d", p, first)
		}
	}
	if held := timeWait(t, first, first+w.SourcePorts(result.Params{})); held > 0 {
		t.Errorf("%d of the client's ports are in TIME_WAIT", held)
	}
}

// timeWait counts the sockets in TIME_WAIT whose local port is in a range.
func timeWait(t testing.TB, from, to int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(table)) {
		var slot, address, port, remoteAddress, remotePort, state int
		_, err := fmt.Sscanf(strings.ReplaceAll(line, ":", " "), "%d %x %x %x %x %x", &slot, &address, &port, &remoteAddress, &remotePort, &state)
		if err == nil && state == 6 && port >= from && port < to {
			n++
		}
	}
	return n
}

func TestSeriesWhenQuiet(t *testing.T) {
	c := arm(t, nil, named(t, "tcp-rr"), result.Params{}, 17400)
	b := burst(t, c, engine.BurstSpec{Duration: 2300 * time.Millisecond})
	totals, err := c.Collect(false)
	if err != nil {
		t.Fatal(err)
	}
	if len(totals.Series) != 3 {
		t.Fatalf("the series of 2.3 s is %+v", totals.Series)
	}
	sum := int64(0)
	for i, s := range totals.Series {
		if span := []float64{1, 1, b.Duration.Seconds() - 2}[i]; math.Abs(s.Span-span) > 1e-6 {
			t.Errorf("point %d of the series spans %g s of a burst of %v, want %g", i, s.Span, b.Duration, span)
		}
		if s.At != float64(i) || s.Transactions == 0 || s.Bytes != s.Transactions*128 {
			t.Errorf("point %d of the series is %+v", i, s)
		}
		sum += s.Transactions
	}
	if sum != b.Transactions {
		t.Errorf("the series has %d transactions of %d", sum, b.Transactions)
	}
}

// TestStreamsAreWhole sends messages of sizes that fit no buffer, and counts their bytes at the other end.
func TestStreamsAreWhole(t *testing.T) {
	w := named(t, "tcp-stream")
	port := uint16(17500)
	for _, size := range []unit.Bytes{1, 7, 1000, 131071, 1_000_003} {
		for _, connections := range []int{1, 3} {
			port += 10
			c := arm(t, nil, w, result.Params{Message: size, Connections: connections}, port)
			for range 3 {
				if b := burst(t, c, engine.BurstSpec{Transactions: 40}); b.Bytes != 40*int64(size) {
					t.Errorf("%d bytes of %d messages of %d on %d connections", b.Bytes, 40, size, connections)
				}
			}
			if b := burst(t, c, engine.BurstSpec{Duration: 20 * time.Millisecond, Warmup: 5 * time.Millisecond}); b.Bytes == 0 {
				t.Errorf("nothing is acknowledged: %+v", b)
			}
		}
	}
}

// TestOverloadWhenQuiet asks for more than the path can do: nothing of it may be left out.
func TestOverloadWhenQuiet(t *testing.T) {
	for i, connections := range []int{1, 8} {
		c := arm(t, nil, named(t, "tcp-rr"), result.Params{RequestRate: 1e6, Connections: connections}, uint16(17800+20*i))
		b := burst(t, c, engine.BurstSpec{Duration: 5 * time.Millisecond})
		if b.Transactions != 5000 || b.Duration < 5*time.Millisecond || b.P99 < 1e6 {
			t.Errorf("%d connections: %+v, want 5000 transactions, the last ones late", connections, b)
		}
	}
}

// TestRequestRateIsKeptWhenQuiet waits most of the time.
func TestRequestRateIsKeptWhenQuiet(t *testing.T) {
	for i, name := range []string{"tcp-rr", "udp-rr", "tcp-crr"} {
		for j, connections := range []int{1, 5} {
			w, p := named(t, name), result.Params{RequestRate: 500, Connections: connections}
			if w.Check(p) != nil {
				continue
			}
			c := arm(t, nil, w, p, uint16(17900+200*i+100*j))
			b := burst(t, c, engine.BurstSpec{Duration: 200 * time.Millisecond, Warmup: 20 * time.Millisecond})
			if b.Transactions != 100 {
				t.Errorf("%s on %d connections: %d transactions in %v, want 100 in 200 ms", name, connections, b.Transactions, b.Duration)
			}
		}
	}
}
