package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"netdelta/experiment/blocks"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/sidebyside"
	"netdelta/experiment/states"
	"netdelta/internal/gather"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Config is all that a run needs. Prepare makes the Run in it.
type Config struct {
	// Run is the head of the record: study, seed, cells, environment, notes. Run fills in the rest.
	Run result.Run
	// Rules and Costs are what the scheduler keeps to and starts from.
	Rules plan.Rules
	Costs plan.Costs
	// Admits says that cells of the Run that are skipped come in when there is time for them.
	Admits bool
	measure.Config
	// Blocks asks for live swaps in place of networks side by side.
	Blocks bool
	// Overtime is how long after its time budget a run is ended that waits still; 0 never ends it.
	Overtime time.Duration
	// Changer makes the Changes; nil where nothing can be changed. Run closes it.
	Changer  testbed.Changer
	Folder   *result.Folder
	Progress Progress
	Judge    Judge
}

// Judge makes of trials what the reader wants to know. An experiment asks it after each build which cells are known well
// enough, and at the end for everything that follows from the trials.
type Judge interface {
	Settled(run result.Run, trials []result.Trial) map[string]bool
	Conclude(run *result.Run, trials []result.Trial)
}

// Progress is told how far a run is.
type Progress interface {
	// Update may be called often: it must return at once.
	Update(Status)
}

// Doing is what a run does.
type Doing string

// What a run does, one after the other; the middle three for each build.
const (
	Preparing Doing = "preparing" // fills what it measures against, tries volumes
	SettingUp Doing = "setting up"
	Measuring Doing = "measuring"
	Judging   Doing = "judging" // collects the trials of a build, and removes its networks
	Ending    Doing = "ending"  // removes everything
)

// Status is how far a run is.
type Status struct {
	Doing                Doing
	Build, Round, Rounds int // numbers from 1; Rounds is how many this build is planned to have
	Cells                int // measured in this build
	Elapsed, Budget      time.Duration
	Open                 int // cells that are not known well enough yet; -1 before the first build is done
}

// Run carries out the experiment and returns its record, which it has also written to the run folder. Trials that fail are
// named in the record; an error means that the run as a whole could not go on, and even then the record holds all that was
// measured. An interruption (the end of ctx) is no error: Run.Ended says it.
func Run(ctx context.Context, c Config) (result.Run, error) {
	r := newRunner(c)
	rec, err := record.Conduct(ctx, r.Run, c.Folder, c.Judge, func(ctx context.Context, rec *record.Record) error {
		r.Run = rec.Run
		err := r.measure(ctx)
		rec.Run, rec.Trials = r.Run, r.trials
		return err
	})
	return rec.Run, err
}

// measure carries out the scheduler's steps from the first to the last, gives back what the run holds, and says what was seen.
func (r *runner) measure(ctx context.Context) error {
	m := r.context
	all := append(plan.Measured(r.Run.Cells), r.later()...)
	r.Progress.Update(Status{Doing: Preparing, Cells: len(all), Budget: r.Rules.Budget, Open: r.open})
	err := m.Targets.Hold(ctx, all)
	r.Run.Notes = slices.Concat(m.Targets.Notes(), r.Run.Notes)
	if err == nil {
		err = m.TryVolumes(ctx, all)
	}
	r.began = time.Now() // the time is for measuring, not for what is put into targets, nor for volumes that are tried
	if err == nil {
		err = r.bounded(ctx)
	}
	if ctx.Err() != nil {
		r.Run.Ended = plan.EndedInterrupted
	} else if err != nil {
		r.Run.Ended = plan.EndedFailed
	}
	r.report(Ending, r.step)
	if r.Machine != nil {
		r.Run.Notes = append(r.Run.Notes, quotaNotes(r.Machine.Quotas())...)
	}
	err = errors.Join(err, r.strategy.Close(), m.Targets.Release(ctx), r.writer.close(), r.Kernel.Close(), r.rounds.Close())
	r.Run.Environment = onNodes(m.Observed.Environment(r.Run.Environment), m.Observed.Nodes())
	r.Run.Notes = slices.Concat(m.Observed.Notes(r.Run.Notes), interruptNotes(r.Run.Environment.Servers, r.Pins), m.Health.Notes())
	r.Run.Notes = r.scheduler.Shed().Explain(r.Run.Notes)
	return err
}

// quotaNotes name the limits on processor time that stopped the run.
func quotaNotes(quotas []pressure.Quota) []string {
	return gather.Each(quotas, func(q pressure.Quota) string {
		allowed := "a limit on processor time"
		if q.Processors > 0 {
			allowed = fmt.Sprintf("a limit of %.3g processors", q.Processors)
		}
		return fmt.Sprintf("%s (%s) stopped this run %s, for %v in all, and bursts meanwhile don't count: raise it with CPUQuota= of a service, "+
			"--cpus of a container or limits.cpu of a pod", allowed, q.File, unit.Counted(int(q.Times), "time"), q.Span.Round(time.Millisecond))
	})
}

