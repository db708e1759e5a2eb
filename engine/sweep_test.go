package engine_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/netns"
	"netdelta/result"
	"netdelta/unit"
)

// rules is what each request of a slow network passes: so many rules, none of which matches.
func rules(n int) string {
	return "table inet slow {\n chain out {\n type filter hook output priority 0;\n" + strings.Repeat("ip saddr 192.0.2.1 counter\n", n) + "}\n}\n"
}

// sweep makes a sweep over clients, and closes it before they are.
func sweep(t testing.TB, clients ...engine.Client) *engine.Sweep {
	t.Helper()
	s, err := engine.NewSweep(clients)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func sweeps(d time.Duration) engine.SweepSpec {
	return engine.SweepSpec{Duration: d, Transactions: 16, Warmup: 4, Slice: time.Millisecond, Deadline: d + 5*time.Second, Seed: 1}
}

// TestSweepVisitsAllAlikeWhenQuiet: each client of each kind, in a namespace of its own, gets its visits; what is counted is what its server saw.
func TestSweepVisitsAllAlikeWhenQuiet(t *testing.T) {
	for _, name := range []string{"tcp-rr", "udp-rr"} {
		t.Run(name, func(t *testing.T) {
			w := named(t, name)
			var clients []engine.Client
			var servers []engine.Server
			var before []int64
			for range 4 {
				server, client := armBoth(t, namespace(t, 65536, ""), w, w.Defaults, 5000)
				burst(t, client, engine.BurstSpec{Transactions: 3}) // which counts as well
				servers, clients, before = append(servers, server), append(clients, client), append(before, settled(t, server).Transactions)
			}
			spec := sweeps(100 * time.Millisecond)
			spec.Slice = time.Second // no visit ends early
			spec.Visits = []int{2, 1, 1, 1}
			swept, err := sweep(t, clients...).Run(spec)
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range swept {
				if b.Err != nil {
					t.Fatal(b.Err)
				}
				visits := b.Burst.Transactions / int64(spec.Visits[i])
				if first := swept[1].Burst.Transactions; visits < 2 || math.Abs(float64(visits-first)) > 16 {
					t.Errorf("client %d: %d transactions in %d visits a sweep, the first other %d", i, b.Burst.Transactions, spec.Visits[i], first)
				}
				if b.Burst.P50 <= 0 || b.Burst.Duration <= 0 || b.Burst.Span <= b.Burst.Duration || b.Burst.CPU <= 0 || b.Burst.Work <= b.Burst.Transactions || b.Burst.Carry.Visits < 1 {
					t.Errorf("client %d: %+v", i, b.Burst)
				}
				totals, err := clients[i].Collect(false)
				if err != nil {
					t.Fatal(err)
				}
				if totals.Transactions != b.Burst.Transactions+3 || totals.Histogram == "" {
					t.Errorf("client %d: totals of %d transactions, want %d", i, totals.Transactions, b.Burst.Transactions+3)
				}
				repeated := int64(0)
				if name == "udp-rr" { // A busy machine answers datagrams so late that they are sent again. Of warm-ups that is not told.
					repeated = b.Burst.Sent - b.Burst.Transactions + b.Burst.Work - b.Burst.Transactions
				}
				if served := settled(t, servers[i]).Transactions - before[i]; served < b.Burst.Work || served > b.Burst.Work+repeated {
					t.Errorf("client %d: its server answered %d, it asked %d, at most %d of them again", i, served, b.Burst.Work, repeated)
				}
			}
		})
	}
}

// TestSweepFindsALittleWhenQuiet: levels tell a network that filters from equal ones without, and those from each other by next to nothing.
func TestSweepFindsALittleWhenQuiet(t *testing.T) {
	w := named(t, "tcp-rr")
	var clients []engine.Client
	for _, n := range []int{0, 0, 0, 200} {
		_, client := armOn(t, 0, namespace(t, 65536, rules(n)), w, w.Defaults, 5000)
		clients = append(clients, client)
	}
	spec := sweeps(time.Second)
	swept, err := sweep(t, clients...).Run(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("levels %.4f %.4f %.4f and with rules %.4f", swept[0].Burst.Level, swept[1].Burst.Level, swept[2].Burst.Level, swept[3].Burst.Level)
	base := (swept[0].Burst.Level + swept[1].Burst.Level) / 2
	if slow, equal := swept[3].Burst.Level-base, math.Abs(swept[2].Burst.Level-base); slow < 3*equal || slow < 0.02 {
		t.Errorf("200 rules cost %v, none %v", slow, equal)
	}
}

// TestPacedSweepKeepsItsRateWhenQuiet: requests of all clients together are due one gap after another, so that no client rests for less, and a visit
// runs all of its requests.
func TestPacedSweepKeepsItsRateWhenQuiet(t *testing.T) {
	w := named(t, "tcp-rr")
	p := w.Defaults
	p.RequestRate = 1000
	spec := sweeps(100 * time.Millisecond)
	spec.Transactions, spec.Warmup, spec.Slice = 4, 1, time.Microsecond
	s := sweep(t, arm(t, namespace(t, 65536, ""), w, p, 5000), arm(t, namespace(t, 65536, ""), w, p, 5000))
	began := time.Now()
	swept, err := s.Run(spec)
	took := time.Since(began)
	if err != nil {
		t.Fatal(err)
	}
	var all int64
	for i, b := range swept {
		if b.Err != nil || b.Burst.Transactions < 4*2 || b.Burst.Transactions%4 != 0 || b.Burst.Work != b.Burst.Transactions/4*5 {
			t.Errorf("client %d: %v, %d of %d requests counted in visits of 4 after 1", i, b.Err, b.Burst.Transactions, b.Burst.Work)
		}
		all += b.Burst.Work
	}
	if least := time.Duration(all) * time.Millisecond; took < least {
		t.Errorf("%d requests at 1,000 a second took %v", all, took)
	}
}

// TestPacedSweepCountsFromWhenItWasDueWhenQuiet: a client whose round trips take longer than the time between its requests falls behind, and waits for
// its own requests as well; another client does not wait for them.
func TestPacedSweepCountsFromWhenItWasDueWhenQuiet(t *testing.T) {
	w := named(t, "tcp-rr")
	p := w.Defaults
	p.RequestRate = 5000
	slow := namespace(t, 65536, rules(20_000))
	spec := sweeps(300 * time.Millisecond)
	spec.Transactions, spec.Warmup = 4, 1
	swept, err := sweep(t, arm(t, slow, w, p, 5000), arm(t, slow, w, w.Defaults, 5100), arm(t, namespace(t, 65536, ""), w, p, 5000)).Run(spec)
	if err != nil {
		t.Fatal(err)
	}
	late, alone, well := swept[0].Burst.P50, swept[1].Burst.P50, swept[2].Burst.P50
	t.Logf("p50: due every 200 µs %.0f ns, one after the other %.0f ns; on a fast network %.0f ns", late, alone, well)
	if late < 1.5*alone || well > late/2 {
		t.Errorf("p50 of requests due every 200 µs: %.0f ns where a round trip takes %.0f ns, on a fast network %.0f ns", late, alone, well)
	}
}

// TestSweepGoesOnWithoutTheSilent: a client whose server does not answer is given up by name, and the others are measured.
func TestSweepGoesOnWithoutTheSilent(t *testing.T) {
	w := named(t, "tcp-rr")
	silent, well := namespace(t, 65536, ""), namespace(t, 65536, "")
	clients := []engine.Client{arm(t, silent, w, w.Defaults, 5000), arm(t, well, w, w.Defaults, 5000)}
	s := sweep(t, clients...)
	deafen(t, silent)
	spec := sweeps(50 * time.Millisecond)
	spec.Deadline = 300 * time.Millisecond
	for range 2 {
		swept, err := s.Run(spec)
		if err != nil {
			t.Fatal(err)
		}
		if !errors.Is(swept[0].Err, context.DeadlineExceeded) {
			t.Errorf("the silent client: %v", swept[0].Err)
		}
		if swept[1].Err != nil || swept[1].Burst.Transactions < 2 {
			t.Errorf("the other: %v, %d transactions", swept[1].Err, swept[1].Burst.Transactions)
		}
	}
}

// TestSweepOfALostServer: the client of a server that is gone says so at once.
func TestSweepOfALostServer(t *testing.T) {
	w := named(t, "tcp-rr")
	server, client := armBoth(t, namespace(t, 65536, ""), w, w.Defaults, 5000)
	other := arm(t, namespace(t, 65536, ""), w, w.Defaults, 5000)
	s := sweep(t, client, other)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	swept, err := s.Run(sweeps(20 * time.Millisecond))
	if err != nil || swept[0].Err == nil || swept[1].Err != nil {
		t.Errorf("%v: %v, %v", err, swept[0].Err, swept[1].Err)
	}
}

// TestSweepRefuses: what can't be visited, and orders without sense.
func TestSweepRefuses(t *testing.T) {
	w := named(t, "tcp-rr")
	many := result.Params{Message: 64 * unit.Byte, Connections: 2}
	if _, err := engine.NewSweep([]engine.Client{arm(t, nil, w, many, 5100)}); err == nil {
		t.Error("a client with two connections is taken")
	}
	fast := w.Defaults
	fast.RequestRate = 50_000
	if _, err := engine.NewSweep([]engine.Client{arm(t, nil, w, fast, 5300)}); err == nil {
		t.Error("a client with 50,000 requests a second is taken")
	}
	if _, err := engine.NewSweep(nil); err == nil {
		t.Error("no client is taken")
	}
	s := sweep(t, arm(t, nil, w, w.Defaults, 5200))
	for _, change := range []func(*engine.SweepSpec){
		func(s *engine.SweepSpec) { s.Transactions = 65 },
		func(s *engine.SweepSpec) { s.Visits = []int{0} },
		func(s *engine.SweepSpec) { s.Visits = []int{1, 1} },
		func(s *engine.SweepSpec) { s.Visits = []int{1000} },
		func(s *engine.SweepSpec) { s.Deadline = 0 },
	} {
		spec := sweeps(time.Millisecond)
		change(&spec)
		if _, err := s.Run(spec); err == nil {
			t.Errorf("%+v is carried out", spec)
		}
	}
}

// deafen drops all that comes into a namespace.
func deafen(t testing.TB, n *netns.Namespace) {
	t.Helper()
	load(t, n, "table inet deaf {\n chain in {\n type filter hook input priority 0;\n drop\n }\n}\n")
}
