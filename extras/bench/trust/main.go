// Command trust holds netdelta's verdicts against what is known to be true, on the real lab of this machine: host networking
// against itself must come out as no difference, and 25 firewall rules on a routed path, which cost about a percent, must be
// found. Then it repeats the default run under different loads: the intervals that are printed must hold the mean of the other runs. With -kept
// these may be runs of many hours, and of several boots.
//
// It prints what it found and exits with 1 when netdelta can't be trusted. It needs a machine that does nothing else.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/extras/bench/harness"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

func main() {
	runs := flag.Int("runs", 20, "short runs of host against host; 0 for none")
	each := flag.Duration("each", 8*time.Second, "time budget of each of them")
	rules := flag.Int("rules", 25, "firewall rules to find; 0 for none")
	times := flag.Int("times", 1, "runs in which to find them")
	margin := flag.Float64("margin", 0.5, "differences that don't matter to these runs, in percent")
	covered := flag.Int("coverage", 0, "runs of paths with 0 to 100 rules, whose intervals and verdicts are counted; 0 for none")
	repeat := flag.Int("repeat", 12, "times that the default run is repeated, under different loads; 0 for none")
	args := flag.String("args", "", "arguments of netdelta run for -repeat")
	kept := flag.String("kept", "", "folder for the runs of -repeat, which may hold earlier ones, as from before a reboot; all are in the table")
	pause := flag.Duration("pause", 0, "pause before each run of -repeat")
	program := flag.String("program", "bin/netdelta", "netdelta, for -repeat")
	budget := flag.Duration("budget", 15*time.Second, "time budget to find them in, and of each run of -coverage")
	harness.Main("trust", func(ctx context.Context) error {
		if *runs > 0 {
			if err := nothingFound(ctx, os.Stdout, *runs, *each); err != nil {
				return err
			}
		}
		if *rules > 0 {
			if err := rulesFound(ctx, os.Stdout, search{rules: *rules, runs: *times, budget: *budget, margin: *margin / 100}); err != nil {
				return err
			}
		}
		if *covered > 0 {
			if err := coverage(ctx, os.Stdout, *covered, *budget); err != nil {
				return err
			}
		}
		if *repeat > 0 || *kept != "" {
			return repeated(ctx, os.Stdout, repeats{*program, strings.Fields(*args), *repeat, *kept, *pause})
		}
		return nil
	})
}

// job is one run of tcp-rr over some networks.
type job struct {
	networks   []network.Network
	baseline   string
	compare    []string
	placements []result.Placement
	budget     time.Duration
	seed       uint64
	margin     float64 // below which a difference does not matter; 0 is a study's default
}

// measure carries a job out as netdelta run would, in a run folder that is thrown away.
func measure(ctx context.Context, j job) (run result.Run, err error) {
	s := &study.Study{
		Name: "trust", Baseline: j.baseline, Networks: j.compare, Placement: j.placements,
		Testbed:   study.Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: study.Link{MTU: study.DefaultMTU}},
		Workloads: []study.Workload{{Name: "tcp-rr"}},
		Design: study.Design{
			Burst: study.DefaultBurst, Builds: study.DefaultBuilds, Confidence: confidence, Margin: cmp.Or(j.margin, study.DefaultMargin),
			TimeBudget: j.budget, Seed: j.seed,
		},
	}
	driver := lab.NewDriver(j.networks)
	p, err := experiment.Prepare(ctx, s, driver, catalogue.Workloads())
	if err != nil {
		return run, err
	}
	config, err := experiment.Assemble(ctx, s, p, driver, catalogue.Workloads())
	if err != nil {
		return run, err
	}
	if err := machine.Confine(config.Program.CPUs); err != nil {
		return run, err
	}
	dir, err := os.MkdirTemp("", "netdelta-trust-")
	if err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if config.Folder, err = result.Create(filepath.Join(dir, "run"), nil); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, config.Folder.Close()) }()
	config.Progress, config.Judge = silence{}, words.NewJudge(config.Workloads)
	return experiment.Run(ctx, config)
}