// runner is a run under way.
type runner struct {
	Config
	context   *measure.Context
	rounds    *measure.Rounds
	strategy  Strategy
	scheduler *plan.Scheduler
	writer    *writer
	began     time.Time

	trials   []result.Trial
	failures map[string]failures // by cell
	lost     int                 // workloads whose services were given up
	left     int                 // cells that were left out on the way, or have come in
	open     int                 // as in Status
	measured int                 // rounds of this build, repeated ones included
	repeated int                 // rounds of this build
	prepared int                 // the build that was last set up ahead
	step     plan.Step           // that is carried out
	whole    atomic.Bool         // a trial was measured in this run
}

func newRunner(c Config) *runner {
	r := &runner{
		Config: c, began: time.Now(), trials: c.Folder.Contents.Trials, failures: map[string]failures{}, open: -1,
	}
	r.Run.Adaptive = c.Rules.MaxBuilds == 0
	if r.Run.Started.IsZero() {
		r.Run.Started = r.began
	}
	r.context = measure.NewContext(c.Config, c.Run)
	r.rounds = measure.NewRounds(r.context, r.Run.Started, c.Blocks)
	r.strategy = r.newStrategy()
	r.scheduler = plan.NewScheduler(c.Run.Cells, c.Rules, c.Costs)
	r.scheduler.Later(r.later())
	r.scheduler.Resume(finishedBuilds(r.trials))
	r.writer = startWriter(c.Folder)
	return r
}

// later are the cells that may come in.
func (r *runner) later() []result.Cell {
	if !r.Admits {
		return nil
	}
	return plan.Waiting(r.Run.Cells)
}

func (r *runner) elapsed() time.Duration { return time.Since(r.began) }

// loop carries out the scheduler's steps until it says that the run is over.
func (r *runner) loop(ctx context.Context) error {
	for {
		step := r.scheduler.Next(r.elapsed())
		r.shed()
		if step.Kind == plan.StepBuild || step.Kind == plan.StepRound {
			r.step = step
		}
		var err error
		switch step.Kind {
		case plan.StepBuild:
			err = r.build(ctx, step)
		case plan.StepRound:
			err = r.round(ctx, step)
		case plan.StepCollect:
			err = r.collect(ctx, step)
		case plan.StepEnd:
			r.Run.Ended = step.Ended
			return nil
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, r.rescue(ctx))
		}
	}
}

// shed marks what the scheduler has left out because what the run is on is slower than was planned for, and what has come in because it is
// faster.
func (r *runner) shed() {
	shed := r.scheduler.Shed()
	if len(shed.Cells)+len(shed.In) == r.left {
		return
	}
	r.left, r.Run.Cells = len(shed.Cells)+len(shed.In), shed.Mark(r.Run.Cells)
	r.strategy.LeaveOut(shed.Cells)
}

func (r *runner) build(ctx context.Context, step plan.Step) error {
	r.measured, r.repeated = 0, 0
	r.report(SettingUp, step)
	if err := r.strategy.Begin(ctx, step.Build, step.Cells); err != nil {
		return fmt.Errorf("build %d: %w", step.Build+1, err)
	}
	r.scheduler.Once(r.strategy.Once())
	r.scheduler.Renewal(r.strategy.Renewal())
	r.scheduler.Built(r.elapsed())
	r.ahead(ctx, step)
	return nil
}

// ahead has the next build set up in the background, once in each build, as soon as it is known what it will have.
func (r *runner) ahead(ctx context.Context, step plan.Step) {
	if r.prepared > step.Build || !r.scheduler.Known() {
		return
	}
	r.prepared = step.Build + 1
	if cells, ok := r.scheduler.Ahead(); ok {
		r.strategy.Prepare(ctx, r.prepared, cells)
	}
}

// round measures once. A disturbed round is repeated, but a machine that is disturbed more often than not would never get
// done: then its rounds count as they are, their bursts marked.
func (r *runner) round(ctx context.Context, step plan.Step) error {
	r.report(Measuring, step)
	spans, disturbed, err := r.strategy.Round(ctx, r.measured)
	if err != nil {
		return fmt.Errorf("round %d of build %d: %w", step.Round+1, step.Build+1, err)
	}
	r.measured++
	r.dropLost()
	if disturbed && r.repeated <= step.Rounds/2 {
		r.repeated++
		return nil
	}
	r.scheduler.Once(r.strategy.Once())
	r.scheduler.Measured(r.elapsed(), spans)
	r.ahead(ctx, step)
	return nil
}

func (r *runner) collect(ctx context.Context, step plan.Step) error {
	r.report(Judging, r.step)
	trials, err := r.strategy.Collect(ctx)
	r.keep(trials)
	if err != nil {
		return fmt.Errorf("collecting build %d: %w", step.Build+1, err)
	}
	settled := r.Judge.Settled(r.Run, r.trials)
	r.scheduler.Resolve(settled)
	r.open = 0
	for _, known := range settled {
		if !known {
			r.open++
		}
	}
	r.giveUp(trials)
	r.scheduler.Collected(r.elapsed())
	return r.writer.failed()
}

