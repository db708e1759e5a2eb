package policies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netdelta/agent"
	"netdelta/experiment/record"
	"netdelta/insight"
	"netdelta/result"
	"netdelta/testbed"
)

// target obeys after some time. Its clock is an hour ahead.
type target struct {
	turns  chan testbed.Turn
	lost   chan struct{}
	delay  time.Duration
	deaf   bool // it does not obey
	closed *int
	alone  int // how often it turns by itself before it is asked to
	slips  int // packets of barred pods that pass
}

const ahead = time.Hour

func (g *target) turn(open bool) {
	at := agent.Now() + ahead + g.delay
	g.turns <- testbed.Turn{Open: open, Before: at - 4*time.Millisecond, Since: at}
}

func (g *target) change(open bool) error {
	if !g.deaf {
		g.turn(open)
	}
	return nil
}

func (g *target) Shut(context.Context) error { return g.change(false) }
func (g *target) Lift(context.Context) error { return g.change(true) }

func (g *target) Restrict(context.Context) error { return g.change(false) }

func (g *target) TryFresh(_ context.Context, admitted bool, _, within time.Duration) (testbed.FreshResult, error) {
	v := testbed.FreshResult{Sent: 9, Settled: g.slips < 9}
	if admitted {
		v.Before, v.After = g.delay-time.Millisecond, g.delay
	} else {
		v.Passed = g.slips
	}
	time.Sleep(within / 2)
	return v, nil
}

func (g *target) Turns() <-chan testbed.Turn { return g.turns }
func (g *target) Lost() <-chan struct{}      { return g.lost }
func (g *target) Close() error               { *g.closed++; return nil }

func (g *target) Clock(context.Context) (testbed.Turn, error) {
	if g.alone > 0 {
		g.alone--
		g.turn(false)
	}
	now := agent.Now() + ahead
	return testbed.Turn{Received: now, Answered: now}, nil
}

// run carries policies out in memory.
func run(ctx context.Context, c Config) (Outcome, error) {
	rec, err := record.Conduct(ctx, c.Head(), nil, nil, c.Measure)
	return Of(rec.Run, rec.Trials), err
}

// TestRun: times are by the controller's clock, what is disturbed is begun anew, and targets are closed.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name              string
		target            target
		opened, disturbed int
		samples           int
		want              string
	}{
		{"obeys", target{delay: 20 * time.Millisecond}, 2, 0, 12, ""},
		{"deaf", target{deaf: true}, 2, 0, 0, "does the cluster enforce"},
		{"restless", target{alone: 100}, 2 * 6, 2 * 5, 0, "by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened, closed := 0, 0
				o, err := run(t.Context(), Config{Counts: []int{1, 100}, Repeat: 3, Every: 4 * time.Millisecond, Within: time.Second,
					Open: func(context.Context, int, time.Duration) (testbed.PolicyTarget, error) {
						opened++
						g := c.target
						g.turns, g.lost, g.closed = make(chan testbed.Turn, 9), make(chan struct{}), &closed
						g.turns <- testbed.Turn{Open: true}
						return &g, nil
					}})
				if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, record.ErrNothing) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("it gives %v, want %q", err, c.want)
				}
				if len(o.Samples) != c.samples || opened != closed {
					t.Errorf("%d samples, %d targets opened and %d closed, %d disturbed", len(o.Samples), opened, closed, o.Disturbed)
				}
				for i, s := range o.Samples {
					want := []Change{Refused, Passing}[i%2]
					if s.Change != want || s.Policies != []int{1, 100}[i/6] || s.After < c.target.delay || s.After > c.target.delay+time.Second || s.After-s.Before != 4*time.Millisecond {
						t.Errorf("sample %d is %+v", i, s)
					}
				}
			})
		})
	}
}

// TestResume: what the record has is not measured again, and its trials say what more policies cost.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed, slower := 0, 0
		c := Config{Counts: []int{1, 100}, Repeat: 2, Every: 4 * time.Millisecond, Within: time.Second}
		c.Open = func(_ context.Context, count int, _ time.Duration) (testbed.PolicyTarget, error) {
			slower++
			g := target{delay: time.Duration(20+count) * time.Millisecond, turns: make(chan testbed.Turn, 9), lost: make(chan struct{}), closed: &closed}
			g.turns <- testbed.Turn{Open: true}
			return &g, nil
		}
		rec := &record.Record{Run: c.Head()}
		for _, want := range []int{2, 6, 6} {
			c.Repeat = want
			err := c.Measure(t.Context(), rec)
			if o := Of(rec.Run, rec.Trials); err != nil || len(o.Samples) != 4*want || len(rec.Trials) != 4*want {
				t.Fatalf("%d samples after %d repetitions, %d trials: %v", len(o.Samples), want, len(rec.Trials), err)
			}
		}
		if slower != 4 {
			t.Errorf("%d targets were opened, want 2 for each of 2 runs that had to measure", slower)
		}
		run := rec.Run
		insight.NewJudge(nil).Conclude(&run, insight.Summarize(result.List(rec.Trials)))
		if len(run.Effects) != 2 || run.Effects[0].To != "kubernetes:100" || run.Effects[0].Verdict != "slower" || run.Effects[0].Blocks != 6 {
			t.Errorf("the effects are %+v", run.Effects)
		}
	})
}

// TestFresh: fresh pods are measured after the changes, by what they say themselves; what never settles fails by name.
func TestFresh(t *testing.T) {
	for slips, want := range map[int]string{0: "", 2: "", 9: "9 of 9 packets of a fresh pod passed within 1s, although no policy lets it in"} {
		synctest.Test(t, func(t *testing.T) {
			closed := 0
			o, err := run(t.Context(), Config{Counts: []int{7}, Repeat: 2, Fresh: true, Every: 4 * time.Millisecond, Within: time.Second,
				Open: func(context.Context, int, time.Duration) (testbed.PolicyTarget, error) {
					g := target{delay: 20 * time.Millisecond, slips: slips, turns: make(chan testbed.Turn, 9), lost: make(chan struct{}), closed: &closed}
					g.turns <- testbed.Turn{Open: true}
					return &g, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			if want != "" {
				if len(o.Samples) != 4 || len(o.Failures) != 1 || !strings.Contains(o.Failures[0].Why, want) {
					t.Errorf("%d samples, failures %+v", len(o.Samples), o.Failures)
				}
				return
			}
			if len(o.Samples) != 8 || len(o.Failures) > 0 || closed != 1 {
				t.Fatalf("%d samples, failures %+v", len(o.Samples), o.Failures)
			}
			for i, s := range o.Samples[4:] {
				after, passed := []time.Duration{20 * time.Millisecond, 0}[i%2], []int{0, slips}[i%2]
				if s.Change != []Change{Admitted, Barred}[i%2] || s.Policies != 7 || s.After != after || s.Slipped != passed || s.ClockError != 0 {
					t.Errorf("sample %d is %+v", i, s)
				}
			}
		})
	}
}

func TestCheck(t *testing.T) {
	good := Config{Counts: []int{1}, Repeat: 1, Every: time.Millisecond}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"no number":    func(c *Config) { c.Counts = nil },
		"0 policies":   func(c *Config) { c.Counts = []int{0} },
		"repetitions":  func(c *Config) { c.Repeat = 0 },
		"a probe ever": func(c *Config) { c.Every = 0 },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
