package words

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

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
		run.Advice = append(run.Advice, Advice(a))
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