// silence is a Progress that shows nothing.
type silence struct{}

func (silence) Update(experiment.Status) {}

// interval prints a delta's ratio as a change in percent.
func interval(d result.Delta) string {
	percent := func(ratio float64) float64 { return 100 * (ratio - 1) }
	if d.RatioLow == nil {
		return fmt.Sprintf("%+.2f%% (no interval: needs %d builds)", percent(d.Ratio), d.Need)
	}
	return fmt.Sprintf("%+.2f%% [%+.2f, %+.2f]", percent(d.Ratio), percent(*d.RatioLow), percent(*d.RatioHigh))
}

// widest is the half width that the interval may have: 1%.
const widest = 0.01

// search is what is to be found, and in what.
type search struct {
	rules, runs int
	budget      time.Duration // of a run
	margin      float64       // as a ratio less one
}

// foundShare is the share of runs in which a difference has to be found.
const foundShare = 0.95

// rulesFound compares a routed path behind an empty firewall with the same path behind some rules, in runs with six other networks: a
// firewall costs something before it has its first rule.
func rulesFound(ctx context.Context, w io.Writer, s search) error {
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		return err
	}
	empty, filtered := network.Filtered(routed, 0), network.Filtered(routed, s.rules)
	fmt.Fprintf(w, "%d firewall rules on a routed path, against none, along with six other networks, %d runs of %v:\n", s.rules, s.runs, s.budget)
	found := 0
	for i := range s.runs {
		record, err := measure(ctx, job{
			networks: append(networks, empty, filtered), baseline: empty.Name,
			compare:    []string{filtered.Name, "host", "bridge", "bridge-nat", "macvlan", "vxlan", "vxlan-routed"},
			placements: []result.Placement{result.CrossNode}, budget: s.budget, seed: uint64(i + 1), margin: s.margin,
		})
		if err != nil {
			return err
		}
		d, err := s.judge(w, record, filtered.Name)
		if err != nil {
			return err
		}
		if stats.Verdict(d.Verdict) == stats.Slower {
			found++
		}
	}
	if share := float64(found) / float64(s.runs); share < foundShare {
		return fmt.Errorf("%d rules were found in %d of %d runs", s.rules, found, s.runs)
	}
	return nil
}

// judge prints the deltas of a run, and returns the one to be found. It returns an error if its interval is wider than it may be.
func (s search) judge(w io.Writer, record result.Run, name string) (result.Delta, error) {
	var found result.Delta
	for _, d := range record.Deltas {
		if !d.Headline {
			continue
		}
		fmt.Fprintf(w, "  %-17s %s %s in %d builds, %d rounds\n", d.Network, interval(d), d.Verdict, d.Blocks, d.Rounds)
		if d.Network == name {
			found = d
		}
	}
	switch {
	case found.RatioLow == nil:
		return found, fmt.Errorf("%s has no interval", name)
	case halfWidth(found) > widest:
		return found, fmt.Errorf("the interval of %s is +-%.2f%%, wider than +-%.0f%%", name, 100*halfWidth(found), 100*widest)
	}
	return found, nil
}

func halfWidth(d result.Delta) float64 { return math.Log(*d.RatioHigh / *d.RatioLow) / 2 }

// confidence of every interval here, as in a study that does not say otherwise.
const confidence = 0.95