// rescue keeps what an interrupted build has measured so far.
func (r *runner) rescue(ctx context.Context) error {
	within := rescueTime
	if p := r.Program.Patience; p > 0 {
		within = min(within, 2*p)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	trials, err := r.strategy.Collect(ctx)
	r.keep(trials)
	return err
}

// rescueTime bounds the collection of what an interrupted build has measured.
const rescueTime = 10 * time.Second

// keep hands trials to the journal. Trials without a single burst and without a failure have nothing to say.
func (r *runner) keep(trials []result.Trial) {
	for _, t := range trials {
		if len(t.Bursts.Round) == 0 && t.Failed == "" {
			continue
		}
		r.noteCongestion(t)
		if t.Failed == "" {
			r.whole.Store(true)
		}
		r.trials = append(r.trials, t)
		r.writer.append(t)
	}
}

// dropLost takes cells out of the run whose services were given up.
func (r *runner) dropLost() {
	health := r.context.Health
	if health.Losses() == r.lost {
		return
	}
	r.lost = health.Losses()
	for _, c := range r.Run.Cells {
		if health.GivenUp(endpoint.Key(c, measure.DemandOf(r.context.Workloads, c))) {
			r.scheduler.Drop(c.ID)
		}
	}
}

func (r *runner) report(doing Doing, step plan.Step) {
	r.Progress.Update(Status{
		Doing: doing, Build: step.Build + 1, Round: step.Round + 1, Rounds: step.Rounds, Cells: len(step.Cells),
		Elapsed: r.elapsed(), Budget: r.Rules.Budget, Open: r.open,
	})
}

// finishedBuilds are the builds that a journal holds.
func finishedBuilds(trials []result.Trial) []plan.Finished {
	var builds []plan.Finished
	at := map[int]int{}
	for _, t := range trials {
		i, known := at[t.Build]
		if !known {
			i = len(builds)
			at[t.Build] = i
			builds = append(builds, plan.Finished{Build: t.Build})
		}
		if t.Failed != "" {
			continue // the build has its number all the same
		}
		builds[i].Cells = append(builds[i].Cells, t.Cell)
		builds[i].Rounds = max(builds[i].Rounds, len(t.Bursts.Round))
	}
	return builds
}

// writer appends trials to the journal in the background, in order: each append waits for the disk, and measuring need not.
type writer struct {
	trials chan result.Trial
	done   chan struct{}

	mu  sync.Mutex
	err error
}

// pendingTrials is how many trials may wait for the disk before measuring waits too.
const pendingTrials = 1024

func startWriter(folder *result.Folder) *writer {
	w := &writer{trials: make(chan result.Trial, pendingTrials), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for t := range w.trials {
			// After a failure nothing more is written: a later trial must not stand in the journal without an earlier one.
			if w.failed() == nil {
				w.fail(folder.Append(t))
			}
		}
	}()
	return w
}

func (w *writer) append(t result.Trial) { w.trials <- t }

// failed gives the error that ended writing, if one did.
func (w *writer) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

// close waits until all is written.
func (w *writer) close() error {
	close(w.trials)
	<-w.done
	return w.failed()
}

// Strategy measures cells build by build. The calls follow the scheduler's steps: Begin, any number of Rounds, Collect.
type Strategy interface {
	// Begin sets the build up.
	Begin(ctx context.Context, build int, cells []result.Cell) error
	// Prepare may start to set up the next build in the background.
	Prepare(ctx context.Context, build int, cells []result.Cell)
	// Round measures each cell once and gives the time that each took, in the order of Begin's cells. disturbed says that the
	// machine did something else meanwhile, so that the round has to be repeated.
	Round(ctx context.Context, round int) (spans []time.Duration, disturbed bool, err error)
	// LeaveOut takes cells out of the build under way: they are not measured any more, and give no trial.
	LeaveOut(cells []string)
	// Once is the time spent since the last call on what serves the whole run instead of one build.
	Once() time.Duration
	// Renewal is what the next build will cost of that, as far as it is known.
	Renewal() time.Duration
	// Collect gives the trials of the build, also of one that was interrupted, and removes its networks.
	Collect(ctx context.Context) ([]result.Trial, error)
	// Close removes everything that is up or under way.
	Close() error
}

// newStrategy is the catalogue: a further strategy is a package and a case here.
func (r *runner) newStrategy() Strategy {
	switch {
	case len(r.Changes) > 0:
		return states.New(r.context, r.rounds, r.Changer)
	case r.Blocks:
		return blocks.New(r.context, r.rounds, func() time.Duration { return r.Rules.Budget - r.elapsed() })
	}
	return sidebyside.New(r.context, r.rounds)
}
