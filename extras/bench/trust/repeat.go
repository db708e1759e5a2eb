package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"netdelta/insight"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/stats"
)

// repeats is how one run is repeated: by the program as users have it, under loads in turn, in a folder that may hold runs from before a reboot.
type repeats struct {
	program string
	args    []string
	runs    int
	kept    string // "" for one that is thrown away
	pause   time.Duration
}

// loads are what else the machine does during a run, in turn. Half of all runs have the machine to themselves.
func loads() []load {
	return []load{
		{"nothing", ""},
		{"one busy loop", `while :; do :; done`},
		{"nothing", ""},
		{"work that comes and goes", `while :; do timeout 1 sh -c 'while :; do :; done'; sleep 2; done`},
		{"nothing", ""},
		{"copies of memory", `while :; do dd if=/dev/zero of=/dev/null bs=64M count=16 2>/dev/null; sleep 1; done`},
	}
}

type load struct{ name, script string }

// begin starts a load; what it returns ends it. It runs where netdelta does not measure, as far as the scheduler has it.
func (l load) begin() (end func(), err error) {
	if l.script == "" {
		return func() {}, nil
	}
	cmd := exec.Command("sh", "-c", l.script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("begin the load %q: %w", l.name, err)
	}
	return func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the shell and all that it started
		_ = cmd.Wait()
	}, nil
}

// repeated repeats a run and prints, by workload and regime, how often an interval holds the mean of the other runs, how wide intervals are, and
// what the runs differ by. It returns an error where intervals hold it too rarely.
func repeated(ctx context.Context, w io.Writer, r repeats) (err error) {
	folder := r.kept
	if folder == "" {
		if folder, err = os.MkdirTemp("", "netdelta-trust-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	for i := range r.runs {
		if err := r.one(ctx, w, folder, loads()[i%len(loads())], i); err != nil {
			return err
		}
	}
	return tabulate(w, folder)
}

// one carries out one run under a load.
func (r repeats) one(ctx context.Context, w io.Writer, folder string, l load, n int) error {
	select {
	case <-time.After(r.pause):
	case <-ctx.Done():
		return ctx.Err()
	}
	end, err := l.begin()
	if err != nil {
		return err
	}
	defer end()
	out := filepath.Join(folder, time.Now().UTC().Format("20060102-150405"))
	cmd := exec.CommandContext(ctx, r.program, append(append([]string{"run"}, r.args...), "--quiet", "--out", out)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(folder, "state"), machine.ProcessorsVariable+"="+folder)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %d: %w\n%s", n+1, err, text)
	}
	run, err := result.Load(out)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "run %2d, beside %s: %v, %d deltas, %s\n", n+1, l.name, run.Took().Round(time.Second), len(run.Deltas), run.Ended)
	return nil
}

// point is one headline delta of one run.
type point struct {
	past      insight.PastDelta
	low, high float64 // printed, on the log scale
	within    float64 // half width of the run's own interval
	freedom   float64 // of the run's own interval
	level     float64 // chance of error that intervals are made with
}

// halfWidth is half the width of the interval for repeating the run where so many runs differ by this.
func (p point) halfWidth(s result.RunSpread, runs int) float64 {
	return stats.Spread{Deviation: s.OfRatio(p.past.Center), Freedom: float64(runs - 1)}.HalfWidth(p.past.Error, p.freedom, p.level)
}

// tabulate prints the table of all runs in a folder.
func tabulate(w io.Writer, folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*", result.ResultFile))
	if err != nil {
		return err
	}
	regimes := map[string]map[string][]point{}
	var order []string
	boots := map[string]bool{}
	for _, path := range paths {
		run, err := result.Load(filepath.Dir(path))
		if err != nil {
			return err
		}
		boots[run.Environment.Boot] = true
		for name, p := range points(run) {
			regime := strings.TrimSpace(p.past.Workload + " " + p.past.Regime)
			if regimes[regime] == nil {
				regimes[regime] = map[string][]point{}
				order = append(order, regime)
			}
			regimes[regime][name] = append(regimes[regime][name], p)
		}
	}
	slices.Sort(order)
	fmt.Fprintf(w, "\n%d runs in %d boots. Held: intervals that hold the mean of the other runs. As fitted: if runs differed by what these runs do.\n", len(paths), len(boots))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "workload\tdeltas\theld\thalf width\theld, within run\thalf width\theld, as fitted\thalf width\tlevel\tshare\ttime level\ttime share\tfreedom\t")
	held, all := 0, 0
	for _, regime := range order {
		row := summed(regimes[regime])
		held, all = held+row.held, all+row.all
		fmt.Fprintf(table, "%s\t%d\t%.1f%%\t%.2f%%\t%.1f%%\t%.2f%%\t%.1f%%\t%.2f%%\t%.4f\t%.4f\t%.4f\t%.4f\t%d\t\n", regime, len(regimes[regime]),
			percent(row.held, row.all), 100*row.half, percent(row.heldWithin, row.all), 100*row.within, percent(row.heldFitted, row.all), 100*row.fitted,
			row.spread.Level, row.spread.Share, row.spread.TimeLevel, row.spread.TimeShare, len(paths)-1)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if share := float64(held) / float64(max(all, 1)); all > 0 && share < heldLeast {
		return fmt.Errorf("%.1f%% of intervals hold the mean of the other runs, which must be %.0f%%", 100*share, 100*heldLeast)
	}
	return nil
}

