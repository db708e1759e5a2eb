// Package words puts records and findings in words: the one place with the sentences that the terminal, the page, Markdown, JUnit and
// annotations have in common.
package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// Value prints a metric's value in its unit: "21.3 µs", "9.41 Gbit/s", "0.12%".
func Value(unitName string, v float64) string {
	switch unitName {
	case "ns":
		return unit.Duration(time.Duration(math.Round(v)))
	case "bit/s":
		return rate(v)
	case "ratio":
		return strconv.FormatFloat(100*v, 'f', 2, 64) + "%"
	case "instructions":
		return strconv.FormatFloat(v, 'f', 0, 64) + " instructions"
	case unitPerSecond:
		return digits(v) + "/s"
	case wordIOPS, wordTPS, wordRequests:
		return digits(v) + " " + unitName
	}
	return strings.TrimSpace(strconv.FormatFloat(v, 'g', 4, 64) + " " + unitName)
}

// Points ends a difference of two shares.
const Points = " points"

// Difference prints a difference of two values of a metric, with its sign: "+3.21 µs", "-1.20 Gbit/s".
func Difference(unitName string, v float64) string {
	switch unitName {
	case "ns":
		return unit.Difference(time.Duration(math.Round(v)))
	case "ratio":
		return signed(v, strconv.FormatFloat(math.Abs(100*v), 'f', 2, 64)) + Points
	}
	return signed(v, Value(unitName, math.Abs(v)))
}

// Words for transactions per second, by what a transaction is.
const (
	unitPerSecond = "1/s"
	wordIOPS      = "IOPS"
	wordTPS       = "TPS"
	wordRequests  = "requests/s"
)

// Unit is the unit of a delta's metric in the words of its workload: "IOPS" for operations on blocks, "TPS" for the transactions
// of a database. Value and Difference take it.
func Unit(d result.Delta) string {
	if d.Unit == unitPerSecond {
		switch d.Workload {
		case "block":
			return wordIOPS
		case "oltp":
			return wordTPS
		case "http":
			return wordRequests
		}
	}
	return d.Unit
}

