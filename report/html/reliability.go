package html

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// absence is a reason for which something was not measured.
type absence struct {
	Who, Why string
	// Unsupported tells what this machine can't do from what the run left out.
	Unsupported bool
}

// absences list why cells were not measured, each reason once: of what is unsupported the networks, else how many cells.
func (p *page) absences() []absence {
	var all []absence
	for _, a := range insight.Absences(p.Run.Cells) {
		all = append(all, absence{Who: words.Absent(a), Why: a.Why, Unsupported: a.Unsupported})
	}
	return all
}

// missing are a setting's networks that were to be measured and have no delta, with the reason.
func (p *page) missing(s *setting) []absence {
	have := map[string]bool{}
	for _, d := range s.part.Deltas {
		have[d.Cell] = have[d.Cell] || d.Headline
	}
	var all []absence
	for _, c := range s.part.Cells {
		if c.Role == result.RoleCell && !have[c.ID] {
			all = append(all, absence{Who: insight.Name(c.Network, c.Path), Why: cmp.Or(p.reasons[c.ID], "no trial of it is finished")})
		}
	}
	return all
}

// reasons say, by cell, what its failed checks found: of a trial that did not end what stopped it, before anything else.
func reasons(all []result.Check) map[string]string {
	by := map[string]string{}
	for _, c := range all {
		if !c.OK && c.Check != insight.CheckFinished && by[c.Trial] == "" {
			by[c.Trial] = c.Observed
		}
	}
	for _, c := range all {
		if i := strings.LastIndexByte(c.Trial, '#'); !c.OK && c.Check == insight.CheckFinished && i >= 0 {
			by[c.Trial[:i]] = c.Observed
		}
	}
	return by
}

// checks are all checks of one kind.
type checks struct {
	Name           string
	Failed, Passed int
	// Entries are the first of those that failed, Example is one that passed.
	Entries []result.Check
	Example *result.Check
}

// More counts the failed checks that are not listed.
func (c checks) More() int { return c.Failed - len(c.Entries) }

// Few says whether there is something to show and not so much of it that it would push away what follows.
func (c checks) Few() bool { return c.Failed > 0 && c.Failed <= checksOpenMost }

// checks sorts the run's checks by kind: those that failed first, the most frequent before the others.
func (p *page) checks() []checks {
	var all []checks
	for name, own := range insight.By(p.Run.Checks, func(c result.Check) string { return c.Check }) {
		group := checks{Name: name}
		for i, c := range own {
			switch {
			case c.OK:
				if group.Passed++; group.Passed == 1 {
					group.Example = &own[i]
				}
			default:
				if group.Failed++; group.Failed <= listMost {
					group.Entries = append(group.Entries, c)
				}
			}
		}
		all = append(all, group)
	}
	slices.SortStableFunc(all, func(a, b checks) int { return b.Failed - a.Failed })
	return all
}

// lost is a line of what was left out.
type lost struct{ What, Reason, Count, Example string }

// LeftOut is all that enters no delta.
func (p *page) LeftOut() []lost {
	var all []lost
	for _, e := range p.account.LostTrials {
		all = append(all, lost{"trials", e.Reason, unit.Thousands(e.Count) + " of " + unit.Thousands(p.account.Trials), e.Example})
	}
	for _, e := range p.account.LostBursts {
		all = append(all, lost{"bursts", e.Reason, unit.Thousands(e.Count) + " of " + unit.Thousands(p.account.Bursts), meaning(e.Reason)})
	}
	return all
}

// meaning explains a reason for which a burst is marked.
func meaning(reason string) string {
	if strings.HasPrefix(reason, insight.Unwell) {
		return "a daemon behind it was ill, or had to be started again"
	}
	return map[string]string{
		"cpu-pressure": "something else waited for a processor while it was measured",
		"preempted":    "the measuring thread was put aside by the kernel",
		"steal":        "the hypervisor gave the processor to another machine",
		"softirq":      "soft interrupts of something else took the processor",
		"throttled":    "a limit on processor time took hold",
	}[reason]
}

// Misrouted are the trials whose packets went another way, the first of them.
func (p *page) Misrouted() []insight.MisroutedTrial {
	return p.account.Misrouted[:min(len(p.account.Misrouted), listMost)]
}

// Proof is the summary of the paths.
func (p *page) Proof() string {
	a := p.account
	total := a.Proved + a.Weak + a.Unwatched + len(a.Misrouted)
	if total == 0 || total == a.Unwatched {
		return ""
	}
	text := fmt.Sprintf("The path is proved in %s of %s: counters and sampled packets show that the bytes went the way that the network says.",
		unit.Thousands(a.Proved), unit.Counted(total, "trial"))
	if a.Weak > 0 {
		text += fmt.Sprintf(" In %s the proof is weaker than it could be; the drawings say why.", unit.Thousands(a.Weak))
	}
	if a.Unwatched > 0 {
		text += fmt.Sprintf(" %s went unwatched.", unit.Thousands(a.Unwatched))
	}
	if n := len(a.Misrouted); n > 0 {
		text += fmt.Sprintf(" %s misrouted.", unit.Thousands(n))
	}
	return text
}