// heldLeast is the share of intervals that have to hold the mean of the other runs.
const heldLeast = 0.93

func percent(n, of int) float64 { return 100 * float64(n) / float64(max(of, 1)) }

// points are the headline deltas of a run that have an interval, by name.
func points(run result.Run) map[string]point {
	past := map[string]insight.PastDelta{}
	for _, p := range insight.Past(run) {
		past[p.Name] = p
	}
	all := map[string]point{}
	for _, d := range run.Deltas {
		p, known := past[d.Cell+" "+d.Baseline]
		if !known || !d.Headline {
			continue
		}
		o := stats.Options{Confidence: run.Confidence, Sequential: run.Adaptive}
		at := point{freedom: float64(d.Blocks - 1), level: o.Level(), past: p, low: math.Log(*d.RatioLow), high: math.Log(*d.RatioHigh)}
		own := insight.WithinRun(d)
		at.within = math.Log(*own.RatioHigh / *own.RatioLow) / 2
		all[p.Name] = at
	}
	return all
}

// row is what the runs say of one workload in one regime.
type row struct {
	all, held, heldWithin, heldFitted int
	half, within, fitted              float64 // medians of half widths of ratios
	spread                            result.RunSpread
}

func summed(deltas map[string][]point) row {
	var r row
	var halves, withins []float64
	var ratios, seconds []scattered
	for _, all := range deltas {
		if len(all) < 2 {
			continue
		}
		s, added := scattered{}, scattered{}
		for i, p := range all {
			mean := meanOfOthers(all, i)
			r.all++
			if p.low <= mean && mean <= p.high {
				r.held++
			}
			if math.Abs(p.past.Center-mean) <= p.within {
				r.heldWithin++
			}
			halves, withins = append(halves, (p.high-p.low)/2), append(withins, p.within)
			s.add(p.past.Center, p.past.Error)
			if p.past.Added != 0 {
				added.add(p.past.Added/p.past.Baseline, p.past.AddedError/p.past.Baseline)
			}
		}
		s.size = result.RunSpread{Share: 1}.OfRatio(stats.Mean(s.centers))
		ratios = append(ratios, s)
		if len(added.centers) > 1 {
			added.size = math.Abs(stats.Mean(added.centers))
			seconds = append(seconds, added)
		}
	}
	if r.all > 0 {
		r.half, r.within = stats.Median(halves), stats.Median(withins)
	}
	r.spread.Level, r.spread.Share = fitted(ratios)
	r.spread.TimeLevel, r.spread.TimeShare = fitted(seconds)
	var widths []float64
	for _, all := range deltas {
		for i, p := range all {
			if len(all) < 2 {
				continue
			}
			half := p.halfWidth(r.spread, len(all))
			widths = append(widths, half)
			if math.Abs(p.past.Center-meanOfOthers(all, i)) <= half {
				r.heldFitted++
			}
		}
	}
	if len(widths) > 0 {
		r.fitted = stats.Median(widths)
	}
	return r
}

// meanOfOthers is the mean of the other runs.
func meanOfOthers(all []point, i int) (mean float64) {
	for k, o := range all {
		if k != i {
			mean += o.past.Center / float64(len(all)-1)
		}
	}
	return mean
}

// scattered are the figures of one delta in several runs, with what each run knows of its own error, and the delta's size.
type scattered struct {
	centers, errors []float64
	size            float64
}

func (s *scattered) add(center, err float64) {
	s.centers, s.errors = append(s.centers, center), append(s.errors, err)
}

// fitted is the spread between runs that makes the figures likeliest (restricted maximum likelihood, on a grid of steps of 5%).
func fitted(all []scattered) (bestLevel, bestShare float64) {
	least := math.Inf(1)
	steps := []float64{0}
	for x := 0.0002; x < 0.5; x *= 1.05 {
		steps = append(steps, x)
	}
	for _, level := range steps {
		for _, share := range steps {
			loss := 0.0
			for _, s := range all {
				n, mean, own := float64(len(s.centers)), stats.Mean(s.centers), 0.0
				squares := 0.0
				for i, c := range s.centers {
					squares += (c - mean) * (c - mean)
					own += s.errors[i] * s.errors[i] / n
				}
				v := own + level*level + share*share*s.size*s.size
				loss += (n-1)*math.Log(v) + squares/v
			}
			if loss < least {
				least, bestLevel, bestShare = loss, level, share
			}
		}
	}
	return bestLevel, bestShare
}
