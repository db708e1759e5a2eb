package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"netdelta/result"
	"netdelta/unit"
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

// BudgetError says that not even the smallest subset fits into the time budget, or into what a run that goes on is given no further build.
type BudgetError struct {
	Budget time.Duration
	Least  time.Duration // the least budget, rounded up to what one would type
	Cells  int           // of the smallest subset, or of the run that goes on
	Builds int           // 0 for a run that goes on
	Rounds int           // in each build
}

// Error names the least budget.
func (e *BudgetError) Error() string {
	if e.Builds == 0 {
		return fmt.Sprintf("a further time budget of %s is too short for another build of this run (%d cells in %d rounds); use --time-budget %s or more",
			unit.FormatDuration(e.Budget), e.Cells, e.Rounds, unit.FormatDuration(e.Least))
	}
	return fmt.Sprintf("a time budget of %s is too short for even one workload setting (%d cells, %d builds of %d rounds); use --time-budget %s or more, or fewer networks",
		unit.FormatDuration(e.Budget), e.Cells, e.Builds, e.Rounds, unit.FormatDuration(e.Least))
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
// those between, one workload after the other, as long as the planned builds with the least number of rounds fit. The first
// combination of each workload that the user named needs the least number of builds only. Where not
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
	chosen := map[load]bool{}
	loads, of := rules.inTurn(measured, key)
	kept := needOf(costs, rules)
	for i, l := range loads {
		more := kept.with(of[l])
		builds := rules.Builds
		if i == 0 || rules.named(l, loads[:i]) {
			builds = rules.MinBuilds
		}
		if i == 0 {
			if least := more.in(builds); least > rules.Budget {
				return Fitted{}, &BudgetError{
					Budget: rules.Budget, Least: roundUp(least), Cells: len(of[l]), Builds: builds, Rounds: rules.rounds(),
				}
			}
		}
		if more.in(builds) <= rules.Budget {
			kept, chosen[l] = more, true
		}
	}
	f := Fitted{Cells: slices.Clone(cells), Whole: roundUp(needOf(costs, rules).with(measured).in(rules.Builds))}
	for i, c := range f.Cells {
		l := key(c)
		if c.Unsupported == "" && c.Skipped == "" && of[l] != nil && !chosen[l] {
			f.Cells[i].Skipped = fmt.Sprintf("left out by the time budget of %s; %s"+holdsAll,
				unit.FormatDuration(rules.Budget), unit.FormatDuration(f.Whole))
		}
	}
	f.Note = note(loads, of, chosen, measured, rules.Budget, f.Whole)
	return f, nil
}

// named says whether a load is the first of a workload that the user named. before are the loads before it.
func (r Rules) named(l load, before []load) bool {
	return r.Named && !slices.ContainsFunc(before, func(b load) bool { return b.workload == l.workload })
}

// Another is a *BudgetError where the budget does not hold another build of the cells of a run that goes on.
func Another(cells []result.Cell, costs Costs, rules Rules) error {
	cells = Measured(cells)
	least := needOf(costs, rules).with(cells).in(1)
	if HaveStates(cells) || least <= rules.Budget { // how long a visit to one state takes, the cluster tells
		return nil
	}
	return &BudgetError{Budget: rules.Budget, Least: roundUp(least), Cells: len(cells), Rounds: rules.rounds()}
}

func (r Rules) rounds() int { return max(r.Rounds, r.MinRounds, 1) }

// need is how long cells take with the least number of rounds. The longest studies have ten thousand cells, which are added load by load.
type need struct {
	costs Costs
	rules Rules
	build time.Duration            // of one of each state
	cells []result.Cell            // kept only where states share them
	once  map[string]time.Duration // what is started once, by its key
}

// needOf is the need of no cells.
func needOf(costs Costs, rules Rules) need {
	return need{costs: costs, rules: rules}
}

// with is the need of these cells too.
func (n need) with(cells []result.Cell) need {
	if once := started(n.costs.Once, cells); len(once) > 0 {
		maps.Copy(once, n.once)
		n.once = once
	}
	if !HaveStates(cells) {
		n.build = cmp.Or(n.build, n.costs.Build)
		n.build += n.of(cells)
		return n
	}
	n.cells, n.build = append(slices.Clone(n.cells), cells...), 0
	for _, part := range byState(n.cells) {
		n.build += n.costs.Build + n.of(part)
	}
	return n
}

// of is how long the cells of a build take.
func (n need) of(cells []result.Cell) (sum time.Duration) {
	for _, c := range cells {
		sum += n.costs.Cell + time.Duration(n.rules.rounds())*n.costs.burst(c)
	}
	for _, takes := range started(n.costs.Servers, cells) {
		sum += takes
	}
	return sum
}

// in is how long so many builds take.
func (n need) in(builds int) time.Duration {
	all := n.costs.Start + time.Duration(builds)*n.build
	for _, takes := range n.once {
		all += takes
	}
	return all
}

// byTurns lists the loads in the order in which they are taken: the workloads by turns, each with its first combination,
// its last, and then the others. It also gives the cells of each.
func byTurns(cells []result.Cell, key loadOf) (turns []load, of map[load][]result.Cell) {
	var workloads []string
	params := map[string][]result.Params{}
	of = map[load][]result.Cell{}
	for _, c := range cells {
		l := key(c)
		if params[c.Workload] == nil {
			workloads = append(workloads, c.Workload)
		}
		if of[l] == nil {
			params[c.Workload] = append(params[c.Workload], l.params)
		}
		of[l] = append(of[l], c)
	}
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
	return turns, of
}

// fittedOn is in each note on what a budget holds, and holdsAll ends what names one that is long enough.
const (
	fittedOn = " workload settings, each on all "
	holdsAll = " holds all"
)

func note(loads []load, of map[load][]result.Cell, chosen map[load]bool, measured []result.Cell, budget, whole time.Duration) string {
	placements := placements(measured)
	var in, out []string
	for _, l := range loads {
		text := Describe(l.workload, l.params)
		if n := len(result.Settings(of[l])) / placements; n > 1 {
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
	return fmt.Sprintf("the time budget of %s holds %d of %d"+fittedOn+"%d networks: %s; left out: %s; --time-budget %s"+holdsAll,
		unit.FormatDuration(budget), len(in), len(loads), len(networks), strings.Join(in, ", "), left, unit.FormatDuration(whole))
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
