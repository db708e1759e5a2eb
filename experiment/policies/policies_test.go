package policies

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"netdelta/internal/agent"
	"netdelta/testbed/kube/inside"
)

// gate obeys after some time. Its clock is an hour ahead.
type gate struct {
	turns  chan inside.Turn
	lost   chan struct{}
	delay  time.Duration
	deaf   bool // it does not obey
	closed *int
	alone  int // how often it turns by itself before it is asked to
}

const ahead = time.Hour

func (g *gate) turn(open bool) {
	at := agent.Now() + ahead + g.delay
	g.turns <- inside.Turn{Open: open, Before: at - 4*time.Millisecond, Since: at}
}

func (g *gate) change(open bool) error {
	if !g.deaf {
		g.turn(open)
	}
	return nil
}

func (g *gate) Shut(context.Context) error { return g.change(false) }
func (g *gate) Lift(context.Context) error { return g.change(true) }

func (g *gate) Turns() <-chan inside.Turn { return g.turns }
func (g *gate) Lost() <-chan struct{}     { return g.lost }
func (g *gate) Close() error              { *g.closed++; return nil }

func (g *gate) Clock(context.Context) (inside.Turn, error) {
	if g.alone > 0 {
		g.alone--
		g.turn(false)
	}
	now := agent.Now() + ahead
	return inside.Turn{Received: now, Answered: now}, nil
}

// TestRun: times are by the controller's clock, what is disturbed is begun anew, and gates are closed.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name              string
		gate              gate
		opened, disturbed int
		samples           int
		want              string
	}{
		{"obeys", gate{delay: 20 * time.Millisecond}, 2, 0, 12, ""},
		{"deaf", gate{deaf: true}, 2, 0, 0, "does the cluster enforce"},
		{"restless", gate{alone: 100}, 2 * 6, 2 * 5, 0, "by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opened, closed := 0, 0
				o, err := Run(t.Context(), Config{Counts: []int{1, 100}, Repeat: 3, Every: 4 * time.Millisecond, Within: time.Second,
					Open: func(context.Context, int, time.Duration) (Gate, error) {
						opened++
						g := c.gate
						g.turns, g.lost, g.closed = make(chan inside.Turn, 9), make(chan struct{}), &closed
						g.turns <- inside.Turn{Open: true}
						return &g, nil
					}})
				if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNothing) || !strings.Contains(err.Error(), c.want)) {
					t.Errorf("it gives %v, want %q", err, c.want)
				}
				if len(o.Samples) != c.samples || opened != closed {
					t.Errorf("%d samples, %d gates opened and %d closed, %d disturbed", len(o.Samples), opened, closed, o.Disturbed)
				}
				for i, s := range o.Samples {
					want := []Change{Refused, Passing}[i%2]
					if s.Change != want || s.Policies != []int{1, 100}[i/6] || s.After < c.gate.delay || s.After > c.gate.delay+time.Second || s.After-s.Before != 4*time.Millisecond {
						t.Errorf("sample %d is %+v", i, s)
					}
				}
			})
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
