package insight

import (
	"maps"
	"slices"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// AdviceKind is what an advice is about.
type AdviceKind int

// The kinds, in the order in which they are given.
const (
	AdviceChange     AdviceKind = iota // make Change
	AdviceLink                         // the links bound Settings
	AdviceDisk                         // the disk bounds Settings
	AdviceFree                         // Networks cost nothing that matters: there is nothing to change
	AdviceFix                          // the doctor found Finding, which has a fix; Change would be it, where the run measured that and can't tell what it gains
	AdviceWhatIf                       // Untried, changes of the cluster's own network, can be weighed on its nodes before they are made
	AdviceLastResort                   // make Change where nothing else helps: the pod has no network of its own any more
	AdviceMore                         // Open of Headlines deltas are unresolved
	AdviceMove                         // Untried were not measured together with their alternatives
	AdviceMTU                          // the links bound a run with small packets, and it was not measured with larger ones
	AdviceLeftOut                      // the time budget left settings out
	AdviceKernel                       // Networks are unsupported here
	AdviceSight                        // Finding is what the doctor could not see
	AdviceBroken                       // repair what Finding says of a network over which nothing could be measured: given alone
)

// Advice is an opportunity: a change that the run speaks for, or a run that would tell more. It is about costs alone; what
// else a network is chosen for is for the reader to weigh.
type Advice struct {
	Kind      AdviceKind
	Run       result.Run
	Change    Change
	Workload  string
	Placement result.Placement
	Networks  []string
	Baseline  string
	Margin    float64
	Settings  []result.Setting
	Untried   []network.Move
	Finding   result.Finding
	// Beyond are the workloads that a guest can't measure on Networks either (AdviceKernel).
	Beyond []string
	// Open deltas of Headlines are unresolved; about Need builds would settle them, 0 if that is not known.
	Open, Headlines, Need int
}

// Advise says what to change, the largest gain first, then what to leave alone, what the doctor found, what is left as a last resort, and
// what a run lacked for more. The direct deltas
// come from basis.directs. Where a network is broken, that is to be repaired before anything is changed.
func Advise(run result.Run, direct []result.Delta) []Advice {
	if all := broken(run); len(all) > 0 {
		return all
	}
	var all []Advice
	parts := Parts(run)
	var escapes []Advice
	for _, c := range Changes(run, direct) {
		if c.escapes() {
			escapes = append(escapes, Advice{Kind: AdviceLastResort, Change: c})
			continue
		}
		all = append(all, Advice{Kind: AdviceChange, Change: c})
	}
	all = append(all, boundAdvice(parts)...)
	all = append(all, free(run, parts)...)
	fixes, sight := fixes(run, direct, all)
	all = slices.Concat(all, fixes, weighable(run), escapes, more(run), questions(run), sight)
	for i := range all {
		all[i].Run = run
	}
	return all
}

// broken are the networks over which nothing could be measured.
func broken(run result.Run) (all []Advice) {
	for _, f := range run.Environment.Findings {
		if f.Topic == result.TopicBroken {
			all = append(all, Advice{Kind: AdviceBroken, Finding: f, Run: run})
		}
	}
	return all
}

// fixes are what the doctor found and no change among those advised puts right, and what it could not see.
func fixes(run result.Run, direct []result.Delta, advised []Advice) (fixes, sight []Advice) {
	for _, f := range run.Environment.Findings {
		weighed := slices.ContainsFunc(advised, func(a Advice) bool { return a.Change.Finding != nil && a.Change.Finding.Topic == f.Topic })
		switch {
		case f.Fix == "" || weighed:
		case f.Topic == TopicNodeAgent:
			sight = append(sight, Advice{Kind: AdviceSight, Finding: f})
		default:
			a := Advice{Kind: AdviceFix, Finding: f}
			for _, c := range networkChanges(run, direct) {
				if c.hold(run); c.Finding != nil && c.Finding.Topic == f.Topic && len(c.Better) == 0 && len(c.Open) > 0 {
					a.Change = c
				}
			}
			fixes = append(fixes, a)
		}
	}
	return fixes, sight
}

// free names networks that are the same as their baseline in every setting of a workload that was measured: changing them gains nothing. Of the
// ways to a cluster's pods that is said against the nodes' own network alone: nobody chooses between a service and its pod.
func free(run result.Run, parts []Part) []Advice {
	if run.Environment.Cluster != nil && !onNodesOfCluster(run) && run.Baseline() != hostNetwork {
		return nil
	}
	var all []Advice
	for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
		seen := map[string]bool{}
		for _, c := range run.Cells {
			if seen[c.Workload] {
				continue
			}
			seen[c.Workload] = true
			a := Advice{Kind: AdviceFree, Workload: c.Workload, Placement: p}
			var same map[string]bool
			for _, part := range parts {
				if s := part.Setting; s.Placement != p || s.Workload != c.Workload || len(part.Headlines()) == 0 {
					continue
				}
				a.Margin, a.Baseline = part.Margin, part.Headlines()[0].Baseline
				a.Settings = append(a.Settings, part.Setting)
				var own []result.Delta
				for _, d := range part.Headlines() {
					if d.Verdict == string(stats.Same) && d.Ratio > 0 && HasInterval(d) {
						own = append(own, d)
					}
				}
				same = both(same, own)
			}
			for _, n := range networksOf(run) {
				if same[n] {
					a.Networks = append(a.Networks, n)
				}
			}
			if len(a.Networks) > 0 {
				all = append(all, a)
			}
		}
	}
	return all
}

