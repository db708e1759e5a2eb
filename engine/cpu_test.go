package engine_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
)

// TestWorkIsThatOfBothPartsWhenQuiet holds what a client says its processor time was spent on against what its server saw.
func TestWorkIsThatOfBothPartsWhenQuiet(t *testing.T) {
	port := uint16(18600)
	for _, c := range []struct {
		name string
		p    result.Params
	}{
		{"tcp-rr", result.Params{Message: 100}},
		{"tcp-rr", result.Params{Message: 100, Connections: 3}},
		{"udp-rr", result.Params{Message: 100}},
		{"udp-rr", result.Params{Message: 100, Connections: 3}},
		{"tcp-crr", result.Params{Message: 100}},
		{"tcp-stream", result.Params{Message: 10_000}},
		{"tcp-stream", result.Params{Message: 10_000, Connections: 3}},
		{"udp-stream", result.Params{Message: 100, Rate: unit.Mbit}},
	} {
		t.Run(fmt.Sprintf("%s on %d", c.name, c.p.Connections), func(t *testing.T) {
			port += 100
			server, client := armBoth(t, nil, named(t, c.name), c.p, port)
			for _, warmup := range []time.Duration{0, 10 * time.Millisecond} {
				before, began := settled(t, server), time.Now()
				spent := spentBy(t, server)
				b := burst(t, client, engine.BurstSpec{Duration: 20 * time.Millisecond, Warmup: warmup})
				took := time.Since(began)
				after := settled(t, server)
				spent = spentBy(t, server) - spent
				bytes, transactions := after.Bytes-before.Bytes, after.Transactions-before.Transactions
				repeated := int64(0)
				if c.name == "udp-rr" { // A busy machine answers datagrams so late that they are sent again. Of warm-ups that is not told.
					repeated = b.Sent - b.Transactions + b.Work - b.Transactions
				}
				switch {
				case c.name == "udp-stream":
					// What is sent before the measured part its server does not count.
					if want := int64(warmup+20*time.Millisecond) / int64(800*time.Microsecond); b.Work < b.Sent || b.Work > want+2 || b.Moved != 100*b.Work || (b.Work > b.Sent) != (warmup > 0) {
						t.Errorf("warm-up %v: %d datagrams of %d measured ones, %d bytes; want at most %d of 100 bytes", warmup, b.Work, b.Sent, b.Moved, want)
					}
				case bytes < b.Moved || bytes > b.Moved+2*100*repeated:
					t.Errorf("warm-up %v: the client moved %d bytes, its server saw %d", warmup, b.Moved, bytes)
				case transactions < b.Work || transactions > b.Work+repeated:
					t.Errorf("warm-up %v: the client did %d transactions, its server %d", warmup, b.Work, transactions)
				}
				// The window of a UDP stream may end with a pause between two datagrams, which is not waited for.
				if least := warmup + b.Duration - 2*time.Millisecond; b.Span < least || b.Span > took {
					t.Errorf("warm-up %v: the burst measured %v and took %v of the %v that the call took", warmup, b.Duration, b.Span, took)
				}
				if b.Work < b.Transactions || warmup > 0 && b.Moved <= b.Bytes {
					t.Errorf("warm-up %v: %d transactions of %d measured ones, %d bytes of %d", warmup, b.Work, b.Transactions, b.Moved, b.Bytes)
				}
				if b.CPU <= 0 || b.CPU > took {
					t.Errorf("warm-up %v: %v of processor time in a burst that took %v", warmup, b.CPU, took)
				}
				// Both ends do about the same, but for a sender that waits for its next datagram awake.
				least, most := b.CPU/20, time.Duration(runtime.NumCPU())*took
				if c.name == "udp-stream" {
					least = 1
				}
				if spent < least || spent > most {
					t.Errorf("warm-up %v: the server used %v, its client %v in a burst that took %v", warmup, spent, b.CPU, took)
				}
			}
			used := spentBy(t, server)
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			if after := spentBy(t, server); after < used {
				t.Errorf("the server has used %v, and %v when its client is gone", used, after)
			}
		})
	}
}

// spentBy is the processor time that a server has used so far.
func spentBy(t *testing.T, server engine.Server) time.Duration {
	t.Helper()
	used, err := server.(interface{ CPU() (time.Duration, error) }).CPU()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// settled is what a server has seen when it has taken note of everything: of its last response it may do so after the client
// has got it, but not after it has gone to sleep.
func settled(t *testing.T, server engine.Server) engine.Totals {
	t.Helper()
	require.Eventually(t, 10*time.Second, "the server sleeps", func() bool {
		return !slices.ContainsFunc(server.(interface{ Threads() []int }).Threads(), func(thread int) bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
			require.NoError(t, err)
			return !strings.Contains(string(stat), ") S ")
		})
	})
	return server.Totals()
}

// TestProcessorTimeIsThatOfTheBurstWhenQuiet: a client that waits most of the time uses little of it, however long it takes, and one
// that does twice as much uses about twice as much. What the machine does meanwhile changes a burst, so the middle of several counts,
// and bursts are held against their neighbours.
func TestProcessorTimeIsThatOfTheBurstWhenQuiet(t *testing.T) {
	idle := arm(t, nil, named(t, "tcp-rr"), result.Params{RequestRate: 50}, 19500)
	var shares []float64
	for range 5 {
		b := burst(t, idle, engine.BurstSpec{Duration: 100 * time.Millisecond})
		shares = append(shares, b.CPU.Seconds()/b.Duration.Seconds())
	}
	if share := middle(shares); share > 0.1 {
		t.Errorf("a client that waits for the next of 50 requests a second uses %.1f%% of a processor", 100*share)
	}
	busy := arm(t, nil, named(t, "tcp-rr"), result.Params{}, 19600)
	each := func(transactions int64) float64 {
		return float64(burst(t, busy, engine.BurstSpec{Transactions: transactions}).CPU) / float64(transactions)
	}
	var ratios []float64
	for range 15 {
		before, many, after := each(500), each(1000), each(500)
		ratios = append(ratios, many/((before+after)/2))
	}
	if ratio := middle(ratios); ratio < 0.8 || ratio > 1.25 {
		t.Errorf("a transaction takes %.2f times as much processor time in a burst of 1000 as in one of 500", ratio)
	}
}

// middle is the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