// nothingFound runs host against host again and again. Each run looks at both placements, and may call a difference real
// with a probability of 5%.
func nothingFound(ctx context.Context, w io.Writer, runs int, budget time.Duration) error {
	fmt.Fprintf(w, "host against host, %d runs of %v, tcp-rr, on one node and across nodes:\n", runs, budget)
	wrong := 0
	for i := range runs {
		record, err := measure(ctx, job{
			networks: network.Catalogue(), baseline: "host", compare: []string{"host"},
			placements: []result.Placement{result.SameNode, result.CrossNode}, budget: budget, seed: uint64(i + 1),
		})
		if err != nil {
			return err
		}
		called := false
		fmt.Fprintf(w, "  run %2d:", i+1)
		for _, d := range record.Null {
			if !d.Headline {
				continue
			}
			verdict := stats.Verdict(d.Verdict)
			called = called || verdict == stats.Slower || verdict == stats.Faster
			fmt.Fprintf(w, "  %s %s %s in %d builds;", d.Placement, interval(d), d.Verdict, d.Blocks)
		}
		fmt.Fprintln(w)
		if called {
			wrong++
		}
	}
	most := mayBeWrong(runs)
	fmt.Fprintf(w, "  %d of %d runs called a difference real; up to %d are no reason to doubt\n", wrong, runs, most)
	if wrong > most {
		return fmt.Errorf("host against host was called a difference in %d of %d runs", wrong, runs)
	}
	return nil
}

// mayBeWrong is the number of false calls in so many runs that honest verdicts exceed in less than one of a hundred
// attempts.
func mayBeWrong(runs int) int {
	b := distuv.Binomial{N: float64(runs), P: 1 - confidence}
	most := 0
	for b.CDF(float64(most)) < 0.99 {
		most++
	}
	return most
}

// doses are how many firewall rules the copies of one routed path have; the first has no firewall at all, the second one without rules.
func doses() []int { return []int{-1, 0, 7, 30, 100} }

// coverage measures paths of known order again and again, side by side, and prints how often an interval holds what the other runs
// found in the middle, and how often a verdict says that there is something. The first path is the same as the baseline.
func coverage(ctx context.Context, w io.Writer, runs int, budget time.Duration) error {
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		return err
	}
	var names []string
	for _, rules := range doses() {
		copied := network.Filtered(routed, rules)
		if rules < 0 {
			copied = routed
			copied.Name += "-again"
		}
		networks, names = append(networks, copied), append(names, copied.Name)
	}
	found := map[string][]result.Delta{}
	for i := range runs {
		record, err := measure(ctx, job{
			networks: networks, baseline: "routed", compare: names, placements: []result.Placement{result.CrossNode}, budget: budget,
			seed: uint64(i + 1), margin: 0.005,
		})
		if err != nil {
			return err
		}
		for _, d := range record.Deltas {
			if d.Headline && d.RatioLow != nil && d.RatioHigh != nil {
				found[d.Network] = append(found[d.Network], d)
			}
		}
	}
	fmt.Fprintf(w, "firewall rules on a routed path, %d runs of %v, tcp-rr, across nodes:\n", runs, budget)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "rules\tmedian change\tmedian half width\tintervals that hold it\tslower\tsame\tunresolved\tfaster\t")
	for i, name := range names {
		r := summarise(found[name])
		label := strconv.Itoa(doses()[i])
		if doses()[i] < 0 {
			label = "no firewall"
		}
		fmt.Fprintf(table, "%s\t%+.2f%%\t%.2f%%\t%d of %d\t%d\t%d\t%d\t%d\t\n", label, 100*(r.middle-1), 100*r.half, r.held, len(found[name]),
			r.called[stats.Slower], r.called[stats.Same], r.called[stats.Unresolved], r.called[stats.Faster])
	}
	return table.Flush()
}

// summary is what many runs found of one path.
type summary struct {
	middle, half float64 // medians of the ratio and of the half width of its interval
	held         int     // intervals that hold the median of the other runs
	called       map[stats.Verdict]int
}

// summarise counts intervals and verdicts.
func summarise(all []result.Delta) summary {
	s := summary{called: map[stats.Verdict]int{}}
	var ratios, halves []float64
	for _, d := range all {
		ratios, halves = append(ratios, d.Ratio), append(halves, halfWidth(d))
	}
	s.middle, s.half = stats.Median(slices.Clone(ratios)), stats.Median(halves)
	for i, d := range all {
		others := stats.Median(slices.Delete(slices.Clone(ratios), i, i+1))
		if *d.RatioLow <= others && others <= *d.RatioHigh {
			s.held++
		}
		s.called[stats.Verdict(d.Verdict)]++
	}
	return s
}
