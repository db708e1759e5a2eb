package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/annotations"
	"netdelta/report/junit"
	"netdelta/report/markdown"
	"netdelta/report/terminal"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// compareOptions are the flags of compare.
type compareOptions struct {
	margin, metric, format string
	all, known             bool
}

// compareFormats are the forms that a comparison can be printed in, the one that is meant when none is named first.
func compareFormats() []string { return []string{"text", "md", "json", "junit", "github"} }

func newCompareCommand(env *environment) *cobra.Command {
	var o compareOptions
	cmd := &cobra.Command{
		Use:   "compare OLD NEW | RUN RUN RUN...",
		Short: "Say what changed between two runs; the exit status tells a CI job",
		Long: `Say what changed between two run folders: of each network in both, how far its cost against its own run's baseline has
moved, with an interval over the builds of both runs. What the baselines themselves measured is shown and never compared, so
that runs of different machines or kernels can be held against each other; what differs between those stands on top.

A change is called a regression when its whole interval lies beyond the margin. Only the headline metric of each workload (or
the one that --metric names) is judged; --all shows the others too.

Runs differ by a little more than their own builds tell. Of three runs of the same question or more, none is old or new: they are days
or boots, and the table says where another run will lie.

EXIT STATUS
  0    no regression was found
  1    a run folder can't be read
  2    bad usage, or no run folder
  3    nothing can be compared: no delta in common, or too few builds for any interval;
       with --require-known, also while a change is unresolved, or the new run lacks a delta of the old one
  4    a regression beyond the margin`,
		Example: `  netdelta compare runs/main runs/branch
  netdelta compare runs/6.12 runs/6.18 --margin 5% --format md
  netdelta compare runs/main runs/branch --format github
  netdelta compare runs/monday runs/tuesday runs/wednesday`,
		Args: args(cobra.MinimumNArgs(2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			how, err := o.check(cmd.Flags().Changed("margin"))
			if err != nil {
				return usageError{err}
			}
			if len(a) > 2 && o.known {
				return usageError{errors.New("--require-known is for two runs: of more none is old or new")}
			}
			if len(a) > 2 {
				return env.repeat(a, how, o.format)
			}
			return env.compare(a[0], a[1], how, o.format, o.known)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.margin, "margin", "", "change that counts as none, such as 2% (default: the wider of the runs' own)")
	f.StringVar(&o.metric, "metric", "", "metric to judge in place of each workload's headline: "+strings.Join(insight.Metrics(), ", "))
	f.StringVar(&o.format, "format", compareFormats()[0], strings.Join(compareFormats(), ", "))
	f.BoolVar(&o.known, "require-known", false, "fail while a judged change is unresolved or missing, too")
	f.BoolVar(&o.all, "all", false, "show the metrics that are not judged, too")
	complete(cmd, "metric", insight.Metrics())
	complete(cmd, "format", compareFormats())
	return cmd
}

// check turns the flags into what they mean.
func (o compareOptions) check(marginGiven bool) (insight.Comparing, error) {
	how := insight.Comparing{Metric: o.metric, All: o.all}
	if marginGiven {
		margin, err := parseMargin(o.margin)
		if err != nil {
			return how, fmt.Errorf("--margin: %w", err)
		}
		how.Margin = margin
	}
	if o.metric != "" {
		if err := oneOf("--metric", o.metric, insight.Metrics()); err != nil {
			return how, err
		}
	}
	return how, oneOf("--format", o.format, compareFormats())
}

// parseMargin reads a margin, as a share or with a percent sign.
func parseMargin(text string) (float64, error) {
	digits, percent := strings.CutSuffix(strings.TrimSpace(text), "%")
	margin, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if percent {
		margin /= 100
	}
	switch {
	case err != nil || math.IsNaN(margin):
		return 0, fmt.Errorf("%q is no margin; write 2%% or 0.02", text)
	case margin <= 0 || margin > 0.5:
		return 0, fmt.Errorf("margin %s is not above 0 and at most 50%%", text)
	}
	return margin, nil
}

// compare prints what changed between two run folders.
func (env *environment) compare(before, after string, how insight.Comparing, format string, known bool) error {
	c, err := env.compared(before, after, how)
	if err != nil {
		return err
	}
	if err := env.writeComparison(env.out, c, format); err != nil {
		return err
	}
	if err := verdict(c); err != nil || !known {
		return err
	}
	return allKnown(c)
}

// allKnown is the error of a comparison that leaves something of the old run open: what is unresolved, and what the new run does not have.
func allKnown(c result.Comparison) error {
	open := insight.ByVerdict(c, stats.Unresolved)
	gone := gather.Where(c.Unpaired, func(u result.Unpaired) bool { return u.In == "old" })
	switch {
	case len(open) > 0:
		return withStatus(exitNothing, fmt.Errorf("%d of %d changes are unresolved, and --require-known asks for all: give both runs more builds or a wider --margin",
			len(open), len(insight.Judged(c))))
	case len(gone) > 0:
		return withStatus(exitNothing, fmt.Errorf("%s of the old run can't be compared, and --require-known asks for all: the new run does not have %s",
			unit.Counted(len(gone), "delta"), map[bool]string{true: "it", false: "them"}[len(gone) == 1]))
	}
	return nil
}

// sameRun says whether two folders hold one run.
func sameRun(a, b result.Run) bool {
	return a.Run == b.Run && a.Started.Equal(b.Started) && a.Seed == b.Seed
}

// repeat prints what several runs say of another one.
func (env *environment) repeat(paths []string, how insight.Comparing, format string) error {
	if format != compareFormats()[0] {
		return usageError{fmt.Errorf("--format %s is for two runs: of %d there is text alone", format, len(paths))}
	}
	var runs []insight.Measured
	for _, path := range paths {
		m, err := env.reload(path)
		if err != nil {
			return err
		}
		for i, other := range runs {
			if sameRun(other.Run, m.Run) {
				return usageError{fmt.Errorf("%s and %s are the same run: it says nothing of another", paths[i], path)}
			}
		}
		runs = append(runs, m)
	}
	all := words.NewJudge(env.workloads).Repeat(runs, how)
	if err := terminal.WriteRepeated(env.out, runs, all, ui.Detect(env.terminal, env.getenv)); err != nil {
		return err
	}
	if len(all) == 0 {
		return withStatus(exitNothing, errors.New(""))
	}
	return nil
}

// verdict is the exit status that a comparison deserves.
func verdict(c result.Comparison) error {
	switch c.Verdict {
	case string(stats.Regressed):
		return withStatus(exitRegressed, errors.New(""))
	case insight.NothingCompared:
		return withStatus(exitNothing, errors.New(""))
	}
	return nil
}

// compared is what changed between two run folders.
func (env *environment) compared(before, after string, how insight.Comparing) (result.Comparison, error) {
	var none result.Comparison
	var runs [2]insight.Measured
	for i, path := range []string{before, after} {
		m, err := env.reload(path)
		if err != nil {
			return none, err
		}
		if m.Trials.Len() == 0 {
			return none, withStatus(exitNothing, fmt.Errorf("%s has nothing to compare: its %s is missing or empty, and a comparison takes the figures of each build",
				path, result.TrialsFile))
		}
		runs[i] = m
	}
	if sameRun(runs[0].Run, runs[1].Run) {
		return none, usageError{fmt.Errorf("%s and %s are the same run: it has not changed, and says nothing of another", before, after)}
	}
	if a, b := runs[0].Run.Exact != nil, runs[1].Run.Exact != nil; a != b {
		return none, usageError{fmt.Errorf("one of %s and %s counts instructions and the other measures time: no change could be told; set them beside each other by netdelta report --exact", before, after)}
	}
	return words.NewJudge(env.workloads).Compare(runs[0], runs[1], how).Complete(), nil
}

func (env *environment) writeComparison(w io.Writer, c result.Comparison, format string) error {
	switch format {
	case "md":
		return markdown.WriteComparison(w, c)
	case "json":
		return writeJSON(w, c)
	case "junit":
		return junit.WriteComparison(w, c)
	case "github":
		return annotations.WriteComparison(w, c)
	}
	return terminal.WriteComparison(w, c, ui.Detect(env.terminal, env.getenv))
}
