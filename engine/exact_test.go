package engine_test

import (
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
)

// here runs a function where the test is.
func here(f func() error) error { return f() }

// TestExactEndsShareAClock: a round trip is what the request and the response took, of every transaction.
func TestExactEndsShareAClock(t *testing.T) {
	for i, name := range []string{"tcp-rr", "udp-rr"} {
		t.Run(name, func(t *testing.T) {
			port := uint16(19800 + 2*i)
			pair := openExact(t, name, 300, port, port)
			for _, transactions := range []int{1, 200} {
				times, err := pair.Exchange(transactions)
				if err != nil {
					t.Fatal(err)
				}
				if len(times.RoundTrip) != transactions || len(times.Request) != transactions || len(times.Response) != transactions {
					t.Fatalf("%d transactions gave %d, %d and %d times", transactions, len(times.RoundTrip), len(times.Request), len(times.Response))
				}
				for k, whole := range times.RoundTrip {
					request, response := times.Request[k], times.Response[k]
					if request <= 0 || response <= 0 || request+response != whole {
						t.Fatalf("transaction %d took %d ns: %d there and %d back", k+1, whole, request, response)
					}
				}
			}
			for _, transactions := range []int{0, -1, 1 << 20} {
				if _, err := pair.Exchange(transactions); err == nil {
					t.Errorf("%d transactions were carried out", transactions)
				}
			}
			if err := errors.Join(pair.Close(), pair.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := pair.Exchange(1); err == nil {
				t.Error("a closed pair exchanges")
			}
		})
	}
}

// TestExactLargeMessages: messages that are larger than what a socket takes at a time are whole all the same.
func TestExactLargeMessages(t *testing.T) {
	pair := openExact(t, "tcp-rr", 1<<20, 19810, 19810)
	defer func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	}()
	times, err := pair.Exchange(8)
	if err != nil || slices.Min(times.Request) <= 0 {
		t.Fatalf("%v %v", times, err)
	}
}

// TestExactWithoutServer: a client whose server is elsewhere is refused, and nothing stays open.
func TestExactWithoutServer(t *testing.T) {
	w := named(t, "tcp-rr")
	_, err := w.Exact(t.Context(), engine.ExactSpec{
		Params: result.Params{Message: 64}, Listen: loopback(19820), Local: loopback(0), Server: loopback(19821), AtClient: here, AtServer: here,
	}, -1)
	if !errors.Is(err, unix.ECONNREFUSED) {
		t.Fatalf("connected to a port without a server: %v", err)
	}
}

// TestExactMeaning: only request and response over a kept connection have an exact meaning.
func TestExactMeaning(t *testing.T) {
	for name, has := range map[string]bool{"tcp-rr": true, "udp-rr": true, "tcp-crr": false, "tcp-stream": false, "udp-stream": false} {
		if (named(t, name).Exact != nil) != has {
			t.Errorf("%s: has an exact meaning: %v", name, !has)
		}
	}
}

func openExact(t *testing.T, name string, message unit.Bytes, listen, reach uint16) engine.ExactPair {
	t.Helper()
	p := result.Params{Message: message}
	pair, err := named(t, name).Exact(t.Context(), engine.ExactSpec{
		Params: p, Listen: loopback(listen), Local: loopback(0), Server: loopback(reach), AtClient: here, AtServer: here,
	}, -1)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}
