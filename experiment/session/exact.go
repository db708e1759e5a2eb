package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed"
)

const (
	// exactSeeds is how many guests an exact run has unless Session.Builds says otherwise.
	exactSeeds = 3
	// exactWarmup and exactTransactions are numbers of transactions of each cell in each guest.
	exactWarmup, exactTransactions = 50, 400
	// exactParallel is how many guests run at a time at most: each takes one processor.
	exactParallel = 4
)

// count counts instructions in guests of several seeds.
func (s *Session) count(ctx context.Context, able testbed.Capabilities) (run result.Run, folder *result.Folder, err error) {
	cells := s.exactCells()
	if len(plan.Measured(cells)) == 0 {
		return run, nil, nothingExact(cells)
	}
	counter, err := able.Counter(ctx)
	if err != nil {
		return run, nil, err
	}
	run = s.exactHead(cells, counter)
	if folder, err = s.openLatest(&run); err != nil {
		return run, nil, err
	}
	if s.Resume != "" {
		if err := resumeExact(&run, folder.Earlier, s.Resume); err != nil {
			return run, nil, errors.Join(&InputError{err}, folder.Close())
		}
	}
	defer s.Progress.Stop()
	run, err = guest.Seeds{
		Run: run, Folder: folder, Judge: s.Judge, Parallel: min(runtime.NumCPU(), exactParallel), Progress: s.Progress.Counted,
		Job: guest.Job{Clock: counter.Clock, ExactJob: experiment.ExactJob{
			Cells: plan.Measured(cells), Warmup: exactWarmup, Transactions: exactTransactions, PerInstruction: counter.PerInstruction,
			Testbed: s.spec(),
		}},
		Guest: InGuests(counter, s.guestSpec()),
	}.Count(ctx)
	return run, folder, err
}

// InGuests does jobs in guests of a counter.
func InGuests(counter *testbed.Counter, spec testbed.GuestSpec) func(context.Context, guest.Job, func([]byte) error) error {
	spec.Args = []string{guest.Verb, guest.JobFile}
	return func(ctx context.Context, job guest.Job, line func([]byte) error) error {
		text, err := json.Marshal(job)
		if err != nil {
			return fmt.Errorf("encode a job: %w", err)
		}
		return counter.Count(ctx, testbed.CountJob{GuestSpec: spec, Seed: job.Seed, File: guest.JobFile, Content: text}, line)
	}
}

// exactCells are the study's cells, marked where instructions say nothing.
func (s *Session) exactCells() []result.Cell {
	exact := map[string]bool{}
	for _, w := range s.Workloads {
		exact[w.Name] = w.Exact != nil
	}
	cells := plan.Expand(s.Study)
	for i, c := range cells {
		cells[i].Unsupported = experiment.Inexact(c, exact[c.Workload])
	}
	return cells
}

// exactHead is the head of the run's record.
func (s *Session) exactHead(cells []result.Cell, counter *testbed.Counter) result.Run {
	seeds := exactSeeds
	if s.Builds > 0 {
		seeds = s.Builds
	}
	e := &result.Exact{
		PerInstruction: counter.PerInstruction, Transactions: exactTransactions, Emulator: counter.Emulator, Processor: counter.Processor, Image: counter.Image,
	}
	for i := range seeds {
		e.Seeds = append(e.Seeds, s.Study.Design.Seed+uint64(i))
	}
	return result.Run{
		Schema: result.Schema, Run: s.Study.Name, Study: s.Study.Name, Question: s.Study.Question, Testbed: s.Provider.Kind(), Seed: s.Study.Design.Seed,
		Confidence: s.Study.Design.Confidence, Margin: result.ExactMargin, Exact: e, Cells: cells, Claims: study.Untested(s.Study.Claims), Goals: study.Unjudged(s.Study.Goals),
		Environment: counter.Environment,
	}
}

// resumeExact takes over the seeds of the run that is resumed. Another image would count other instructions.
func resumeExact(run, old *result.Run, dir string) error {
	if old == nil || old.Exact == nil {
		return fmt.Errorf("%s holds no exact run: resume it without --exact", dir)
	}
	if old.Exact.Image != run.Exact.Image || old.Environment.Netdelta != "" && old.Environment.Netdelta != machine.Version() {
		return fmt.Errorf("%s was counted in another guest (image %s, netdelta %s): the instructions of this one are not the same; start a new run",
			dir, old.Exact.Image, old.Environment.Netdelta)
	}
	run.Exact, run.Environment.Links, run.Environment.Sysctls = old.Exact, nil, nil
	return nil
}

// nothingExact says why none of the cells can be counted.
func nothingExact(cells []result.Cell) error {
	var reasons []string
	networks := map[string][]string{}
	for _, c := range cells {
		if networks[c.Unsupported] == nil {
			reasons = append(reasons, c.Unsupported)
		}
		if !slices.Contains(networks[c.Unsupported], c.Network) {
			networks[c.Unsupported] = append(networks[c.Unsupported], c.Network)
		}
	}
	why := ""
	for _, r := range reasons {
		why += "\n" + strings.Join(networks[r], ", ") + ": " + r
	}
	return fmt.Errorf("%w:%s", record.ErrNothing, why)
}

// ServeGuest carries out, inside a guest, the run that the host asks for on in, and tells the host of it: first its head, then each
// trial of a build when the build is done. The request fills in the session's study and builds. Only what could not be read or told
// to the host is returned.
func (s *Session) ServeGuest(ctx context.Context, in io.Reader, known study.Known, to *guest.Writer) error {
	r, ctx, err := guest.ReadRequest(ctx, in)
	if err != nil {
		return err
	}
	config, err := s.requested(ctx, r, known)
	if err != nil {
		return to.Send(guest.Message{End: &guest.End{Error: err.Error(), Kind: kindOf(err)}})
	}
	config.Judge = s.Judge
	return guest.Inside(ctx, r, config, to)
}

// requested makes the configuration of a run that the host asks for.
func (s *Session) requested(ctx context.Context, r guest.Request, known study.Known) (config experiment.Config, err error) {
	if s.Study, err = study.Parse("the study", []byte(r.Study), known); err != nil {
		return config, err
	}
	s.Study.Named, s.Builds = r.Named, r.Builds
	if r.Run != nil {
		s.cells = r.Run.Cells
	}
	configure, err := s.prepare(ctx)
	if err == nil {
		config, err = configure(ctx)
	}
	if err == nil {
		err = confine(config)
	}
	config.Run.Environment.Findings = s.Findings
	return config, err
}

// kindOf is what an error is about, to the host.
func kindOf(err error) guest.Kind {
	var bad study.Errors
	var budget *plan.BudgetError
	switch {
	case errors.As(err, &bad), errors.As(err, &budget):
		return guest.BadInput
	case errors.Is(err, record.ErrNothing):
		return guest.Nothing
	}
	return ""
}
