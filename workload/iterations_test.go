package workload

import (
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/result"
)

// A number of transactions takes as long as their rate says, or as they take one after another.
func TestIterated(t *testing.T) {
	t.Parallel()
	own := result.OwnOf("iterations", 1000)
	for name, c := range map[string]struct {
		kind  engine.Kind
		p     result.Params
		count int
		least time.Duration
		most  time.Duration
	}{
		"none":        {engine.StreamRR, result.Params{}, 0, 0, 0},
		"a rate":      {engine.StreamRR, result.Params{Own: own, RequestRate: 100}, 1000, 10 * time.Second, 10 * time.Second},
		"one by one":  {engine.StreamRR, result.Params{Own: own}, 1000, 10 * time.Millisecond, time.Second},
		"a long link": {engine.StreamRR, result.Params{Own: own, Conditions: result.Conditions{LinkDelay: 5 * time.Millisecond}}, 1000, 10 * time.Second, 11 * time.Second},
		"several":     {engine.StreamRR, result.Params{Own: own, Connections: 10, Conditions: result.Conditions{LinkDelay: 5 * time.Millisecond}}, 1000, time.Second, 2 * time.Second},
		"connecting":  {engine.ConnectRR, result.Params{Own: own}, 1000, 100 * time.Millisecond, time.Second},
	} {
		d := iterated(c.kind, c.p)
		if d.Transactions != c.count || d.Lasting < c.least || d.Lasting > c.most {
			t.Errorf("%s: %d transactions in %v", name, d.Transactions, d.Lasting)
		}
	}
}
