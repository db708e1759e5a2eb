package insight

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
)

// batch is what was measured together: the trials of one build, by cell. Only trials of one batch are paired.
type batch map[string]*summary

// batches sorts trials, given in the order of the journal, into batches in the order of builds. A run that was killed
// within a build does the build again when it is resumed: a cell that occurs once more starts a new batch, which is a
// build of its own. A trial that is in the journal twice (same cell, build and start) counts once.
func batches(trials *Summaries) []batch {
	type key struct {
		cell    string
		build   int
		started int64
	}
	seen := make(map[key]bool, len(trials.all))
	byBuild := map[int][]batch{}
	var builds []int
	for _, s := range trials.all {
		k := key{s.cell, s.build, s.started.UnixNano()}
		if seen[k] {
			continue
		}
		seen[k] = true
		own := byBuild[s.build]
		if own == nil {
			builds = append(builds, s.build)
		}
		if len(own) == 0 || own[len(own)-1][s.cell] != nil {
			own = append(own, batch{})
		}
		own[len(own)-1][s.cell] = s
		byBuild[s.build] = own
	}
	slices.Sort(builds)
	var all []batch
	for _, build := range builds {
		all = append(all, byBuild[build]...)
	}
	return all
}

// cellSet is a setting with its cells.
type cellSet struct {
	at                int // among the settings of the run
	setting           result.Setting
	baseline, control *result.Cell
	cells             []result.Cell
	listed            []result.Cell // all of them, also those that were not to be measured
	planned           bool          // an A/A control was to be measured
	// relative says of metrics, by name and unit, whether deltas across states are relative to the nodes' own network.
	relative map[string]bool
}

// cellSets sorts cells by setting. Cells that were not to be measured are left out.
func cellSets(cells []result.Cell) []cellSet {
	var all []cellSet
	for _, part := range Parts(result.Run{Cells: cells}) {
		t := cellSet{at: len(all), setting: part.Setting, listed: part.Cells, planned: hasControl(part.Cells)}
		for i, c := range part.Cells {
			if c.Unsupported != "" || c.Skipped != "" {
				continue
			}
			switch c.Role {
			case result.RoleBaseline:
				t.baseline = &part.Cells[i]
			case result.RoleControl:
				t.control = &part.Cells[i]
			case result.RoleReference: // seen through summary.reference
			default:
				t.cells = append(t.cells, c)
			}
		}
		all = append(all, t)
	}
	return all
}

// summaries are all trials of the table's cells that count.
func (t cellSet) summaries(all []batch) []*summary {
	var list []*summary
	for _, s := range all {
		for _, id := range t.ids() {
			if trial := s.good(id); trial != nil {
				list = append(list, trial)
			}
		}
	}
	return list
}

// baselines are how many cells of the table are baselines: at most the baseline and its A/A control.
func (t cellSet) baselines() int { return len(t.ids()) - len(t.cells) }

// ids are the table's cells, the baseline and its A/A control first.
func (t cellSet) ids() []string {
	var ids []string
	for _, c := range []*result.Cell{t.baseline, t.control} {
		if c != nil {
			ids = append(ids, c.ID)
		}
	}
	for _, c := range t.cells {
		ids = append(ids, c.ID)
	}
	return ids
}

// good is the trial of a cell in the batch, nil if there is none that counts.
func (s batch) good(id string) *summary {
	if t := s[id]; t != nil && t.excluded() == "" {
		return t
	}
	return nil
}

// Part is what a run has of one setting, with what its verdicts rest on.
type Part struct {
	Setting            result.Setting
	Cells              []result.Cell
	Deltas, Null       []result.Delta
	Contrasts          []result.Contrast
	Confidence, Margin float64
	Adaptive           bool
	Busy               bool // other programs kept the processors busy throughout the run
	Exact              *result.Exact
}

