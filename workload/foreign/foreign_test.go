package foreign_test

import (
	"context"
	"math"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

// ends are the agents of two pods of a lab, on a node each.
type ends struct {
	tb             testbed.Testbed
	client, server *agent.Agent
}

// across opens a lab whose link has a rate; 0 is none.
func across(t *testing.T, rate unit.BitsPerSecond, family result.Family) ends {
	t.Helper()
	tb, agents := probetest.Lab(t, testbed.Spec{
		Nodes: 2, PodsPerNode: 1, Network: "host", Family: family, Link: testbed.Link{MTU: 1500, Rate: rate},
	})
	return ends{tb, agents[0], agents[1]}
}

// session is a workload that is open between the ends.
type session struct {
	t               *testing.T
	ends            ends
	client, service int
}

// open serves and dials on the pod's port of a number, both ends on one processor.
func (e ends) open(t *testing.T, name string, p result.Params, number uint16) session {
	t.Helper()
	first, _ := e.server.Pod().Ports()
	all := netip.IPv4Unspecified()
	if p.Family == result.IPv6 {
		all = netip.IPv6Unspecified()
	}
	service, err := e.server.Serve(t.Context(), name, p, netip.AddrPortFrom(all, first+number), 0)
	if err != nil {
		t.Fatal(err)
	}
	to := e.tb.Endpoint(e.client.Pod(), e.server.Pod(), first+number)
	client, err := e.client.Dial(t.Context(), name, p, netip.AddrPortFrom(all, 0), to, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := session{t, e, client, service}
	t.Cleanup(func() {
		for _, err := range []error{e.client.Drop(context.WithoutCancel(t.Context()), client), e.server.Drop(context.WithoutCancel(t.Context()), service)} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func (s session) burst(length time.Duration) engine.Burst {
	s.t.Helper()
	b, err := s.ends.client.Burst(s.t.Context(), s.client, engine.BurstSpec{Duration: length, Warmup: length / 5, Deadline: 40 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// TestIperf3FindsWhatNetdeltaDoesWhenQuiet: on a link with a rate both engines measure the link, less what the headers take.
func TestIperf3FindsWhatNetdeltaDoesWhenQuiet(t *testing.T) {
	require.Quiet(t)
	require.Tool(t, "iperf3")
	const link = 100 * unit.Mbit
	e := across(t, link, result.IPv4)
	own := e.open(t, "tcp-stream", result.Params{}, 0)
	other := e.open(t, "tcp-stream", result.Params{Engine: "iperf3", Connections: 2}, 1)
	attempts(t, func() (float64, float64) {
		a, b := own.burst(time.Second), other.burst(time.Second)
		if b.Duration < 900*time.Millisecond || b.Span < 2*b.Duration-time.Second/2 || b.Bytes < 1 || b.Moved != b.Bytes {
			t.Errorf("%+v", b)
		}
		if b.Throughput > 1.01*float64(link) {
			t.Errorf("%v over a link of %v", unit.BitsPerSecond(b.Throughput), link)
		}
		return b.Throughput, a.Throughput
	}, 0.05)
	totals, err := e.client.Collect(t.Context(), other.client, true)
	if err != nil {
		t.Fatal(err)
	}
	if totals.Bytes > 0 && (totals.TCP == nil || totals.TCP.CongestionControl != "cubic" || len(totals.Series) == 0) {
		t.Errorf("%+v", totals)
	}
}

// attempts holds two figures of one moment against each other until they agree to within a share: what else a busy machine does
// keeps them apart now and then.
func attempts(t *testing.T, measure func() (float64, float64), share float64) {
	t.Helper()
	for range 5 {
		a, b := measure()
		if math.Abs(a/b-1) <= share {
			return
		}
		t.Logf("%.4g against %.4g", a, b)
	}
	t.Errorf("they never agree to within %g%%", 100*share)
}

func TestIperf3CountsLostDatagramsWhenQuiet(t *testing.T) {
	require.Quiet(t)
	require.Tool(t, "iperf3")
	e := across(t, 40*unit.Mbit, result.IPv6)
	p := result.Params{Engine: "iperf3", Rate: 80 * unit.Mbit, Message: 1200, Family: result.IPv6}
	over := e.open(t, "udp-stream", p, 0)
	p.Rate = 10 * unit.Mbit
	below := e.open(t, "udp-stream", p, 1)
	attempts(t, func() (float64, float64) {
		b := over.burst(time.Second)
		if b.Sent != b.Transactions+b.Lost {
			t.Errorf("%+v", b)
		}
		return b.Throughput, 40e6 * 1200 / (1200 + 8 + 40 + 14)
	}, 0.08)
	attempts(t, func() (float64, float64) {
		b := below.burst(time.Second)
		return b.Throughput, 10e6
	}, 0.03)
}

func TestSockperfFindsWhatNetdeltaDoesWhenQuiet(t *testing.T) {
	require.Quiet(t)
	require.Tool(t, "sockperf")
	e := across(t, 0, result.IPv4)
	for i, name := range []string{"tcp-rr", "udp-rr"} {
		own := e.open(t, name, result.Params{Message: 64}, uint16(2*i))
		other := e.open(t, name, result.Params{Message: 64, Engine: "sockperf"}, uint16(2*i+1))
		// sockperf asks for readiness and reads its clock more often than netdelta does: it finds round trips longer.
		attempts(t, func() (float64, float64) {
			a, b := own.burst(200*time.Millisecond), other.burst(time.Second)
			if b.Transactions > 0 && !(b.Min < b.P50 && b.P50 <= b.P90 && b.P90 <= b.P99 && b.P99 <= b.Max) {
				t.Errorf("%s: %+v", name, b)
			}
			return b.P50, 1.4 * a.P50
		}, 0.6)
		other.burst(time.Second)
		totals, err := e.client.Collect(t.Context(), other.client, false)
		if err != nil {
			t.Fatal(err)
		}
		h, err := result.DecodeHistogram(totals.Histogram)
		if err != nil || h.TotalCount() != totals.Transactions || len(totals.Series) < 2 {
			t.Errorf("%s: %+v, %v", name, totals, err)
		}
	}
}

// TestNetperfFindsWhatNetdeltaDoesWhenQuiet runs where somebody has installed it: Debian has no package of it in its main section.
func TestNetperfFindsWhatNetdeltaDoesWhenQuiet(t *testing.T) {
	require.Quiet(t)
	require.Tool(t, "netperf")
	require.Tool(t, "netserver")
	e := across(t, 100*unit.Mbit, result.IPv4)
	own := e.open(t, "tcp-stream", result.Params{}, 0)
	other := e.open(t, "tcp-stream", result.Params{Engine: "netperf"}, 1)
	attempts(t, func() (float64, float64) {
		return other.burst(time.Second).Throughput, own.burst(time.Second).Throughput
	}, 0.05)
	for i, name := range []string{"tcp-rr", "udp-rr"} {
		own := e.open(t, name, result.Params{Message: 64}, uint16(2*i+2))
		other := e.open(t, name, result.Params{Message: 64, Engine: "netperf"}, uint16(2*i+3))
		attempts(t, func() (float64, float64) { return other.burst(time.Second).P50, own.burst(200 * time.Millisecond).P50 }, 0.6)
	}
}

// TestDropsTheLast: a burst that was disturbed leaves nothing in the totals.
func TestDropsTheLast(t *testing.T) {
	t.Parallel()
	require.Tool(t, "iperf3")
	e := across(t, 20*unit.Mbit, result.IPv4)
	s := e.open(t, "tcp-stream", result.Params{Engine: "iperf3"}, 0)
	kept := s.burst(time.Second)
	s.burst(time.Second)
	totals, err := e.client.Collect(t.Context(), s.client, true)
	if err != nil || totals.Bytes != kept.Bytes || totals.Transactions != kept.Transactions {
		t.Errorf("%+v of %+v, %v", totals, kept, err)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	require.Tool(t, "iperf3")
	e := across(t, 0, result.IPv4)
	first, _ := e.server.Pod().Ports()
	p := result.Params{Engine: "iperf3"}
	s := e.open(t, "tcp-stream", p, 0)
	_, err := e.server.Serve(t.Context(), "tcp-stream", p, netip.AddrPortFrom(netip.IPv4Unspecified(), first), 0)
	if err == nil || !strings.Contains(err.Error(), "iperf3") || !strings.Contains(err.Error(), "0.0.0.0:20000") || !strings.Contains(err.Error(), "ddress already in use") {
		t.Errorf("a port in use: %v", err)
	}
	if err := e.server.Drop(t.Context(), s.service); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = e.client.Burst(t.Context(), s.client, engine.BurstSpec{Duration: time.Second, Deadline: 20 * time.Second})
		if err == nil || !strings.Contains(err.Error(), "iperf3") || !strings.Contains(err.Error(), "Connection refused") {
			t.Errorf("no server: %v", err)
		}
	}
}

func TestRefusesWhatAnEngineCannotDo(t *testing.T) {
	for _, c := range []struct {
		workload string
		p        result.Params
		want     string // "" is usable
	}{
		{"tcp-stream", result.Params{Engine: "iperf3", Connections: 4, CongestionControl: "reno"}, ""},
		{"udp-stream", result.Params{Engine: "iperf3", Family: result.IPv6}, ""},
		{"tcp-rr", result.Params{Engine: "sockperf", Nagle: true}, ""},
		{"udp-rr", result.Params{Engine: "netperf", Family: result.IPv6}, ""},
		{"tcp-stream", result.Params{Engine: "netperf"}, ""},
		{"tcp-stream", result.Params{Engine: "sockperf"}, "netdelta, iperf3 or netperf"},
		{"udp-stream", result.Params{Engine: "netperf"}, `"netperf"`},
		{"tcp-crr", result.Params{Engine: "netperf"}, "engine is no parameter"},
		{"tcp-stream", result.Params{Engine: "iperf3", Message: 2 * unit.MiB}, "message 2097152 "},
		{"tcp-stream", result.Params{Engine: "iperf3", Connections: 129}, "more than the 128"},
		{"tcp-stream", result.Params{Engine: "iperf3", BusyPoll: time.Millisecond}, "busy poll"},
		{"udp-stream", result.Params{Engine: "iperf3", Search: true}, "search"},
		{"tcp-rr", result.Params{Engine: "sockperf", Message: 4}, "14 to"},
		{"tcp-rr", result.Params{Engine: "sockperf", RequestRate: 100}, "request rate"},
		{"tcp-rr", result.Params{Engine: "sockperf", Connections: 2}, "connections 2 "},
		{"udp-rr", result.Params{Engine: "sockperf", Family: result.IPv6}, "family ipv6"},
		{"tcp-rr", result.Params{Engine: "netperf", Connections: 2}, "connections 2 "},
		{"tcp-stream", result.Params{Engine: "iperf3", File: 1}, "file is no parameter"},
	} {
		w := workload.Find(catalogue.Workloads(), c.workload)
		err := w.Check(c.p)
		if c.want == "" {
			d := w.Demands(c.p)
			if err != nil || !d.Opaque || d.Burst != time.Second || len(d.Programs) == 0 {
				t.Errorf("%s %+v: %v, %+v", c.workload, c.p, err, d)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.workload, c.p, err, c.want)
		}
	}
}
