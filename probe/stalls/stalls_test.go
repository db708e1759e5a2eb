package stalls

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/result"
)

const ms = int64(time.Millisecond)

// rr is a trial of request-response bursts of 5 ms, one every 60 ms, of 20 us each: 250 transactions.
func rr(bursts int) result.Trial {
	var t result.Trial
	for i := range bursts {
		add(&t.Bursts, int64(i)*60*ms, 5*ms, 6*ms, 250, 20e3)
	}
	return t
}

func add(b *result.Bursts, start, duration, span, transactions int64, p50 float64) {
	b.Round = append(b.Round, len(b.Round))
	b.Start, b.Duration, b.Span = append(b.Start, start), append(b.Duration, duration), append(b.Span, span)
	b.Transactions, b.P50, b.Max = append(b.Transactions, transactions), append(b.P50, p50), append(b.Max, 3*p50)
	b.Throughput = append(b.Throughput, float64(transactions)*1024/time.Duration(max(duration, 1)).Seconds())
	b.Disturbed = append(b.Disturbed, "")
}

// stream turns a trial into one of a stream, whose transactions are messages of 1024 bits.
func stream(t result.Trial) result.Trial {
	t.Bursts.P50, t.Bursts.Max = nil, nil
	for i, v := range t.Bursts.Transactions {
		if v == 0 {
			t.Bursts.Throughput[i] = 0
		}
	}
	return t
}

