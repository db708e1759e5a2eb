package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/machine"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/vm/image"
)

const (
	// exactSeeds is how many guests an exact run has unless --builds says otherwise, and firstSeed that of the first unless --seed
	// does: two calls alike give the same figures.
	exactSeeds = 3
	firstSeed  = 1
	// exactWarmup and exactTransactions are those of each cell in each guest.
	exactWarmup, exactTransactions = 50, 400
	// exactParallel is how many guests run at a time at most: each takes one processor.
	exactParallel = 4
)

// checkExact refuses flags that have no meaning where instructions are counted.
func (o *runOptions) checkExact(given func(string) bool) error {
	if !o.exact {
		return nil
	}
	for flag, why := range map[string]string{
		"time-budget": "it takes as long as it takes", "burst": "each network is measured by a number of transactions", "rounds": "each network is measured once in each build",
		"blocks": "networks are not swapped",
	} {
		if given(flag) {
			return usageError{fmt.Errorf("--%s has no meaning with --exact: %s", flag, why)}
		}
	}
	if o.testbed != "" && o.testbed != vmTestbed {
		return usageError{fmt.Errorf("--exact counts instructions, which only a guest can: leave --testbed %s away", o.testbed)}
	}
	if given("builds") && o.builds < 1 {
		return usageError{errors.New("--builds: an exact run has at least one")}
	}
	return nil
}

// counts says whether instructions are to be counted: the flag asks for it, or the run that is resumed did.
func (o *runOptions) counts() (bool, error) {
	if o.exact || o.resume == "" {
		return o.exact, nil
	}
	old, err := result.Load(o.resume)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // whoever goes on with it says what is missing
	}
	return old.Exact != nil, err
}

// runExact counts instructions in guests of several seeds.
func runExact(ctx context.Context, env *environment, name string, o runOptions) error {
	if o.overrides.Seed == nil {
		o.seed = firstSeed
		o.overrides.Seed = &o.seed
	}
	o.overrides.Builds = nil // those of a study are for time, and are more
	s, err := env.chooseStudy(name, o)
	if err != nil {
		return badInput(err)
	}
	cells := env.exactCells(s)
	if len(plan.Measured(cells)) == 0 {
		why := ""
		for _, a := range insight.Absences(cells) {
			why += "\n" + strings.Join(a.Networks, ", ") + ": " + a.Why
		}
		return withStatus(exitNothing, fmt.Errorf("%w:%s", experiment.ErrNothing, why))
	}
	img, err := env.buildImage(ctx, false)
	if err != nil {
		return err
	}
	run := env.exactHead(s, cells, img, o)
	folder, err := env.openFolder(s, &run, o)
	if err != nil {
		return err
	}
	if o.resume != "" {
		if err := resumeExact(&run, o.resume); err != nil {
			return errors.Join(err, folder.Close())
		}
	}
	shown := env.progress(o.quiet)
	began := time.Now()
	run, err = guest.Seeds{
		Run: run, Folder: folder, Judge: words.NewJudge(env.workloads), Parallel: min(runtime.NumCPU(), exactParallel),
		Job: guest.Job{
			Cells: plan.Measured(cells), Warmup: exactWarmup, Transactions: exactTransactions, PerInstruction: guest.PerInstruction, Clock: guest.Clock,
			Testbed: testbed.Spec{Nodes: s.Testbed.Nodes, PodsPerNode: s.Testbed.Pods, Link: testbed.Link(s.Testbed.Link)},
		},
		Guest: func(ctx context.Context, job guest.Job, line func([]byte) error) error {
			return guest.Boot(ctx, img, guest.Brought{Files: guestFiles(s)}, job, line)
		},
		Progress: func(done, of int) { shown.counted(done, of, time.Since(began)) },
	}.Count(ctx)
	shown.stop()
	return env.finish(run, folder, o, errors.Join(err, folder.Close()))
}

// exactCells are those of a study, marked where instructions say nothing.
func (env *environment) exactCells(s *study.Study) []result.Cell {
	exact := map[string]bool{}
	for _, w := range env.workloads {
		exact[w.Name] = w.Exact != nil
	}
	cells := plan.Expand(s)
	for i, c := range cells {
		cells[i].Unsupported = experiment.Inexact(c, exact[c.Workload])
	}
	return cells
}

// exactHead is the head of a run's record.
func (env *environment) exactHead(s *study.Study, cells []result.Cell, img image.Image, o runOptions) result.Run {
	seeds := exactSeeds
	if o.builds > 0 {
		seeds = o.builds
	}
	e := &result.Exact{
		PerInstruction: guest.PerInstruction, Transactions: exactTransactions, Emulator: img.QEMU, Processor: guest.Processor, Image: img.ID(),
	}
	for i := range seeds {
		e.Seeds = append(e.Seeds, s.Design.Seed+uint64(i))
	}
	return result.Run{
		Schema: result.Schema, Run: s.Name, Study: s.Name, Question: s.Question, Testbed: vmTestbed, Seed: s.Design.Seed,
		Confidence: s.Design.Confidence, Margin: result.ExactMargin, Exact: e, Cells: cells, Claims: experiment.Claims(s),
		Environment: result.Environment{
			Virtual:  "QEMU " + img.QEMU + ", counting instructions",
			Versions: map[string]string{"qemu": img.QEMU, "accelerator": "tcg, icount", "image": img.ID()},
		},
	}
}

// resumeExact takes over the seeds of the run that is resumed. Another image would count other instructions.
func resumeExact(run *result.Run, dir string) error {
	old, err := result.Load(dir)
	if err != nil || old.Exact == nil {
		return withStatus(exitUsage, errors.Join(err, fmt.Errorf("%s holds no exact run: resume it without --exact", dir)))
	}
	if old.Exact.Image != run.Exact.Image || old.Environment.Netdelta != "" && old.Environment.Netdelta != machine.Version() {
		return withStatus(exitUsage, fmt.Errorf("%s was counted in another guest (image %s, netdelta %s): the instructions of this one are not the same; start a new run",
			dir, old.Exact.Image, old.Environment.Netdelta))
	}
	run.Exact, run.Environment.Links, run.Environment.Sysctls = old.Exact, nil, nil
	return nil
}

// finish shows a run and leaves its page.
func (env *environment) finish(run result.Run, folder *result.Folder, o runOptions, err error) error {
	if printErr := env.print(run, o.json); printErr != nil {
		return errors.Join(err, printErr)
	}
	fmt.Fprintf(env.err, "run folder: %s\n", ui.Clean(folder.Dir()))
	if err := errors.Join(err, env.writeViews(run, folder.Dir())); err != nil {
		return err
	}
	return outcome(run)
}
