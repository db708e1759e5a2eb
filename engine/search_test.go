package engine

import (
	"context"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/clock"
	"netdelta/internal/property"
	"netdelta/result"
)

// TestMedianOfDelays holds the small histogram against sorted values.
func TestMedianOfDelays(t *testing.T) {
	d := new(delays)
	property.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(0, 30e9), 1, 200).Draw(t, "values")
		d.reset()
		for _, v := range values {
			d.add(v)
		}
		slices.Sort(values)
		want := float64(values[(len(values)-1)/2])
		if got := float64(d.median()); math.Abs(got-want) > 1+want/64 {
			t.Fatalf("median %v, want %v of %v", got, want, values)
		}
	})
	d.reset()
	if got := d.median(); got != 0 {
		t.Errorf("the median of nothing is %d", got)
	}
	d.add(-5) // another machine's clock
	if got := d.median(); got != 0 {
		t.Errorf("the median of a negative delay is %d", got)
	}
	d.reset()
	d.add(math.MaxInt64)
	if got := d.median(); got < 30e9 {
		t.Errorf("the median of a delay beyond the range is %d", got)
	}
}

func TestPlacesOfDelays(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		v := rapid.Int64Range(0, 34e9).Draw(t, "delay")
		place := delayPlace(v)
		if low, next := delayValue(place), delayValue(place+1); v < low || v >= next || float64(next-low) > 1+float64(low)/64 {
			t.Fatalf("%d is at place %d, from %d to %d", v, place, low, next)
		}
	})
}

// TestJudge: what a search is told of trials of 16 ms with a datagram each 10 us, of which the last eighth began after 14 ms.
func TestJudge(t *testing.T) {
	const due, ms = 1600, 1_000_000
	tests := []struct {
		name           string
		sent, lost     int64
		late           int64
		least, tail    int64 // before, the quickest took 1000 ns
		loss, unsent   float64
		nothingArrived bool
	}{
		{name: "all is well", sent: due, least: 1000, tail: 2000},
		{name: "losses", sent: due, lost: 16, least: 1000, tail: 2000, loss: 0.01},
		{name: "a clock that is apart", sent: due, least: -5e12, tail: -5e12 + 1000},
		{name: "a moment's delay", sent: due, least: 1000, tail: 50_000},
		// The queue has grown by 1.4 ms in 14 ms: a rate that is 10% too high, less what is allowed for.
		{name: "a queue that stays", sent: due, least: 1000, tail: 1.4*ms + 1000, loss: 1 - 1/(1.1-behind*16/14)},
		{name: "a receiver that was late all the time", sent: due, least: 1.4*ms + 1000, tail: 1.4*ms + 1000, loss: 1 - 1/(1.1-behind*16/14)},
		{name: "losses and a queue", sent: due, lost: due / 2, least: 1000, tail: 1.4*ms + 1000, loss: 1 - 0.5/(1.1-behind*16/14)},
		{name: "nothing of the end arrived", sent: due, lost: due / 8, least: 1000, tail: math.MaxInt64, loss: 0.125},
		{name: "nothing arrived", sent: due, lost: due, nothingArrived: true, loss: 1},
		{name: "a sender that stopped for a moment at the end", sent: due - 50, least: 1000, tail: 2000},
		{name: "a sender that falls behind", sent: due * 9 / 10, late: 1.4 * ms, least: 1000, tail: 1.4*ms + 1000, unsent: 0.1},
		{name: "a sender that never reached the end", sent: due / 2, late: 16 * ms, least: 1000, tail: math.MaxInt64, unsent: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := &control{clock: clock.Kernel()}
			c.order.duration, c.order.gap = 16*ms, 10_000<<16
			c.outcome.counters = counters{sent: test.sent, lost: test.lost, transactions: test.sent - test.lost}
			c.probed = probed{late: test.late, span: 16 * ms, least: test.least, tail: test.tail}
			if test.nothingArrived {
				c.probed = probed{}
			}
			s := &seeker{client: &client{ctl: c}, least: 1000}
			o := s.judge(20 * time.Millisecond)
			if unsent := 1 - float64(o.Sent)/float64(o.Due); math.Abs(unsent-test.unsent) > 0.001 || o.Due != due {
				t.Errorf("%d sent of %d, want a share of %v missing", o.Sent, o.Due, test.unsent)
			}
			if math.Abs(o.Loss-test.loss) > 1e-6 {
				t.Errorf("loss %v, want %v", o.Loss, test.loss)
			}
			if want := float64(test.sent-test.lost-1) / 0.016; !test.nothingArrived && math.Abs(o.Rate-want) > 1 {
				t.Errorf("rate %v, want %v", o.Rate, want)
			}
		})
	}
}

// searchPair is a server and a client that searches, on loopback.
func searchPair(t *testing.T, port uint16) (*server, Client) {
	t.Helper()
	cfg := Config{
		Workload: "udp-stream", Kind: DatagramOut, Params: result.Params{Search: true, Message: 500, Connections: 2}, CPU: -1,
		Local: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, err := Serve(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	cfg.Remote, cfg.Local = cfg.Local, netip.AddrPort{}
	c, err := Dial(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return s.(*server), c
}

// TestOtherClock has a receiver that reads another clock than the sender: one-way times mean nothing then.
func TestOtherClock(t *testing.T) {
	s, c := searchPair(t, 18700)
	for range 2 {
		b, err := c.Burst(BurstSpec{Duration: SearchLeast, Deadline: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if here := s.sessionDomain(); (b.Search.Load50 > 0) != (here == clockDomain()) && b.Search.NoDrop > 0 {
			t.Errorf("%+v with a sender of clock %d and a receiver of %d", b.Search, clockDomain(), here)
		}
		s.setDomain(clockDomain() + 1)
	}
}

// sessionDomain is the clock of the server's only loop.
func (s *server) sessionDomain() (domain uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		domain = ses.ctl.domain
	}
	return domain
}

func (s *server) setDomain(domain uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ses := range s.sessions {
		ses.ctl.domain = domain
	}
}