func TestSentences(t *testing.T) {
	for _, c := range []struct {
		name string
		t    func() result.Trial
		want []string
	}{
		{"a quiet trial", func() result.Trial { return rr(100) }, nil},
		{"no burst at all", func() result.Trial { return result.Trial{} }, nil},
		{"three bursts without a transaction", func() result.Trial {
			t := rr(100)
			for _, i := range []int{10, 11, 12} {
				t.Bursts.Transactions[i], t.Bursts.P50[i], t.Bursts.Disturbed[i] = 0, 0, NothingArrived
			}
			return t
		}, []string{"0 transactions from 0.60 s to 0.73 s (median 41,667/s)"}},
		{"a stream that gave nothing", func() result.Trial {
			t := rr(100)
			t.Bursts.Transactions[10] = 0
			return stream(t)
		}, []string{"0 bytes from 0.60 s to 0.61 s (median 42.67Mbit/s)"}},
		{"a stream that is down to a trickle", func() result.Trial {
			t := stream(rr(100))
			for i := 10; i < 20; i++ {
				t.Bursts.Throughput[i] /= 50
			}
			return t
		}, []string{"853.3kbit/s from 0.60 s to 1.15 s (median 42.67Mbit/s)"}},
		{"two bursts of bad luck", func() result.Trial {
			t := stream(rr(100))
			for i := 10; i < 12; i++ {
				t.Bursts.Throughput[i] /= 50
			}
			return t
		}, nil},
		{"a burst that could not end", func() result.Trial {
			t := rr(100)
			t.Bursts.Duration[50], t.Bursts.Span[50], t.Bursts.Max[50] = 1205*ms, 1206*ms, 1.2e9
			return t
		}, []string{"207/s from 3.00 s to 4.21 s (median 41,667/s)"}},
		{"a burst that hung before its measured part", func() result.Trial {
			t := rr(100)
			t.Bursts.Span[50] += 1200 * ms
			return t
		}, []string{"207/s from 3.00 s to 4.21 s (median 41,667/s)"}},
		{"a burst that hung for good", func() result.Trial {
			t := rr(20)
			add(&t.Bursts, 1200*ms, 0, 5000*ms, 0, 0)
			return t
		}, []string{"0 transactions from 1.20 s to 6.20 s (median 41,667/s)"}},
		{"one transaction in a long burst", func() result.Trial {
			var t result.Trial
			for i := range int64(5) {
				add(&t.Bursts, 10_000*i*ms, 9000*ms, 9010*ms, 450_000, 20e3)
			}
			t.Bursts.Max[2] = 0.8e9
			return t
		}, []string{"a transaction took 800 ms between 20.00 s and 29.01 s (median 20.0 µs)"}},
		{"a burst of a stream that was slow to end", func() result.Trial {
			var t result.Trial
			for i := range int64(5) {
				add(&t.Bursts, 1000*i*ms, 300*ms, 310*ms, 40, 0)
			}
			t.Bursts.Span[2] += 588 * ms
			return stream(t)
		}, []string{"a burst took 588 ms longer than the median one, from 2.00 s to 2.90 s"}},
		{"a disturbed burst", func() result.Trial {
			t := rr(100)
			t.Bursts.Transactions[10], t.Bursts.Max[10], t.Bursts.Disturbed[10] = 2, 4e8, "preempted"
			return t
		}, nil},
		{"a disturbed burst in which nothing arrived", func() result.Trial {
			t := rr(100)
			t.Bursts.Transactions[10], t.Bursts.P50[10], t.Bursts.Disturbed[10] = 0, 0, "cpu-pressure"
			return t
		}, []string{"0 transactions from 0.60 s to 0.61 s (median 41,667/s)"}},
		{"a disturbed burst between two empty ones", func() result.Trial {
			t := rr(100)
			for _, i := range []int{10, 11, 12} {
				t.Bursts.Transactions[i], t.Bursts.P50[i] = 0, 0
			}
			t.Bursts.Transactions[11], t.Bursts.Disturbed[11] = 1, "cpu-pressure"
			return t
		}, []string{"0 transactions from 0.60 s to 0.73 s (median 41,667/s)"}},
		{"a recovery in between", func() result.Trial {
			t := rr(100)
			t.Bursts.Transactions[10], t.Bursts.Transactions[12] = 0, 0
			return t
		}, []string{"0 transactions from 0.60 s to 0.61 s (median 41,667/s)", "0 transactions from 0.72 s to 0.73 s (median 41,667/s)"}},
		{"nothing ever arrived", func() result.Trial {
			t := rr(3)
			t.Bursts.Transactions = []int64{0, 0, 0}
			return t
		}, []string{"0 transactions from 0.00 s to 0.13 s, all that was measured"}},
		{"a search overloads on purpose", func() result.Trial {
			t := rr(3)
			t.Bursts.Transactions[1] = 0
			t.Bursts.NoDrop = []float64{1, 1, 1}
			return stream(t)
		}, nil},
		{"a delay that all have is no hang", func() result.Trial {
			t := rr(50)
			for i := range t.Bursts.P50 {
				t.Bursts.P50[i], t.Bursts.Max[i] = 90e6, 210e6
			}
			return t
		}, nil},
		{"a second of a long burst", func() result.Trial {
			var t result.Trial
			add(&t.Bursts, 5000*ms, 8050*ms, 8060*ms, 8050, 20e3)
			for i := range 9 {
				s := result.Second{At: float64(i), Span: 1, Transactions: 1000}
				switch i {
				case 3, 4:
					s.Transactions = 10
				case 8:
					s.Span, s.Transactions = 0.05, 0
				}
				t.Series = append(t.Series, s)
			}
			t.Bursts.Max[0] = 1.9e9
			return t
		}, []string{"10/s from 8.00 s to 10.00 s (median 1,000/s)"}},
		{"no columns but the times", func() result.Trial {
			t := rr(10)
			t.Bursts.P50, t.Bursts.Throughput = nil, nil
			return t
		}, nil},
	} {
		var got []string
		for _, s := range Find(c.t()) {
			got = append(got, s.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// noisy is a trial as busy machines give them: lognormal noise, drift, two modes as of a cache that fits or does not, datagrams
// that are lost and repeated after 20 ms, and moments without the processor, most of them noticed.
func noisy(rng *rand.Rand) result.Trial {
	var t result.Trial
	n := 30 + rng.IntN(300)
	sigma, drift, bimodal, lossy := 0.02+0.4*rng.Float64(), 2*rng.Float64()-1, rng.IntN(2) == 0, rng.IntN(3) == 0
	at := int64(0)
	for i := range n {
		latency := 20e3 * math.Exp(sigma*rng.NormFloat64()/2+drift*float64(i)/float64(n))
		if bimodal {
			latency *= []float64{0.7, 1}[rng.IntN(2)]
		}
		held, reason := int64(0), ""
		if lossy && rng.IntN(50) == 0 {
			held = (1 + rng.Int64N(2)) * 20 * ms
		}
		if rng.IntN(30) == 0 {
			held = min(int64(rng.ExpFloat64()*10e6), 35*ms)
			if rng.IntN(3) > 0 {
				held, reason = 5*held, "preempted"
			}
		}
		add(&t.Bursts, at, 5*ms+held, 6*ms+held, max(int64(5e6/latency), 1), latency)
		t.Bursts.Max[i] = max(float64(held), latency*(1+100*rng.ExpFloat64()))
		t.Bursts.Disturbed[i] = reason
		at += 6*ms + held + int64(rng.ExpFloat64()*50e6)
	}
	if rng.IntN(3) == 0 {
		return stream(t)
	}
	return t
}

func TestNoiseIsNoStall(t *testing.T) {
	rng := rand.New(rand.NewPCG(2026, 1))
	for i := range 10_000 {
		if found := Find(noisy(rng)); len(found) > 0 {
			t.Fatalf("series %d: %v", i, found)
		}
	}
}

// TestPlantedStallsAreFound lets the network of a noisy trial stand still for a while. Bursts that begin meanwhile give
// nothing, as with streams, or end when it goes on, as with transactions.
// A trial in which the quick look sees that there can be no stall has none, and an ordinary trial needs no other look.
func TestSteadyTrials(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		var trial result.Trial
		lasts := rapid.Int64Range(-ms, 120*ms)
		for i := range rapid.IntRange(0, 30).Draw(t, "bursts") {
			duration := lasts.Draw(t, "duration")
			add(&trial.Bursts, int64(i)*60*ms, duration, duration+lasts.Draw(t, "more"), rapid.Int64Range(-1, 3000).Draw(t, "transactions"), rapid.Float64Range(1, 60e6).Draw(t, "p50"))
			trial.Bursts.Disturbed[i] = rapid.SampledFrom([]string{"", "", NothingArrived, "steal"}).Draw(t, "disturbed")
		}
		if rapid.Bool().Draw(t, "stream") {
			trial = stream(trial)
		}
		r := Usual()
		points := pointsOf(trial.Bursts, nil)
		if found := append(r.collapsed(points), r.hung(points)...); r.steady(points) && len(found) > 0 {
			t.Errorf("a steady trial has stalls: %v", found)
		}
	})
	if trial := rr(100); !Usual().steady(pointsOf(trial.Bursts, nil)) {
		t.Error("an ordinary trial is looked at closely")
	}
}

func TestPlantedStallsAreFound(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		trial := noisy(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)))
		b := &trial.Bursts
		first := rapid.IntRange(0, len(b.Round)-1).Draw(t, "first burst")
		begin := b.Start[first] + rapid.Int64Range(0, b.Span[first]-1).Draw(t, "within it")
		end := begin + rapid.Int64Range(250, 3000).Draw(t, "length in ms")*ms
		empty, shift := rapid.Bool().Draw(t, "empty"), int64(0)
		for i := first; i < len(b.Round); i++ {
			b.Start[i] += shift
			switch at := max(b.Start[i], begin); {
			case at >= end:
				continue
			case empty && i > first:
				b.Transactions[i], b.Throughput[i], b.Span[i] = 0, 0, 6*ms
				b.Disturbed[i] = NothingArrived
			case empty:
				b.Transactions[i], b.Throughput[i] = 0, 0
			default:
				b.Span[i] += end - at
				shift += end - at
				b.Disturbed[i] = ""
			}
		}
		found := Find(trial)
		if len(found) == 0 {
			t.Fatalf("nothing was found between %v and %v", time.Duration(begin), time.Duration(end))
		}
		for _, s := range found {
			if int64(s.At) >= end || int64(s.At+s.Length) <= begin {
				t.Fatalf("%v was found, planted was %v to %v", s, time.Duration(begin), time.Duration(end))
			}
		}
		if !empty && int64(found[0].Length) < end-max(begin, int64(found[0].At)) {
			t.Fatalf("%v is shorter than what was planted, %v to %v", found, time.Duration(begin), time.Duration(end))
		}
	})
}

