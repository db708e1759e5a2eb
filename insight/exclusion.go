package insight

import (
	"cmp"
	"slices"
	"strings"

	"netdelta/result"
)

// Exclusion is a reason for which something was left out of all deltas.
type Exclusion struct {
	Reason string
	Count  int
	// Example is one of what was left out: a trial with what is wrong with it. It is "" for bursts.
	Example string
}

// Account is what a run measured and what of it counts.
type Account struct {
	// Trials and Bursts are all that were finished; Builds are the distinct ones among the trials.
	Trials, Bursts, Builds int
	// Transactions are the transactions of the trials that count.
	Transactions int64
	// LostTrials and LostBursts are what was left out, the most frequent reason first. Bursts of a trial that was left out as a
	// whole are not counted again.
	LostTrials, LostBursts []Exclusion
	// Proved, Weak and Unwatched count the trials that count by the proof of their path: all of it, part of it, none of it.
	Proved, Weak, Unwatched int
	// Misrouted are the trials whose packets went another way.
	Misrouted []MisroutedTrial
}

// MisroutedTrial is a trial whose packets went another way than its network says, and what shows it.
type MisroutedTrial struct {
	ID   string
	Path *result.Path
}

// Audit counts what trials hold. A trial that is in the journal twice counts once.
func (s *Summaries) Audit() Account {
	var a Account
	lost, disturbed := map[string]*Exclusion{}, map[string]*Exclusion{}
	builds := map[int]bool{}
	for _, batch := range batches(s) {
		for _, t := range batch {
			a.Trials++
			a.Bursts += len(t.rounds)
			builds[t.build] = true
			if reason := t.excluded(); reason != "" {
				count(lost, reason, t.id()+": "+t.whyLost())
				if reason == Misrouted {
					a.Misrouted = append(a.Misrouted, MisroutedTrial{t.id(), t.path})
				}
				continue
			}
			a.Transactions += t.transactions
			a.prove(t.path)
			for _, reason := range t.disturbed {
				if reason != "" {
					count(disturbed, reason, "")
				}
			}
		}
	}
	a.Builds = len(builds)
	a.LostTrials, a.LostBursts = ranked(lost), ranked(disturbed)
	slices.SortFunc(a.Misrouted, func(x, y MisroutedTrial) int { return cmp.Compare(x.ID, y.ID) })
	return a
}

// Counts are the account as the record has it.
func (a Account) Counts(cells []result.Cell) *result.Account {
	by := func(all []Exclusion) map[string]int {
		counts := map[string]int{}
		for _, e := range all {
			counts[e.Reason] = e.Count
		}
		return counts
	}
	return &result.Account{
		Trials: a.Trials, Builds: a.Builds, Bursts: a.Bursts, LostTrials: by(a.LostTrials), LostBursts: by(a.LostBursts), LeftOut: LeftOut(cells),
	}
}

// LeftOut counts the cells that were not measured, by the time budget or as the study says.
func LeftOut(cells []result.Cell) int {
	n := 0
	for _, a := range Absences(cells) {
		if !a.Unsupported {
			n += a.Cells
		}
	}
	return n
}

// prove counts the proof of a path.
func (a *Account) prove(p *result.Path) {
	switch {
	case p == nil:
		a.Unwatched++
	case len(p.Weak) > 0:
		a.Weak++
	default:
		a.Proved++
	}
}

// whyLost says what is wrong with a trial.
func (s *summary) whyLost() string {
	if s.failed != "" {
		return s.failed // it may have no path
	}
	return strings.Join(s.path.Findings, "; ")
}

// count adds one to a reason. Of the examples the first in the order of the alphabet is kept, so that the order of counting does
// not show.
func count(in map[string]*Exclusion, reason, example string) {
	e := in[reason]
	if e == nil {
		e = &Exclusion{Reason: reason, Example: example}
		in[reason] = e
	}
	e.Count++
	e.Example = min(e.Example, example)
}

// ranked are the reasons, the most frequent first.
func ranked(reasons map[string]*Exclusion) []Exclusion {
	all := make([]Exclusion, 0, len(reasons))
	for _, e := range reasons {
		all = append(all, *e)
	}
	slices.SortFunc(all, func(x, y Exclusion) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Reason, y.Reason))
	})
	return all
}

// Absence is a reason for which cells were not measured, with what it keeps out.
type Absence struct {
	// Why is the reason, without the name of the network that it is about.
	Why string
	// Unsupported tells what this machine can't do from what the run left out.
	Unsupported bool
	// InGuest says that a guest has what this machine lacks.
	InGuest bool
	// Conditions says that the networks themselves can be had here: what lacks is a condition of these cells, such as a bond.
	Conditions bool
	// Networks are the cells' networks, each once, and Cells is how many cells there are.
	Networks []string
	Cells    int
}

// Absences are the reasons for which cells were not measured, each once, in the order in which they first occur. What this
// machine lacks is sorted by what to do about it: networks of which each needs something else, and that one thing would fix, are
// one absence.
func Absences(cells []result.Cell) []Absence {
	type reason struct {
		why                              string
		unsupported, inGuest, conditions bool
	}
	lacking := lackingNetworks(cells)
	var all []Absence
	var needs [][]string // of each
	at := map[reason]int{}
	for _, c := range cells {
		r, need := reason{why: c.Skipped}, ""
		if c.Unsupported != "" {
			why := strings.TrimPrefix(c.Unsupported, "network "+c.Network+" is ")
			why = strings.TrimPrefix(why, "unsupported: ")
			if what, fix, found := cutLast(why, "; "); found && strings.HasPrefix(what, "needs ") {
				need, why = strings.TrimPrefix(what, "needs "), fix
			}
			r = reason{why, true, c.InGuest, !lacking[c.Network]}
		}
		if r.why == "" {
			continue
		}
		i, known := at[r]
		if !known {
			i = len(all)
			at[r] = i
			all, needs = append(all, Absence{Why: r.why, Unsupported: r.unsupported, InGuest: r.inGuest, Conditions: r.conditions}), append(needs, nil)
		}
		all[i].Cells++
		if !slices.Contains(all[i].Networks, c.Network) {
			all[i].Networks = append(all[i].Networks, c.Network)
		}
		if need != "" && !slices.Contains(needs[i], need) {
			needs[i] = append(needs[i], need)
		}
	}
	for i := range all {
		switch {
		case len(needs[i]) == 1:
			all[i].Why = "needs " + needs[i][0] + "; " + all[i].Why
		case len(needs[i]) > 1:
			all[i].Why = "each needs one of " + strings.Join(needs[i], ", ") + "; " + all[i].Why
		}
	}
	return all
}

// lackingNetworks are the networks of which this machine can have no cell.
func lackingNetworks(cells []result.Cell) map[string]bool {
	lacking := map[string]bool{}
	for _, c := range cells {
		before, known := lacking[c.Network]
		lacking[c.Network] = c.Unsupported != "" && (before || !known)
	}
	return lacking
}

// cutLast cuts a text at the last place where sep stands.
func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}