// digits prints how many there are of something: to three digits, and above that to the last one.
func digits(v float64) string {
	decimals := 0
	for x := math.Abs(v); decimals < 2 && x != 0 && x < 99.95; decimals++ {
		x *= 10
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// signed puts the sign of v before a magnitude.
func signed(v float64, magnitude string) string {
	switch {
	case v > 0:
		return "+" + magnitude
	case v < 0:
		return "-" + magnitude
	}
	return magnitude
}

// rate prints bits per second to three digits.
func rate(v float64) string {
	for _, scale := range []struct {
		size float64
		name string
	}{{1e12, "Tbit/s"}, {1e9, "Gbit/s"}, {1e6, "Mbit/s"}, {1e3, "kbit/s"}} {
		if math.Abs(v) >= 0.9995*scale.size {
			scaled := v / scale.size
			decimals := 2
			for decimals > 0 && math.Round(math.Abs(scaled)*math.Pow10(decimals)) >= 1000 {
				decimals--
			}
			return strconv.FormatFloat(scaled, 'f', decimals, 64) + " " + scale.name
		}
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " bit/s"
}

// Percent prints a ratio as a change, to a tenth of a percent below 10% and to a whole one from there on: "+1.2%", "+31%".
func Percent(ratio float64) string {
	if math.Abs(ratio-1) < 0.0995 {
		return unit.Ratio(ratio).PercentTo(1)
	}
	return unit.Ratio(ratio).PercentTo(0)
}

// roughly is a share in percent, to two digits below a hundred.
func roughly(share float64) string {
	if percent := 100 * share; percent < 99.5 {
		return fmt.Sprintf("%.2g%%", percent)
	}
	return fmt.Sprintf("%.0f%%", 100*share)
}

// List joins words as English does: "a", "a and b", "a, b and c".
func List(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// agree is the form of a verb for n subjects.
func agree(n int, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}

// Where says where a placement is, for the beginning of a sentence.
func Where(p result.Placement) string {
	switch p {
	case result.SameNode:
		return "On one node"
	case result.CrossNode:
		return "Across nodes"
	}
	return "Here"
}

// At is Where within a sentence: "on one node".
func At(p result.Placement) string { return strings.ToLower(Where(p)) }

// Title names a setting in a heading of Markdown: "tcp-rr, 300B, across nodes".
func Title(s result.Setting) string { return Load(s) + ", " + At(s.Placement) }

// Load names a setting's workload with its parameters: "tcp-rr, 300B, 4 connections".
func Load(s result.Setting) string {
	regime := regime(s)
	if regime != "" {
		s.Params.CPU, s.Params.RequestRate = "", 0 // it says so
	}
	parts := append([]string{s.Workload}, s.Params.Headings()...)
	if regime != "" {
		parts = append(parts, regime)
	}
	for _, l := range s.Params.Conditions.Levels() {
		parts = append(parts, levelWords(l))
	}
	return strings.Join(parts, ", ")
}

// regime names the regime of a setting in a heading: "waking", "paced at 1000/s".
func regime(s result.Setting) string {
	name := s.Regime()
	if name != result.RegimePaced {
		return name
	}
	name = fmt.Sprintf("%s at %g/s", name, s.Params.RequestRate)
	if s.Params.CPU == "same" {
		name += " on one CPU"
	}
	return name
}

// levelWords names a level of a condition for a heading: "1000 rules of nftables", "4 links (802.3ad, layer3+4)".
func levelWords(l result.Level) string {
	kind, n, _ := strings.Cut(l.Value, ":")
	switch l.Factor {
	case "link.nodes":
		return "links of " + strings.NewReplacer(":", " ", "+", ", ").Replace(l.Value)
	case "bond":
		links, how, _ := strings.Cut(l.Value, "x")
		if links == "1" { // of single nodes
			return "bonds " + strings.ReplaceAll(how, ",", ", ")
		}
		return links + " links (" + strings.ReplaceAll(how, ",", ", ") + ")"
	case "policy":
		rules, pods, idle := strings.Cut(strings.TrimSuffix(n, "pods"), ",")
		words := "policy " + kind + ", " + rules + " rules"
		if idle {
			words += ", " + pods + " more pods"
		}
		return words
	case "service":
		return "service " + kind + ", one of " + n
	}
	return l.Heading()
}

// Judge is insight.Judge with its findings in words, as records hold them.
type Judge struct{ insight.Judge }

// NewJudge makes a judge that knows the headlines and the default parameters of these workloads.
func NewJudge(workloads []workload.Workload) Judge { return Judge{insight.NewJudge(workloads)} }

// Conclude fills in all that follows from a run's trials: deltas, the null check, checks, claims, advice.
func (j Judge) Conclude(run *result.Run, trials []result.Trial) {
	j.ConcludeFrom(run, insight.Summarize(result.List(trials)))
}

// ConcludeFrom is Conclude of trials that were summed up already.
func (j Judge) ConcludeFrom(run *result.Run, trials *insight.Summaries) {
	f := j.Judge.Conclude(run, trials)
	run.Checks, run.Advice = nil, nil
	for _, c := range f.Checks {
		run.Checks = append(run.Checks, Check(c))
	}
	claims := make([]result.Claim, len(run.Claims))
	for i, c := range run.Claims {
		c.Verdict, c.Measured = f.Claims[i].Verdict, Measured(f.Claims[i])
		claims[i] = c
	}
	run.Claims = claims
	Goals(run)
	for _, a := range f.Advice {
		a.Run.Checks = run.Checks // they were made after the advice
		run.Advice = append(run.Advice, Advice(a))
	}
	run.Summary = result.Summary{Says: Summary(*run), Next: Next(*run)}
	for _, part := range insight.Answered(*run) {
		run.Summary.Cells = append(run.Summary.Cells, gather.Each(part.Shown(), func(d result.Delta) string { return d.Cell })...)
	}
}

// Compare says what changed from one run to another; see insight.Judge.Compare.
func (j Judge) Compare(before, after insight.Measured, o insight.Comparing) result.Comparison {
	c := j.Judge.Compare(before, after, o)
	c.Notes = append(notes("the old run", before), notes("the new run", after)...)
	for i := range c.Changes {
		if why := doubt(c.Doubts[i], c.Changes[i]); why != "" {
			c.Changes[i].Warnings = append(c.Changes[i].Warnings, why)
		}
	}
	for i := range c.Unpaired {
		c.Unpaired[i].Why = absence(c.Absences[i])
	}
	c.Says = outcome(c.Comparison)
	return c.Comparison
}

// notes are what must be known of one of two runs.
func notes(which string, m insight.Measured) []string {
	var all []string
	switch m.Run.Ended {
	case "interrupted", "failed", "nothing measured":
		all = append(all, fmt.Sprintf("%s ended early (%s): its figures are those measured by then", which, m.Run.Ended))
	case "running":
		all = append(all, fmt.Sprintf("%s is still under way or was killed: its figures are those of finished builds", which))
	}
	for _, n := range m.Notes {
		all = append(all, which+": "+n)
	}
	return all
}

// doubt says why a change is unresolved although its whole interval lies beyond the margin.
func doubt(d insight.Doubt, c result.Change) string {
	switch d {
	case insight.DoubtNullCheck:
		return "a null check has too few builds for a noise floor"
	case insight.DoubtFloor:
		return fmt.Sprintf("the change is no larger than what the null checks leave possible (%s)", roughly(*c.Floor))
	case insight.DoubtChance:
		return "which may be chance: among so many deltas one may look like this"
	}
	return ""
}

// absence says why a run does not have a delta.
func absence(a insight.AbsentDelta) string {
	switch {
	case a.NoCell:
		return "not part of that run"
	case a.Unsupported != "":
		return "unsupported there: " + a.Unsupported
	case a.Skipped != "":
		if why, own := strings.CutPrefix(a.Skipped, "left out "); own {
			return "left out there " + why
		}
		return "left out there: " + a.Skipped
	case a.Baseline != "":
		return "compared with " + a.Baseline + " there"
	}
	return "no result there"
}

// secretOption is the option whose value a record may lack, since it is secret.
const secretOption = "target-password-file"

// Option is an option as one types it.
func Option(name, value string) string {
	if value == "true" {
		return "--" + name
	}
	return "--" + name + " " + testbed.Quoted(value)
}

// Resume is the command that goes on with a run. The run folder has the options; what is secret is given anew.
func Resume(run result.Run) string {
	verb := "run"
	if run.Strategy != nil {
		verb = run.Strategy.Name
	}
	return "netdelta " + verb + " --resume " + Folder + secret(run)
}

// secret asks for what a run was given and its record can't have.
func secret(run result.Run) string {
	if value, given := run.Options[secretOption]; given && value == "" {
		return " --" + secretOption + " FILE"
	}
	return ""
}

// on are the options that have another run measure where and as this one did. A study of the user's own names its testbed.
func on(run result.Run, builtin bool) string {
	var all []string
	if _, whatIf := run.Options["what-if"]; builtin && !whatIf && run.Testbed != "lab" && run.Testbed != "" && run.Testbed != run.Study {
		all = append(all, Option("testbed", run.Testbed))
	}
	for _, name := range slices.Sorted(maps.Keys(run.Options)) {
		value := run.Options[name]
		if !slices.Contains([]string{"builds", "flame", "hops", "explain-outliers", secretOption}, name) {
			all = append(all, Option(name, value))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, " ") + secret(run)
}
