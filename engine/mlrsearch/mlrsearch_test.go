package mlrsearch

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/property"
)

const budget = 400 * time.Millisecond

// mustSearch searches, and holds the search to its bounds.
func mustSearch(t rapid.TB, c Config, d *device) Result {
	t.Helper()
	r, err := Search(c, d.trial)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Found) != len(c.Goals) || r.Trials != len(d.trials) || r.Trials > c.Trials || r.Elapsed > c.Time+overhead {
		t.Fatal("the search took", r.Trials, "trials of", c.Trials, "and", r.Elapsed, "of", c.Time, "in", len(d.trials))
	}
	return r
}

// TestSharpCapacity: the bounds enclose the truth, and are as close as was asked, whatever the capacity and the range.
func TestSharpCapacity(t *testing.T) {
	most := 0
	property.Check(t, func(t *rapid.T) {
		d := &device{capacity: math.Exp(rapid.Float64Range(math.Log(2e4), math.Log(2e6)).Draw(t, "capacity"))}
		c := Standard(budget, 100, d.capacity*rapid.Float64Range(1.001, 1e4).Draw(t, "most"), 0.005)
		r := mustSearch(t, c, d)
		most = max(most, r.Trials)
		for i, f := range r.Found {
			truth := d.truth(c.Goals[i].LossRatio)
			// Trials count whole datagrams: a share is seen to one datagram, in the shortest.
			one := 1 + 1/(d.capacity*c.Goals[i].Initial.Seconds())
			enclosed := f.Lower <= truth*one && (f.Upper == 0 && f.AtLeast || f.Upper >= truth/one)
			if !enclosed || !f.Narrow {
				t.Fatalf("goal %d: %+v of %.0f", i, f, truth)
			}
			if f.Upper != 0 && (f.AtLeast || f.Lower < f.Upper*(1-c.Goals[i].Width)*0.999) {
				t.Fatalf("goal %d: bounds %+v are wider than %v", i, f, c.Goals[i].Width)
			}
			if f.Upper == 0 && f.Lower < c.Most*(1-Width)*0.999 {
				t.Fatalf("goal %d: %+v ends below the highest rate %.0f", i, f, c.Most)
			}
		}
	})
	if most > 45 {
		t.Errorf("a search on a quiet network took up to %d trials", most)
	}
}

// TestDisturbances: one lucky or unlucky trial does not decide.
func TestDisturbances(t *testing.T) {
	tests := []struct {
		name   string
		device device
		within float64 // of the truth, for nine searches in ten
	}{
		{"one trial in ten has half the capacity", device{disturbed: 0.1}, 0.03},
		{"the capacity scatters by 2%", device{scatter: 0.02}, 0.05},
		{"both", device{disturbed: 0.05, scatter: 0.01}, 0.04},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			const searches = 300
			far, sum := [2]int{}, [2]float64{}
			for seed := range uint64(searches) {
				rng := rand.New(rand.NewPCG(seed, 7))
				d := test.device
				d.capacity, d.rng = 1e5*(1+9*rng.Float64()), rng
				r := mustSearch(t, Standard(budget, 100, 1e9, 0.005), &d)
				for i, f := range r.Found {
					off := math.Log(f.Lower / d.truth([]float64{0, PartialLoss}[i]))
					sum[i] += off
					if math.Abs(off) > test.within {
						far[i]++
					}
				}
			}
			for i := range far {
				if far[i] > searches/10 {
					t.Errorf("goal %d: %d of %d searches miss the truth by more than %v", i, far[i], searches, test.within)
				}
				// The lower bound lies half a width below the truth on average.
				if mean := sum[i] / searches; mean < -test.within || mean > test.within/2 {
					t.Errorf("goal %d: the lower bound lies %.2f%% off the truth on average", i, 100*mean)
				}
			}
		})
	}
}