// TestSecondsOfLongBursts does the same within bursts of many seconds.
func TestSecondsOfLongBursts(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		var trial result.Trial
		bursts, length := rapid.IntRange(1, 4).Draw(t, "bursts"), rapid.Int64Range(6, 30).Draw(t, "seconds")
		at := 1000 * ms
		for range bursts {
			part := rng.Float64()
			begin := float64(at-1000*ms) / 1e9
			add(&trial.Bursts, at, length*1000*ms+int64(part*1e9), length*1000*ms+int64(part*1e9), 1000*length, 20e3)
			for s := range length {
				trial.Series = append(trial.Series, result.Second{At: math.Floor(begin + float64(s)), Span: 1, Transactions: int64(1000 * math.Exp(0.3*rng.NormFloat64()))})
			}
			trial.Series = append(trial.Series, result.Second{At: math.Floor(begin + float64(length)), Span: part, Transactions: int64(1000 * part)})
			at += (length + 2 + rng.Int64N(3)) * 1000 * ms
		}
		if found := Find(trial); len(found) > 0 {
			t.Fatalf("%v in noise", found)
		}
		which := rapid.IntRange(0, int(length)-1).Draw(t, "planted")
		trial.Series[which].Transactions = rapid.Int64Range(0, 40).Draw(t, "left")
		found := Find(trial)
		if len(found) != 1 || found[0].At != time.Second+time.Duration(which)*time.Second || found[0].Length != time.Second {
			t.Fatalf("%v, planted was second %d", found, which)
		}
		if !strings.Contains(found[0].String(), " from ") {
			t.Fatalf("%q", found[0].String())
		}
	})
}
