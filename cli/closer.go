package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/profiling"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/experiment/tracing"
	"netdelta/insight"
	"netdelta/report/flame"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/workload"
)

// After a run in a lab whose budget leaves room for it, the best network and the worst are looked at more closely: their hops are traced
// and their processor time is profiled, when nothing is timed any more.
const (
	// closerFrom is the least time budget of such a run.
	closerFrom = 30 * time.Second
	// closerHops and closerFlame are how long the two are traced and profiled, and closerMost when what is not done is left out.
	closerHops  = 2 * time.Second
	closerFlame = 2 * time.Second
	closerMost  = 15 * time.Second
)

// flameSummary is where a run folder keeps the functions that differ most between its best network and its worst.
const flameSummary = "flame.json"

// looksCloser says whether a run is followed by a closer look by itself: it has time, its builds and rounds are not fixed, and no look was asked for.
func (k kind) looksCloser(o runOptions, s *study.Study) bool {
	asked := o.hops || o.explain || o.flame
	fixed := o.builds > 0 || o.rounds > 0 || o.blocks > 0 || o.exact
	return k.here && !asked && !fixed && s.Design.TimeBudget >= closerFrom
}

// closerLook traces and profiles the best and the worst network of a run that has ended. What keeps it from that is said, and fails
// nothing: the run is whole without.
func (env *environment) closerLook(ctx context.Context, run session.Measured) error {
	best, worst, found := env.extremes(run.Run)
	if !found {
		fmt.Fprintln(env.err, "no closer look at the best and the worst network: none is known to cost more than another where requests can be followed")
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, closerMost)
	defer cancel()
	fmt.Fprintf(env.err, "a closer look at %s and %s, %v after the measuring: hops, then processor time\n", ui.Clean(best.Network), ui.Clean(worst.Network), closerHops+closerFlame)
	config, err := run.Configure(ctx)
	if err == nil {
		// Builds stand with their baseline.
		config.Run.Cells = slices.DeleteFunc(plan.Measured(config.Run.Cells), func(c result.Cell) bool {
			return c.ID != best.ID && c.ID != worst.ID && (c.Role != result.RoleBaseline || c.Setting() != best.Setting())
		})
		for _, look := range []func(context.Context, session.Measured, experiment.Config, ...result.Cell) error{traceExtremes, profileExtremes} {
			if err := look(ctx, run, config, best, worst); err != nil {
				fmt.Fprintf(env.err, "left out: %s\n", ui.Clean(err.Error()))
			}
		}
		err = config.Close()
	}
	if err != nil {
		fmt.Fprintf(env.err, "left out: %s\n", ui.Clean(err.Error()))
	}
	return nil
}

// extremes are the cells of the best and the worst network, in the setting in which the worst costs most or, where requests can't be
// followed there, in the first in which they can and both were measured.
func (env *environment) extremes(run result.Run) (best, worst result.Cell, found bool) {
	choice, found := insight.Choose(run)
	if !found {
		return best, worst, false
	}
	cells := slices.DeleteFunc(plan.Measured(run.Cells), func(c result.Cell) bool {
		return c.Role == result.RoleControl || workload.Find(env.workloads, c.Workload).Exact == nil
	})
	slices.SortStableFunc(cells, func(a, b result.Cell) int {
		return first(a.Setting() == choice.Most.Setting) - first(b.Setting() == choice.Most.Setting)
	})
	for _, w := range cells {
		i := slices.IndexFunc(cells, func(c result.Cell) bool {
			return c.Setting() == w.Setting() && insight.Name(c.Network, c.Path) == choice.Best
		})
		if insight.Name(w.Network, w.Path) == choice.Worst && i >= 0 {
			return cells[i], w, true
		}
	}
	return best, worst, false
}

// first sorts what is so before what is not.
func first(so bool) int {
	if so {
		return 0
	}
	return 1
}

// traceExtremes leaves the hops of both in the run folder.
func traceExtremes(ctx context.Context, run session.Measured, config experiment.Config, both ...result.Cell) error {
	traced, err := tracing.Trace(ctx, tracing.Config{Experiment: config, Cells: both, Lasting: closerHops})
	if err != nil {
		return fmt.Errorf("hops: %w", err)
	}
	return writeHops(run, traced)
}

// profileExtremes leaves the flame graph of the worst against the best in the run folder, with what the page says of it.
func profileExtremes(ctx context.Context, run session.Measured, config experiment.Config, both ...result.Cell) (err error) {
	all, err := profiling.Take(ctx, config, closerFlame)
	if err != nil {
		return fmt.Errorf("flame graph: %w", err)
	}
	var taken []profiling.Profiled
	for _, c := range both {
		for _, t := range all {
			if t.Cell.ID == c.ID {
				taken = append(taken, t)
			}
		}
	}
	if len(taken) != len(both) {
		return fmt.Errorf("flame graph: only %d of %d networks could be profiled", len(taken), len(both))
	}
	files, err := run.Folder.Folder("flame")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	name := taken[1].Cell.Network + ".html"
	if err := writeFlames(files, name, taken); err != nil {
		return err
	}
	summary := flame.Summarise("flame/"+fileName(name), sidesOf(taken)...)
	return writeView(run.Folder.Files, flameSummary, func(w io.Writer) error { return writeJSON(w, summary) })
}