// TestGradualLoss: where loss grows slowly with the rate, the two goals part.
func TestGradualLoss(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		d := &device{
			capacity: rapid.Float64Range(2e5, 2e6).Draw(t, "capacity"),
			gradual:  rapid.Float64Range(0.2, 0.6).Draw(t, "gradual"),
		}
		c := Standard(budget, 100, 1e8, 0.005)
		c.Time *= 2 // goals that lie apart share few trials
		r := mustSearch(t, c, d)
		for i, f := range r.Found {
			g := c.Goals[i]
			// Trials count whole datagrams: a share is seen to one datagram, in the shortest.
			one := 1 / (f.Lower * g.Initial.Seconds())
			least, most := d.truth(max(0, g.LossRatio-one)), d.truth(g.LossRatio+one)
			if f.Lower > most*1.0001 || f.Upper < least*0.9999 || !f.Narrow {
				t.Fatalf("goal %d: %+v, want a rate of %.0f to %.0f between", i, f, least, most)
			}
		}
		if r.Found[1].Lower <= r.Found[0].Lower {
			t.Fatalf("a loss of %v gains nothing: %+v", PartialLoss, r.Found)
		}
	})
}

// TestConstantLoss: a network that loses a little at any rate has no rate without loss, and its rate with little loss is its
// capacity.
func TestConstantLoss(t *testing.T) {
	high, off := 0, 0
	for seed := range uint64(100) {
		d := &device{capacity: 1e6, random: 0.001, rng: rand.New(rand.NewPCG(seed, 3))}
		c := Standard(budget, 100, 1e9, 0.005)
		c.Time *= 2 // goals that lie apart share few trials
		r := mustSearch(t, c, d)
		// Half of the trials lose nothing at this rate; at four times that, one in sixteen.
		free := math.Ln2 / d.random / c.Goals[0].Final.Seconds()
		if none := r.Found[0]; none.Lower > 4*free {
			high++
		}
		if little := r.Found[1]; math.Abs(little.Lower/d.capacity-1) > 0.04 {
			off++
		}
	}
	if high > 5 || off > 2 {
		t.Errorf("of 100 searches %d find a rate without loss that has none, and %d miss the rate with little loss", high, off)
	}
}

// TestSenderIsTheLimit: a network that carries whatever the sender sends is not said to end there.
func TestSenderIsTheLimit(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		sender := math.Exp(rapid.Float64Range(math.Log(2e4), math.Log(2e6)).Draw(t, "sender"))
		d := &device{capacity: 1e9, sender: sender}
		c := Standard(budget, 100, 1e8, 0.005)
		for _, f := range mustSearch(t, c, d).Found {
			if !f.AtLeast || !f.Narrow || f.Lower < sender*(1-Width) || f.Lower > sender*1.02 {
				t.Fatalf("%+v, want at least some %.0f", f, sender)
			}
		}
	})
	// And one that loses before the sender is at its end is.
	d := &device{capacity: 9e4, sender: 1e5}
	for _, f := range mustSearch(t, Standard(budget, 100, 1e8, 0.005), d).Found {
		if f.AtLeast {
			t.Errorf("%+v of a network that carries %v and a sender that sends %v", f, d.capacity, d.sender)
		}
	}
}

// TestNothingArrives: a search that finds nothing says so, and ends.
func TestNothingArrives(t *testing.T) {
	d := &device{capacity: 1e-9}
	for _, f := range mustSearch(t, Standard(budget, 100, 1e9, 0.005), d).Found {
		if f.Lower != 0 || f.AtLeast {
			t.Errorf("%+v, want nothing", f)
		}
	}
}

// TestEndsInTime: whatever the network does, a search keeps its bounds, and its results are in order.
func TestEndsInTime(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		c := Standard(time.Duration(rapid.Int64Range(1e6, 1e9).Draw(t, "time")), 100, 1e7, 0.005)
		c.Trials = rapid.IntRange(1, 200).Draw(t, "trials")
		d := &device{
			capacity: rapid.Float64Range(1, 1e8).Draw(t, "capacity"), sender: rapid.Float64Range(1, 1e8).Draw(t, "sender"),
			disturbed: rapid.Float64Range(0, 1).Draw(t, "disturbed"), scatter: rapid.Float64Range(0, 1).Draw(t, "scatter"),
			rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)),
		}
		r := mustSearch(t, c, d)
		for i, f := range r.Found {
			if f.Lower < 0 || f.Lower > c.Most*1.0001 || f.Upper > c.Most*1.0001 || f.Upper != 0 && i == 0 && f.Lower >= f.Upper {
				t.Fatalf("goal %d: %+v", i, f)
			}
		}
		if r.Found[1].Lower < r.Found[0].Lower {
			t.Fatalf("%+v: less with some loss than without", r.Found)
		}
		again := *d
		again.trials, again.rng = nil, rand.New(rand.NewPCG(1, 1))
		first := mustSearch(t, c, &again)
		again.trials, again.rng = nil, rand.New(rand.NewPCG(1, 1))
		for i, f := range mustSearch(t, c, &again).Found {
			if f != first.Found[i] {
				t.Fatalf("the same network gives %+v and %+v", first.Found[i], f)
			}
		}
	})
}

