// Package openmetrics writes a run, finished or under way, in the OpenMetrics text format
// (https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md), which Prometheus and its kin read.
//
// All figures are gauges in base units: seconds, bits per second, shares of one. Labels are those by which a network is asked for
// (study, network, baseline, placement, path, workload, load), and the cell, which makes each series unique. The run's own name is
// a label of netdelta_run_info alone, so that the series of a night go on in those of the next.
package openmetrics

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/stats"
)

// ContentType is what an HTTP server says of the format.
const ContentType = "application/openmetrics-text; version=1.0.0; charset=utf-8"

// Progress is how far a run is that is under way.
type Progress struct {
	// Build and Round count from 1; Rounds is how many rounds the build is planned to have.
	Build, Round, Rounds int
	// Cells are measured in this build. Open is how many are not known well enough yet, -1 before the first build is done.
	Cells, Open     int
	Elapsed, Budget time.Duration
}

// Snapshot is what is known of a run.
type Snapshot struct {
	Run    result.Run
	Trials result.Trials
	// Progress is nil for a run that has ended.
	Progress *Progress
}

// Write writes all that is known, and the mark that ends the format.
func Write(w io.Writer, s Snapshot) error {
	p := newPage(s.Run.Study)
	p.head(s.Run)
	if s.Progress != nil {
		p.progress(*s.Progress)
	}
	p.deltas("delta", "a network against the baseline of the same rounds", s.Run.Deltas)
	p.deltas("null", "the baseline against its A/A control, which ought to be no difference", s.Run.Null)
	p.trials(s.Run, s.Trials)
	p.account(s.Run.Account)
	p.verdicts(s.Run)
	out := bufio.NewWriter(w)
	for _, f := range p.families {
		if _, err := expfmt.MetricFamilyToOpenMetrics(out, f); err != nil {
			return fmt.Errorf("write the metric %s: %w", f.GetName(), err)
		}
	}
	if _, err := expfmt.FinalizeOpenMetrics(out); err != nil {
		return fmt.Errorf("end the metrics: %w", err)
	}
	return out.Flush()
}

// label is a name with its value.
type label struct{ name, value string }

// page gathers the metrics of a run. A series that was given twice is kept once: the format forbids two.
type page struct {
	study    label
	families []*dto.MetricFamily
	at       map[string]*dto.MetricFamily
	seen     map[string]bool
}

func newPage(study string) *page {
	return &page{study: label{"study", study}, at: map[string]*dto.MetricFamily{}, seen: map[string]bool{}}
}

// add writes down a gauge. Names end in their unit where they have one. NaN and infinities are left out: a reader would take them for
// measurements.
func (p *page) add(name, unit, help string, value float64, labels ...label) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if unit != "" {
		name += "_" + unit
	}
	metric := &dto.Metric{Gauge: &dto.Gauge{Value: &value}}
	key := name
	for _, l := range append([]label{p.study}, labels...) {
		text := ui.Clean(l.value)
		metric.Label = append(metric.Label, &dto.LabelPair{Name: &l.name, Value: &text})
		key += "\x00" + text
	}
	if p.seen[key] {
		return
	}
	p.seen[key] = true
	family, found := p.at[name]
	if !found {
		family = &dto.MetricFamily{Name: &name, Help: &help, Type: dto.MetricType_GAUGE.Enum()}
		if unit != "" {
			family.Unit = &unit
		}
		p.at[name] = family
		p.families = append(p.families, family)
	}
	family.Metric = append(family.Metric, metric)
}

// base is a unit of the record as a base unit's name, with what a value is multiplied by.
func base(unit string) (name string, factor float64) {
	switch unit {
	case "ns":
		return "seconds", 1e-9
	case "bit/s":
		return "bits_per_second", 1
	case "1/s":
		return "per_second", 1
	case "ratio":
		return "ratio", 1
	case "s/GB":
		return "seconds_per_byte", 1e-9
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '_'
	}, unit), 1
}

// head is what the figures are of.
func (p *page) head(run result.Run) {
	e := run.Environment
	p.add("netdelta_run_info", "", "the run that the figures are of; always 1", 1,
		label{"run", run.Run}, label{"testbed", run.Testbed}, label{"ended", run.Ended}, label{"version", e.Netdelta}, label{"kernel", e.Kernel})
	p.moment("started", run.Started)
	p.moment("finished", run.Finished)
	p.add("netdelta_run_margin", "ratio", "the difference that counts as none", run.Margin)
	p.add("netdelta_run_confidence", "ratio", "the confidence of all bounds", run.Confidence)
}

// moment is when a run started or finished; the zero time is none.
func (p *page) moment(name string, at time.Time) {
	if !at.IsZero() {
		p.add("netdelta_run_"+name+"_timestamp", "seconds", "when the run "+name+", since 1970", float64(at.UnixMilli())/1e3)
	}
}

// progress is how far a run is.
func (p *page) progress(s Progress) {
	p.add("netdelta_progress_elapsed", "seconds", "how long the run has measured", s.Elapsed.Seconds())
	p.add("netdelta_progress_budget", "seconds", "how long the run may take", s.Budget.Seconds())
	p.add("netdelta_progress_build", "", "the build that is measured, from 1", float64(s.Build))
	p.add("netdelta_progress_round", "", "the round of the build that is measured, from 1", float64(s.Round))
	p.add("netdelta_progress_rounds", "", "how many rounds the build is planned to have", float64(s.Rounds))
	p.add("netdelta_progress_cells", "", "how many cells are measured in this build", float64(s.Cells))
	if s.Open >= 0 {
		p.add("netdelta_progress_unresolved_cells", "", "how many cells are not known well enough yet", float64(s.Open))
	}
}

