package live

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"netdelta/experiment"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
)

// progressEvery is how often events say how far a run is, unless it does something else.
const progressEvery = 5 * time.Second

// Events writes a run as it goes, one JSON object a line (schema/event.schema.json). It is safe for concurrent use. A nil Events writes nothing.
type Events struct {
	mu    sync.Mutex
	w     io.Writer
	now   func() time.Time
	told  int // trials
	last  time.Time
	doing experiment.Doing
	build int
	err   error
}

// NewEvents writes events on w.
func NewEvents(w io.Writer) *Events { return &Events{w: w, now: time.Now} }

// Err is why an event could not be written, nil where all were. After it none is written.
func (e *Events) Err() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// tell writes an event; the caller holds the lock.
func (e *Events) tell(event result.Event) {
	if e.err != nil {
		return
	}
	event.Schema, event.Time = result.Schema, e.now().UTC()
	line, err := json.Marshal(event)
	if err == nil {
		_, err = e.w.Write(append(line, '\n'))
	}
	if err != nil {
		e.err = fmt.Errorf("write the event %s: %w", event.Event, err)
	}
}

// Started tells what the run is of.
func (e *Events) Started(run result.Run, folder string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	cells := gather.Where(run.Cells, func(c result.Cell) bool { return c.Unsupported == "" && c.Skipped == "" })
	e.tell(result.Event{Event: result.EventRunStarted, Run: &result.RunStarted{
		Run: run.Run, Folder: folder, Study: run.Study, Testbed: run.Testbed, Baseline: run.Baseline(), Cells: len(cells),
	}})
}

// Waiting tells what the run waits for before it measures.
func (e *Events) Waiting(what string) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tell(result.Event{Event: result.EventWaiting, WaitingFor: what})
}

// Update tells that a build begins, and how far the run is: now and then, and when it does something else.
func (e *Events) Update(s experiment.Status) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	kind := result.EventProgress
	switch now := e.now(); {
	case s.Doing == experiment.SettingUp && s.Build != e.build:
		kind, e.build = result.EventBuildBegun, s.Build
	case s.Doing == e.doing && now.Sub(e.last) < progressEvery:
		return
	}
	e.doing, e.last = s.Doing, e.now()
	e.tell(result.Event{Event: kind, Progress: progressed(s)})
}

func progressed(s experiment.Status) *result.EventProgressed {
	p := &result.EventProgressed{
		Doing: string(s.Doing), Build: s.Build, Round: s.Round, Rounds: s.Rounds, Cells: s.Cells, Elapsed: s.Elapsed.Seconds(), Budget: s.Budget.Seconds(),
	}
	if s.Open >= 0 {
		p.Open = &s.Open
	}
	return p
}

// Judged tells of the trials that have come since it was last called, and of the headline deltas so far.
func (e *Events) Judged(trials []result.Trial, deltas []result.Delta) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finished(trials)
	e.tell(result.Event{Event: result.EventDeltas, Deltas: deltas})
}

// Finished tells of the trials that have come since it was last called.
func (e *Events) Finished(trials []result.Trial) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.finished(trials)
}

func (e *Events) finished(all []result.Trial) {
	for _, t := range all[min(e.told, len(all)):] {
		e.tell(result.Event{Event: result.EventTrialFinished, Trial: &result.TrialFinished{
			Trial: t.ID(), Cell: t.Cell, Build: t.Build + 1, Bursts: len(t.Bursts.Round), Failed: t.Failed, Misrouted: t.Path != nil && !t.Path.OK,
		}})
	}
	e.told = max(e.told, len(all))
}

// Had says how many trials the run had before it went on: they are not told again.
func (e *Events) Had(trials int) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.told = trials
}

// Ended tells how the run ended. failed is what kept it from going on, or nil.
func (e *Events) Ended(run result.Run, failed error) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	event := result.Event{
		Event: result.EventRunEnded, Ended: run.Ended, Summary: words.Summary(run),
		Deltas: gather.Where(run.Deltas, func(d result.Delta) bool { return d.Headline }),
	}
	if failed != nil {
		event.Error = failed.Error()
	}
	e.tell(event)
}

// Judge judges a run under way, and tells how it stands.
type Judge struct {
	words.Judge
	// Tell is given the trials so far and the headline deltas that follow from them, after each build.
	Tell func(build int, trials []result.Trial, deltas []result.Delta)
	// Over is given the trials of a run that has ended, before its conclusions.
	Over func(trials []result.Trial)
}

// Settled implements experiment.Judge.
func (j Judge) Settled(run result.Run, trials []result.Trial) map[string]bool {
	settled, deltas := j.SoFar(run, trials)
	build := 0
	for _, t := range trials {
		build = max(build, t.Build+1)
	}
	j.Tell(build, trials, deltas)
	return settled
}

// Conclude implements experiment.Judge.
func (j Judge) Conclude(run *result.Run, trials []result.Trial) {
	if j.Over != nil {
		j.Over(trials)
	}
	j.Judge.Conclude(run, trials)
}