// hostNetwork is the nodes' own network, on a cluster and in a lab.
const hostNetwork = "host"

// networksOf are the networks of a run's cells, with their paths, in order.
func networksOf(run result.Run) []string {
	var all []string
	for _, c := range run.Cells {
		if name := Name(c.Network, c.Path); c.Role == result.RoleCell && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// more says what a run lacked for the verdicts that it leaves open.
func more(run result.Run) []Advice {
	a := Advice{Kind: AdviceMore}
	for _, d := range run.Deltas {
		if !d.Headline {
			continue
		}
		a.Headlines++
		if d.Verdict == string(stats.Unresolved) {
			a.Open++
			a.Need = max(a.Need, d.Need)
		}
	}
	if a.Open == 0 {
		return nil
	}
	return []Advice{a}
}

// questions are the questions next to those that a run answered, as runs that would answer them.
func questions(run result.Run) []Advice {
	if run.Testbed == result.Imported || run.Exact != nil {
		return nil
	}
	var all []Advice
	measured, skipped := map[string]bool{run.Baseline(): true}, Advice{Kind: AdviceLeftOut}
	lacking := lackingNetworks(run.Cells)
	for _, d := range run.Deltas {
		measured[d.Network] = true
	}
	for _, c := range run.Cells {
		if c.Role == result.RoleCell && c.Unsupported == "" && c.Skipped != "" {
			skipped.Settings = gather.Once(skipped.Settings, c.Setting())
		}
	}
	all = append(all, untried(run, measured, lacking)...)
	if small(run) {
		all = append(all, Advice{Kind: AdviceMTU})
	}
	if len(skipped.Settings) > 0 {
		all = append(all, skipped)
	}
	if kernel := inGuest(run.Cells, lacking); len(kernel.Networks)+len(kernel.Settings) > 0 && run.Testbed == "lab" {
		all = append(all, kernel)
	}
	return all
}

// inGuest is what this kernel lacks and a guest has.
func inGuest(cells []result.Cell, lacking map[string]bool) Advice {
	a, able := Advice{Kind: AdviceKernel}, map[string]bool{}
	for _, c := range cells {
		if c.Role != result.RoleCell || c.Unsupported == "" {
			continue
		}
		if lacking[c.Network] {
			able[c.Workload] = able[c.Workload] || c.InGuest
		}
		switch {
		case !c.InGuest:
		case lacking[c.Network]:
			a.Networks = gather.Once(a.Networks, c.Network)
		default:
			a.Settings = gather.Once(a.Settings, c.Setting())
		}
	}
	a.Beyond = gather.Where(slices.Sorted(maps.Keys(able)), func(workload string) bool {
		return !able[workload] && slices.ContainsFunc(cells, func(c result.Cell) bool { return c.Workload == workload && c.Unsupported == "" })
	})
	return a
}

// untried are the changes within a system of which a run has measured one side.
func untried(run result.Run, measured, lacking map[string]bool) []Advice {
	move := Advice{Kind: AdviceMove}
	has := func(names map[string]bool, p network.Product) bool { return names[p.Network] || names[p.Name] }
	for _, m := range movesOf(run) {
		if has(measured, m.From) && !has(measured, m.To) && !has(lacking, m.To) {
			move.Untried = append(move.Untried, m)
		}
	}
	if len(move.Untried) == 0 {
		return nil
	}
	return []Advice{move}
}

// weighable are the changes of a cluster's own product that a run on it can't tell of, and a run on its nodes can.
func weighable(run result.Run) []Advice {
	moves, cluster := movesOf(run), run.Environment.Cluster
	if len(moves) == 0 || cluster == nil || cluster.Product == "" || onNodesOfCluster(run) || len(run.Changes) > 0 {
		return nil
	}
	return []Advice{{Kind: AdviceWhatIf, Untried: moves}}
}

// small says whether bulk transfers were measured with usual packets alone.
func small(run result.Run) bool {
	bulk := false
	for _, d := range run.Deltas {
		if d.Params.MTU > 1500 {
			return false
		}
		bulk = bulk || d.Headline && d.Metric == metricThroughput
	}
	return bulk && run.Testbed == "lab"
}

// both are the names that are in a set and among deltas; a nil set holds every name.
func both(set map[string]bool, deltas []result.Delta) map[string]bool {
	common := map[string]bool{}
	for _, name := range Names(deltas) {
		if set == nil || set[name] {
			common[name] = true
		}
	}
	return common
}

// boundOf is what bounded a cell in more than half of its trials that count, "" if nothing did or that is not known.
func boundOf(cell string, all []batch) string {
	by, known := map[string]int{}, 0
	for _, s := range all {
		if t := s.good(cell); t != nil && t.bound != nil {
			by[t.bound.By]++
			known++
		}
	}
	for name, n := range by {
		if 2*n > known {
			return name
		}
	}
	return ""
}

// Bound is what kept some networks of a setting from doing more.
type Bound struct {
	By       string // result.BoundCPU and its like
	Networks []string
}

// Bounds says what bounded the networks of a setting, by their headline deltas and the baseline's; it is empty where that is not known.
func (p Part) Bounds() []Bound {
	var all []Bound
	add := func(by, name string) {
		if by == "" {
			return
		}
		i := slices.IndexFunc(all, func(b Bound) bool { return b.By == by })
		if i < 0 {
			i, all = len(all), append(all, Bound{By: by})
		}
		if !slices.Contains(all[i].Networks, name) {
			all[i].Networks = append(all[i].Networks, name)
		}
	}
	for _, d := range p.Null {
		if d.Headline {
			add(d.Bound, d.Baseline)
		}
	}
	for _, d := range p.Deltas {
		if d.Headline {
			add(d.Bound, Name(d.Network, d.Path))
		}
	}
	return all
}

// boundAdvice names the settings that something else than the network holds back.
func boundAdvice(parts []Part) []Advice {
	disk, link := Advice{Kind: AdviceDisk}, Advice{Kind: AdviceLink}
	for _, part := range parts {
		heads := part.Headlines()
		all := func(bound string) bool {
			return len(heads) > 0 && !slices.ContainsFunc(heads, func(d result.Delta) bool { return d.Bound != bound })
		}
		switch {
		case all(result.BoundDisk):
			disk.Settings = append(disk.Settings, part.Setting)
		case all(result.BoundLink):
			link.Settings = append(link.Settings, part.Setting)
		}
	}
	return slices.DeleteFunc([]Advice{disk, link}, func(a Advice) bool { return len(a.Settings) == 0 })
}