// deltas are the figures of deltas of one kind: "delta" of networks, "null" of the null check.
func (p *page) deltas(kind, of string, all []result.Delta) {
	for _, d := range all {
		labels := []label{
			{"network", d.Network}, {"baseline", d.Baseline}, {"placement", string(d.Placement)}, {"path", cmp.Or(d.Path, "pod")},
			{"workload", d.Workload}, {"load", words.Load(d.Setting)}, {"metric", d.Metric}, {"cell", d.Cell},
		}
		prefix := "netdelta_" + kind + "_"
		if d.Ratio != 0 {
			p.add(prefix+"ratio", "", of+", as a ratio", d.Ratio, labels...)
			p.bound(prefix+"ratio_low", "", "the lower bound of the ratio", d.RatioLow, 1, labels)
			p.bound(prefix+"ratio_high", "", "the upper bound of the ratio", d.RatioHigh, 1, labels)
		}
		unit, factor := base(d.Unit)
		p.add(prefix+"difference", unit, of+", as a difference at the baseline's value", factor*d.Difference, labels...)
		p.bound(prefix+"difference_low", unit, "the lower bound of the difference", d.DifferenceLow, factor, labels)
		p.bound(prefix+"difference_high", unit, "the upper bound of the difference", d.DifferenceHigh, factor, labels)
		p.add(prefix+"value", unit, "what was measured on the network", factor*d.Value, labels...)
		p.add(prefix+"baseline", unit, "what was measured on its baseline", factor*d.BaselineValue, labels...)
		p.add(prefix+"builds", "", "how many builds are behind the figures", float64(d.Blocks), labels...)
		for _, verdict := range []stats.Verdict{stats.Slower, stats.Faster, stats.Same, stats.Unresolved} {
			p.add(prefix+"verdict", "", "1 for the verdict, 0 for the others", truth(d.Verdict == string(verdict)),
				append(slices.Clone(labels), label{"verdict", string(verdict)})...)
		}
	}
}

// bound is one that an interval of too few builds has not.
func (p *page) bound(name, unit, help string, value *float64, factor float64, labels []label) {
	if value != nil {
		p.add(name, unit, help, factor**value, labels...)
	}
}

// States of a trial.
const (
	stateGood      = "good"
	stateFailed    = "failed"
	stateMisrouted = "misrouted"
)

// trials counts the trials of each cell by what became of them.
func (p *page) trials(run result.Run, trials result.Trials) {
	counts := map[string]map[string]int{}
	for t := range result.Each(trials) {
		if counts[t.Cell] == nil {
			counts[t.Cell] = map[string]int{}
		}
		switch {
		case t.Failed != "":
			counts[t.Cell][stateFailed]++
		case t.Path != nil && !t.Path.OK:
			counts[t.Cell][stateMisrouted]++
		default:
			counts[t.Cell][stateGood]++
		}
	}
	for _, c := range run.Cells {
		for _, state := range []string{stateGood, stateFailed, stateMisrouted} {
			p.add("netdelta_trials", "", "trials of a cell, by what became of them: only good ones enter deltas", float64(counts[c.ID][state]),
				label{"network", c.Network}, label{"placement", string(c.Placement)}, label{"path", cmp.Or(c.Path, "pod")},
				label{"workload", c.Workload}, label{"load", words.Load(c.Setting())}, label{"role", string(c.Role)}, label{"cell", c.ID},
				label{"state", state})
		}
	}
}

// account is how much was measured, and what of it was left out.
func (p *page) account(a *result.Account) {
	if a == nil {
		return
	}
	p.add("netdelta_bursts", "", "bursts that were measured", float64(a.Bursts))
	for _, reason := range slices.Sorted(maps.Keys(a.LostBursts)) {
		p.add("netdelta_left_out_bursts", "", "bursts that enter no delta, by reason", float64(a.LostBursts[reason]), label{"reason", reason})
	}
	p.add("netdelta_left_out_cells", "", "cells that were not measured, by the time budget or as the study says", float64(a.LeftOut))
}

// verdicts counts checks that found something, and claims.
func (p *page) verdicts(run result.Run) {
	checks, claims := map[string]int{}, map[string]int{}
	for _, c := range run.Checks {
		if !c.OK {
			checks[c.Check]++
		}
	}
	for _, c := range run.Claims {
		claims[c.Verdict]++
	}
	for _, check := range []string{
		insight.CheckFinished, insight.CheckMeasured, insight.CheckBaseline, insight.CheckDisturbed, insight.CheckLoss, insight.CheckHistogram,
		insight.CheckSender, insight.CheckPath, insight.CheckSockets, insight.CheckStalls, insight.CheckErrors, insight.CheckConfig, insight.CheckStep, insight.CheckDisk, insight.CheckCarry, insight.CheckScatter, insight.CheckLeftOut, insight.CheckState, insight.CheckServices,
		insight.CheckBusy, insight.CheckNull,
	} {
		p.add("netdelta_failed_checks", "", "how often a check found something", float64(checks[check]), label{"check", check})
	}
	for _, verdict := range []string{
		insight.Confirmed, insight.ConfirmedInPart, insight.Contradicted, insight.Undecided, insight.NoTest, insight.NotComparable, insight.NotTested,
	} {
		p.add("netdelta_claims", "", "claims of the study, by verdict", float64(claims[verdict]), label{"verdict", verdict})
	}
}

// truth is a yes or no as a number.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