// TestTrialsGrow: wide bounds are sought in short trials.
func TestTrialsGrow(t *testing.T) {
	d := &device{capacity: 3e5}
	c := Standard(budget, 100, 1e9, 0.005)
	mustSearch(t, c, d)
	longest, long := time.Duration(0), 0
	for i, s := range d.trials {
		if s.duration < longest {
			t.Errorf("trial %d of %v follows one of %v", i, s.duration, longest)
		}
		longest = max(longest, s.duration)
		if s.duration == c.Goals[0].Final {
			long++
		}
	}
	if longest != c.Goals[0].Final || d.trials[0].duration != c.Goals[0].Initial || long > len(d.trials)*3/4 {
		t.Errorf("trials %v, want most of the search in short ones", d.trials)
	}
}

// TestClassify holds the rule against cases worked out by hand: three trials of 10 ms decide by majority.
func TestClassify(t *testing.T) {
	const unit = 10 * time.Millisecond
	p := phase{goal: Goal{LossRatio: 0.005, ExceedRatio: 0.5}, duration: unit, sum: 3 * unit}
	good, bad := trial{duration: unit, loss: 0.005}, trial{duration: unit, loss: 0.006}
	starved := trial{duration: unit, starved: true}
	shortBad, shortGood := trial{duration: unit / 4, loss: 1}, trial{duration: unit / 4}
	tests := []struct {
		name   string
		trials []trial
		want   class
	}{
		{"nothing", nil, undecided},
		{"one good", []trial{good}, undecided},
		{"two good", []trial{good, good}, lower},
		{"two bad", []trial{bad, bad}, upper},
		{"a good and a bad", []trial{good, bad}, undecided},
		{"the majority is good", []trial{good, bad, good}, lower},
		{"the majority is bad", []trial{bad, good, bad}, upper},
		{"a sender that could not", []trial{starved, good, starved}, upper},
		{"short good ones are no proof", []trial{shortGood, shortGood, shortGood, shortGood, shortGood, shortGood}, undecided},
		{"short bad ones count", []trial{shortBad, shortBad, shortBad, shortBad, shortBad, shortBad, shortBad}, upper},
		{"short good ones excuse short bad ones", []trial{shortBad, shortGood, good, good}, lower},
	}
	for _, test := range tests {
		l := load{trials: test.trials}
		if got := l.classify(p); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("the path is gone")
	n := 0
	_, err := Search(Standard(budget, 100, 1e9, 0.005), func(float64, time.Duration) (Outcome, error) {
		if n++; n == 3 {
			return Outcome{}, broken
		}
		return Outcome{Due: 100, Sent: 100, Rate: 1e5}, nil
	})
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "trial 3") || n != 3 {
		t.Errorf("after %d trials: %v", n, err)
	}
	for name, change := range map[string]func(*Config){
		"goal":         func(c *Config) { c.Goals = nil },
		"loss ratio":   func(c *Config) { c.Goals[0].LossRatio = 1 },
		"exceed ratio": func(c *Config) { c.Goals[0].ExceedRatio = math.NaN() },
		"width":        func(c *Config) { c.Goals[1].Width = 0 },
		"together":     func(c *Config) { c.Goals[1].Sum = 1 },
		"coarser":      func(c *Config) { c.Goals[1].Coarser = -1 },
		"follows":      func(c *Config) { c.Goals[0].LossRatio = 0.1 },
		"rates":        func(c *Config) { c.Most = math.Inf(1) },
		"unsent":       func(c *Config) { c.Unsent = 1 },
		"trials":       func(c *Config) { c.Time = 0 },
	} {
		c := Standard(budget, 100, 1e9, 0.005)
		change(&c)
		if _, err := Search(c, (&device{capacity: 1e5}).trial); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