// Parts splits a run by setting, in the order of its cells. The lists are the run's own where what belongs together stands together in
// it: they may not be changed.
func Parts(run result.Run) []Part {
	var all []Part
	at, last, busy := map[result.Setting]int{}, -1, Busy(run)
	of := func(s result.Setting) *Part {
		if last >= 0 && all[last].Setting == s { // as nearly always, and sooner known than by a map
			return &all[last]
		}
		i, known := at[s]
		if !known {
			i = len(all)
			at[s] = i
			all = append(all, Part{Setting: s, Confidence: run.Confidence, Margin: run.Margin, Adaptive: run.Adaptive, Busy: busy, Exact: run.Exact})
		}
		last = i
		return &all[i]
	}
	settings := map[string]result.Setting{}
	for i, c := range run.Cells {
		if c.Unsupported == "" && c.Skipped == "" {
			settings[c.ID] = c.Setting()
		}
		part := of(c.Setting())
		part.Cells = with(part.Cells, run.Cells, i)
	}
	for i, c := range run.Contrasts {
		part := of(settings[c.Cell])
		part.Contrasts = with(part.Contrasts, run.Contrasts, i)
	}
	for i, n := range run.Null {
		part := of(n.Setting)
		part.Null = with(part.Null, run.Null, i)
	}
	for i, d := range run.Deltas {
		part := of(d.Setting)
		part.Deltas = with(part.Deltas, run.Deltas, i)
	}
	return all
}

// with adds entry i of a list to some that stand before it: without a copy while they stand one after the other.
func with[T any](some, list []T, i int) []T {
	first := i - len(some)
	if len(some) == 0 || first >= 0 && &some[0] == &list[first] {
		return list[first : i+1 : i+1]
	}
	return append(some, list[i])
}

// Headlines are the headline deltas of the part, the cheapest network first.
func (p Part) Headlines() []result.Delta { return Headlines(p.Deltas, p.Setting) }

// Shown are the headline deltas of the part in the order of tables and pictures: the networks that pods may have, then demonstrations
// (network.Demonstration); the cheapest of each first.
func (p Part) Shown() []result.Delta { return DemonstrationsLast(p.Headlines()) }

// DemonstrationsLast sorts deltas: the networks that pods may have, then demonstrations. Else they keep their order.
func DemonstrationsLast(all []result.Delta) []result.Delta {
	slices.SortStableFunc(all, func(a, b result.Delta) int {
		switch is, other := network.IsDemonstration(a.Network), network.IsDemonstration(b.Network); {
		case is && !other:
			return 1
		case other && !is:
			return -1
		}
		return 0
	})
	return all
}

// Common are the deltas of networks that pods may have, to which the axis of a picture is fitted; all where there are only others.
func Common(all []result.Delta) []result.Delta {
	common := gather.Where(all, func(d result.Delta) bool { return !network.IsDemonstration(d.Network) })
	if !slices.ContainsFunc(common, func(d result.Delta) bool { return d.Network != d.Baseline }) {
		return all
	}
	return common
}

// NullFailed are the headline null checks that failed, the worst first: there the baseline differs from itself by more than chance.
func NullFailed(null []result.Delta) []result.Delta {
	failed := gather.Where(null, func(n result.Delta) bool {
		return n.Headline && Differs(n)
	})
	slices.SortStableFunc(failed, func(a, b result.Delta) int { return cmp.Compare(math.Abs(Cost(b)), math.Abs(Cost(a))) })
	return failed
}

// withoutDemonstrations is the part without its demonstrations, as long as another network is left.
func (p Part) withoutDemonstrations() Part {
	p.Deltas = Common(p.Deltas)
	return p
}

// By sorts a list into groups of the same key, in the order in which the keys first occur.
func By[T any, K comparable](list []T, key func(T) K) iter.Seq2[K, []T] {
	var order []K
	members := map[K][]T{}
	for _, entry := range list {
		k := key(entry)
		if _, known := members[k]; !known {
			order = append(order, k)
		}
		members[k] = append(members[k], entry)
	}
	return func(yield func(K, []T) bool) {
		for _, k := range order {
			if !yield(k, members[k]) {
				return
			}
		}
	}
}
