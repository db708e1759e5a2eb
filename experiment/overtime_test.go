package experiment_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/testbed"
)

// hanging is a driver that opens so many testbeds, and then none before its context ends.
type hanging struct {
	testbed.Provider
	opens *atomic.Int64
}

func (h hanging) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if h.opens.Add(-1) < 0 {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	return h.Provider.Open(ctx, spec)
}

// A run that hangs in its second build is ended some time after its budget, says so, and keeps what it has. The budget holds several builds,
// also of a machine that is busy otherwise.
func TestRunEndsAfterItsOvertime(t *testing.T) {
	t.Parallel()
	c := setUp(t, small([]string{"host", "bridge"}, result.CrossNode), 100, nil)
	const testbeds = 3 // of a build: the baseline has a control
	h := hanging{c.Driver, &atomic.Int64{}}
	h.opens.Store(testbeds)
	c.Driver, c.Rules.Budget, c.Overtime = h, 30*time.Second, time.Second
	began := time.Now()
	run := mustRun(t, c)
	if took := time.Since(began); took < c.Rules.Budget+c.Overtime || took > 2*c.Rules.Budget {
		t.Errorf("a budget of %v with %v of overtime took %v", c.Rules.Budget, c.Overtime, took)
	}
	if notes := strings.Join(run.Notes, "\n"); run.Ended != plan.EndedBudget || !strings.Contains(notes, " 1s ") || !strings.Contains(notes, "30s") {
		t.Errorf("the run ended %q, and says:\n%s", run.Ended, notes)
	}
	if n := len(journal(t, c)); n != testbeds {
		t.Errorf("%d trials are kept, want %d", n, testbeds)
	}
}

// satisfied is a judge that knows everything well enough.
type satisfied struct{ experiment.Judge }

func (s satisfied) Settled(run result.Run, trials []result.Trial) map[string]bool {
	settled := s.Judge.Settled(run, trials)
	for cell := range settled {
		settled[cell] = true
	}
	return settled
}

// A run that has all it wanted does not wait for the next build, which was begun for nothing.
func TestRunDoesNotWaitForTheBuildAhead(t *testing.T) {
	c := setUp(t, small([]string{"host", "bridge"}, result.CrossNode), 0, nil)
	h := hanging{c.Driver, &atomic.Int64{}}
	h.opens.Store(3)
	c.Driver, c.Judge, c.Overtime = h, satisfied{c.Judge}, 0
	c.Rules.MinBuilds, c.Rules.Builds = 1, 1
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	run, err := experiment.Run(ctx, c)
	if err != nil || ctx.Err() != nil || run.Ended != plan.EndedResolved || h.opens.Load() == 0 {
		t.Errorf("the run ended %q, after %d further testbeds were asked for: %v, %v", run.Ended, -h.opens.Load(), err, ctx.Err())
	}
}
