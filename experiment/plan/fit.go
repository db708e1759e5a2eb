package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/study"
	"netdelta/result"
)

// Fitted is the part of a study that a budget holds.
type Fitted struct {
	// Cells are all that were given, with Skipped saying why where one is left out.
	Cells []result.Cell
	// Note says in words what is left out and which budget would hold it; "" when nothing is.
	Note string
	// Whole is a budget that holds all cells, rounded up to what one would type.
	Whole time.Duration
}

// BudgetError says that not even the smallest subset fits into the time budget.
type BudgetError struct {
	Budget time.Duration
	Least  time.Duration // the least budget, rounded up to what one would type
	Cells  int           // of the smallest subset
	Builds int
	Rounds int // in each build
}

// Error names the least budget.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("a time budget of %s is too short for even one workload setting (%d cells, %d builds of %d rounds); use --time-budget %s or more, or fewer networks",
		study.FormatDuration(e.Budget), e.Cells, e.Builds, e.Rounds, study.FormatDuration(e.Least))
}

// load is a workload at one combination of parameters, with the cells of all networks and placements that measure it.
type load struct {
	workload string
	params   result.Params
}

// loadOf sorts cells into loads.
type loadOf func(result.Cell) load

// byWorkload puts the levels of all factors into one load, so that the effect of a factor can be told for each load that is kept.
func byWorkload(c result.Cell) load { return load{c.Workload, c.Params.Load()} }

// bySetting makes every combination of levels a load.
func bySetting(c result.Cell) load { return load{c.Workload, c.Params} }

// Fit chooses the cells that the budget holds. All networks and placements are kept, and all levels of what leaves the
// load as it is (result.Factors); of each workload's other parameters the first combination is taken, then the last, then
// those between, one workload after the other, as long as the planned builds with the least number of rounds fit. Where not
// even one combination fits under all levels, each level is chosen by itself in the same way. The smallest subset is one
// combination on all networks, in the least number of builds; when not even that fits, the error is a *BudgetError.
func Fit(cells []result.Cell, costs Costs, rules Rules) (Fitted, error) {
	f, err := fit(cells, byWorkload, costs, rules)
	if err != nil {
		f, err = fit(cells, bySetting, costs, rules)
	}
	return f, err
}

func fit(cells []result.Cell, key loadOf, costs Costs, rules Rules) (Fitted, error) {
	measured := Measured(cells)
	var kept []result.Cell
	chosen := map[load]bool{}
	loads := byTurns(measured, key)
	for i, l := range loads {
		more := append(slices.Clone(kept), cellsOf(measured, l, key)...)
		builds := rules.Builds
		if i == 0 {
			builds = rules.MinBuilds
			if least := need(more, costs, builds, rules); least > rules.Budget {
				return Fitted{}, &BudgetError{
					Budget: rules.Budget, Least: roundUp(least), Cells: len(more), Builds: builds, Rounds: rules.rounds(),
				}
			}
		}
		if need(more, costs, builds, rules) <= rules.Budget {
			kept, chosen[l] = more, true
		}
	}
	f := Fitted{Cells: slices.Clone(cells), Whole: roundUp(need(measured, costs, rules.Builds, rules))}
	for i, c := range f.Cells {
		l := key(c)
		if c.Unsupported == "" && c.Skipped == "" && slices.Contains(loads, l) && !chosen[l] {
			f.Cells[i].Skipped = fmt.Sprintf("left out by the time budget of %s; %s holds all",
				study.FormatDuration(rules.Budget), study.FormatDuration(f.Whole))
		}
	}
	f.Note = note(loads, chosen, measured, key, rules.Budget, f.Whole)
	return f, nil
}

func (r Rules) rounds() int { return max(r.Rounds, r.MinRounds, 1) }

// need is how long the cells take in so many builds with the least number of rounds.
func need(cells []result.Cell, costs Costs, builds int, rules Rules) time.Duration {
	var build time.Duration
	for _, part := range rules.byState(cells) {
		build += costs.Build
		for _, c := range part {
			build += costs.Cell + time.Duration(rules.rounds())*costs.burst(c)
		}
	}
	return costs.Start + time.Duration(builds)*build
}

func cellsOf(cells []result.Cell, l load, key loadOf) []result.Cell {
	return slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return key(c) != l })
}

// byTurns lists the loads in the order in which they are taken: the workloads by turns, each with its first combination,
// its last, and then the others.
func byTurns(cells []result.Cell, key loadOf) []load {
	var workloads []string
	params := map[string][]result.Params{}
	for _, c := range cells {
		if !slices.Contains(workloads, c.Workload) {
			workloads = append(workloads, c.Workload)
		}
		if p := key(c).params; !slices.Contains(params[c.Workload], p) {
			params[c.Workload] = append(params[c.Workload], p)
		}
	}
	var turns []load
	for turn := range cells {
		for _, w := range workloads {
			p := params[w]
			switch {
			case turn >= len(p):
			case turn == 0:
				turns = append(turns, load{w, p[0]})
			case turn == 1:
				turns = append(turns, load{w, p[len(p)-1]})
			default:
				turns = append(turns, load{w, p[turn-1]})
			}
		}
	}
	return turns
}

func note(loads []load, chosen map[load]bool, measured []result.Cell, key loadOf, budget, whole time.Duration) string {
	var in, out []string
	for _, l := range loads {
		text := Describe(l.workload, l.params)
		if n := len(result.Settings(cellsOf(measured, l, key))) / placements(measured); n > 1 {
			text += fmt.Sprintf(" at %d levels", n)
		}
		if chosen[l] {
			in = append(in, text)
		} else {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return ""
	}
	networks := map[string]bool{}
	for _, c := range measured {
		networks[c.Network] = true
	}
	const shown = 8
	left := strings.Join(out[:min(shown, len(out))], ", ")
	if len(out) > shown {
		left += fmt.Sprintf(" and %d more", len(out)-shown)
	}
	return fmt.Sprintf("the time budget of %s holds %d of %d workload settings, each on all %d networks: %s; left out: %s; --time-budget %s holds all",
		study.FormatDuration(budget), len(in), len(loads), len(networks), strings.Join(in, ", "), left, study.FormatDuration(whole))
}

// placements is how many there are in cells.
func placements(cells []result.Cell) int {
	all := map[result.Placement]bool{}
	for _, c := range cells {
		all[c.Placement] = true
	}
	return max(1, len(all))
}

// roundUp gives a duration that one would type: whole 5 s up to two minutes, half minutes up to an hour, then minutes; below
// ten seconds whole seconds, and below one second 10 ms.
func roundUp(d time.Duration) time.Duration {
	step := time.Minute
	switch {
	case d <= time.Second:
		step = 10 * time.Millisecond
	case d <= 10*time.Second:
		step = time.Second
	case d <= 2*time.Minute:
		step = 5 * time.Second
	case d <= time.Hour:
		step = 30 * time.Second
	}
	return (d + step - 1).Truncate(step)
}
