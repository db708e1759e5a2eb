package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// Plan is what a run of a study measures on a testbed.
type Plan struct {
	Cells []result.Cell // all of the study's, with what is unsupported or left out marked
	Notes []string
	Rules plan.Rules
	Costs plan.Costs
	// Admits says that cells that are left out for want of time come in when there is time for them.
	Admits bool
	// Blocks says that the networks are swapped live under the pods: the study asks for it, or a workload needs it.
	Blocks bool

	demands map[string]workload.Demand // by cell
}

// Prepare expands a study into cells, marks what the testbed does not support, and chooses what the time budget holds. An
// error that matches record.ErrNothing names the reasons; a *plan.BudgetError names the least budget.
func Prepare(ctx context.Context, s *study.Study, driver testbed.Provider, workloads []workload.Workload) (Plan, error) {
	able := driver.Capabilities()
	if able.SharesMachine {
		if err := errors.Join(machine.CheckProc(), machine.CheckScheduling()); err != nil {
			return Plan{}, err
		}
	}
	p := Plan{Cells: plan.Expand(s), Rules: plan.RulesOf(s.Design)}
	p.Rules.Named = s.Named
	cpus := math.MaxInt // of another machine, whose provider knows
	if able.PinsCPUs {
		p.placeOnCPUs(workloads)
	}
	if able.PinsCPUs && able.SharesMachine {
		allowed, err := machine.AllowedCPUs()
		if err != nil {
			return Plan{}, err
		}
		cpus = len(allowed)
	}
	if err := p.findDemands(ctx, workloads, driver); err != nil {
		return p, err
	}
	if len(s.Changes) > 0 {
		p.planStates(s)
	} else if p.Blocks = s.Design.Blocks > 0 || p.clustered(); p.Blocks {
		p.asBlocks(s.Design)
	}
	for _, reason := range []func(result.Cell) (string, error){
		p.unstored(ctx, driver),
		p.unsupported(ctx, driver, s),
		func(c result.Cell) (string, error) { return p.unreachable(ctx, driver, c) },
		p.unplaced(ctx, able),
		p.crowded(),
		func(c result.Cell) (string, error) {
			return cmp.Or(p.notSwappable(able.Networks, c), notOwned(driver, c), tooFewProcessors(c, cpus), p.oversized(able.Networks, s, c)), nil
		},
	} {
		if err := p.refuse(func(c result.Cell) (string, error) {
			c.Params = s.Asked(c.Params)
			return reason(c)
		}); err != nil {
			return p, err
		}
	}
	p.markBaseless()
	if len(plan.Measured(p.Cells)) == 0 {
		return p, fmt.Errorf("%w: %w", record.ErrNothing, p.reasons())
	}
	p.Rules.Claimed = claimed(s, p.Cells, workloads)
	fitted, err := p.fitBudget(s, able.Costs)
	if err != nil {
		return p, err
	}
	p.Cells = fitted.Cells
	p.Admits = !able.SharesMachine // it is not this machine's memory that servers take
	if fitted.Note != "" {
		if p.Admits {
			fitted.Note += "; what is left out comes in as soon as there turns out to be time for it"
		}
		p.Notes = append(p.Notes, fitted.Note)
	}
	if p.Admits {
		return p, nil
	}
	if err := p.fitMemory(); err != nil {
		return p, err
	}
	return p, p.checkRoom(s)
}

// fitBudget finds out what the time budget holds, as guessed, on this machine or, with costs, elsewhere.
func (p *Plan) fitBudget(s *study.Study, costs *testbed.Costs) (plan.Fitted, error) {
	p.guess(s.Design.Burst, s.Design.Rounds, len(s.Changes) > 0)
	slow := p.slowDown(s.Design.Burst)
	if costs != nil {
		p.guessElsewhere(*costs)
	}
	if len(s.Changes) > 0 {
		p.Costs.Build += changeTakes
	}
	if plan.HaveStates(p.Cells) && s.Design.Blocks == 0 {
		p.fewerVisits()
	}
	fitted, err := plan.Fit(p.Cells, p.Costs, p.Rules)
	if slow && costs == nil && s.Design.Blocks == 0 {
		p.Rules.Builds = s.Design.Builds // costs may turn out smaller: small differences take builds rather than rounds
	}
	return fitted, err
}

// claimed are the cells that the study's claims can be judged by here.
func claimed(s *study.Study, cells []result.Cell, workloads []workload.Workload) map[string]bool {
	defaults := map[string]result.Params{}
	for _, w := range workloads {
		defaults[w.Name] = w.Defaults
	}
	return study.Claimed(s.Claims, plan.Measured(cells), defaults, workload.Parameters(workloads))
}

// placeOnCPUs has cells of request-response say which processors their ends are pinned to, where the study leaves it to the workload:
// headings name the regime.
func (p *Plan) placeOnCPUs(workloads []workload.Workload) {
	for i, c := range p.Cells {
		c.Params.CPU = cmp.Or(c.Params.CPU, workload.Find(workloads, c.Workload).Defaults.CPU)
		if c.Setting().Regime() != "" {
			p.Cells[i] = c
		}
	}
}

// asBlocks has one round in each build: the pass over all networks, in which each visit measures a cell in several bursts. Where
// the study does not say how many blocks there are, as many as it has builds are planned for, at least one more than an interval takes, since
// a visit that others on the machine disturbed can't be repeated, and more are made as long as there is time and something to resolve.
func (p *Plan) asBlocks(d study.Design) {
	if d.Blocks > 0 {
		p.FixBuilds(d.Blocks)
	} else {
		p.Rules.Builds, p.Rules.OnePass = max(d.Builds, p.Rules.MinBuilds+1), true
		p.Notes = append(p.Notes, "measured in blocks, with the networks swapped live under the pods: there are workloads whose servers are started once")
	}
	p.Rules.Rounds, p.Rules.MinRounds = 1, 1
}

// FixBuilds has the run build the networks exactly so many times, for all cells, if the time budget holds them.
func (p *Plan) FixBuilds(n int) {
	p.Rules.Builds, p.Rules.MinBuilds, p.Rules.MaxBuilds = n, n, n
}

// unsupported is why the testbed does not support a cell, "" where it does. It asks for each network, family and combination of
// conditions once.
func (p *Plan) unsupported(ctx context.Context, driver testbed.Provider, s *study.Study) func(result.Cell) (string, error) {
	lacks := map[testbed.Spec]error{}
	unpinned := p.unpinned(driver)
	return func(c result.Cell) (string, error) {
		uses, _ := measure.NetworkUsed(s.Changes, c.Network)
		link := testbed.Link{MTU: cmp.Or(c.Params.MTU, s.Testbed.Link.MTU), Rate: s.Testbed.Link.Rate}
		asked := testbed.Spec{Network: uses, Link: link, Family: c.Params.Family, PodsOutlive: p.Blocks, Conditions: c.Params.Conditions.Plain(), Target: measure.TargetHost(c.Params), Volume: p.volumeOf(c), Peers: peersOf(p.demands[c.ID])}
		if _, known := lacks[asked]; !known {
			lacks[asked] = driver.Supports(ctx, asked)
		}
		if err := lacks[asked]; err != nil {
			return "", err
		}
		return unpinned(c)
	}
}

// unplaced is why there are too few nodes for a cell's placement, "" where there are enough. It asks for each placement once.
func (p *Plan) unplaced(ctx context.Context, able testbed.Capabilities) func(result.Cell) (string, error) {
	asked := map[result.Placement]error{}
	return func(c result.Cell) (string, error) {
		if able.Places == nil || measure.TargetHost(c.Params) != "" || p.volumeOf(c).Class != "" { // whose clients may be anywhere
			return "", nil
		}
		if _, known := asked[c.Placement]; !known {
			nodes := 1
			if c.Placement == result.CrossNode {
				nodes = 2
			}
			asked[c.Placement] = able.Places(ctx, nodes)
		}
		return "", asked[c.Placement]
	}
}

// nodes is how many nodes testbeds have: those of the study, but one where nothing across nodes can be measured for want of a second.
func (p *Plan) nodes(s *study.Study, able testbed.Capabilities) int {
	across := slices.ContainsFunc(p.Cells, func(c result.Cell) bool { return c.Unsupported == "" && c.Placement == result.CrossNode })
	if able.Places != nil && !across {
		return 1
	}
	return s.Testbed.Nodes
}

// notSwappable is why live swaps would measure a cell on another path than its name says, "" where they don't.
func (p *Plan) notSwappable(networks []network.Network, c result.Cell) string {
	n, err := network.Find(networks, c.Network)
	if !p.Blocks || err != nil || c.Placement != result.SameNode || !n.NoSameNodeUnderSwap {
		return ""
	}
	return fmt.Sprintf("network %s on one node is unsupported under live swaps: needs pods that share their node's namespace; run it in bursts: without --blocks, and without workloads that are served by a cluster", c.Network)
}

// markBaseless marks cells that could be measured but whose baseline can't be.
func (p *Plan) markBaseless() {
	baselines := map[result.Setting]result.Cell{}
	for _, c := range p.Cells {
		if c.Role == result.RoleBaseline {
			baselines[c.Setting()] = c
		}
	}
	for i, c := range p.Cells {
		if b := baselines[c.Setting()]; b.Unsupported != "" && c.Unsupported == "" {
			p.Cells[i].Unsupported, p.Cells[i].InGuest = "its baseline can't be measured: "+b.Unsupported, b.InGuest
		}
	}
}

// reasons lists why cells can't be measured, each reason once.
func (p *Plan) reasons() error {
	var errs []error
	var seen []string
	for _, c := range p.Cells {
		if c.Unsupported != "" && !slices.Contains(seen, c.Unsupported) {
			seen = append(seen, c.Unsupported)
			errs = append(errs, errors.New(c.Unsupported))
		}
	}
	return errors.Join(errs...)
}

// What a run on this machine holds at once, while one build is measured and the next is set up: of each set-up of a network, of each agent
// and for each cell. The figures were measured of the plainest networks with 4 to 160 cells, so that no run is refused that would
// do; eBPF and tunnels take more.
const (
	filesBase  = 92
	filesGroup = 48
	filesCell  = 3

	buildsHeld = 2

	memoryBase  = unit.Bytes(40 << 20)
	memoryAgent = unit.Bytes(5 << 20)
	memoryCell  = unit.Bytes(4 << 20)
)

// room is the least that a run holds at once.
type room struct {
	files, namespaces int
	memory            unit.Bytes
}

// roomFor is the room that cells take, with so many namespaces for each set-up of a network.
func roomFor(cells []result.Cell, blocks bool, spaces int) room {
	groups := map[measure.GroupKey]bool{}
	ends := map[measure.GroupKey]map[result.Placement]bool{}
	agents := 0
	for _, c := range cells {
		g := measure.GroupOf(c)
		if !groups[g] {
			groups[g], ends[g] = true, map[result.Placement]bool{}
			agents++
		}
		if !ends[g][c.Placement] {
			ends[g][c.Placement] = true
			agents++
		}
	}
	n := len(groups)
	if blocks { // one network at a time
		n, agents = 1, 2
	}
	return room{
		files: filesBase + n*filesGroup + len(cells)*filesCell, namespaces: buildsHeld * n * spaces,
		memory: memoryBase + unit.Bytes(buildsHeld*agents)*memoryAgent + unit.Bytes(len(cells))*memoryCell,
	}
}

// checkRoom refuses a run that this machine has no room for, before anything is built: else networks fail one by one.
func (p *Plan) checkRoom(s *study.Study) error {
	kept := plan.Measured(p.Cells)
	spaces := 1 + max(1, s.Testbed.Nodes)*(1+max(1, s.Testbed.Pods))
	files, err := machine.OpenFiles()
	if err != nil {
		return err
	}
	free, err := machine.FreeMemory()
	if err != nil {
		return err
	}
	return roomFor(kept, p.Blocks, spaces).in(room{files, netns.Limit(), free})
}

// in says what a run needs that is not there, and how to have it.
func (r room) in(have room) error {
	const fewer = "or measure fewer networks at once by --networks"
	switch {
	case r.files > have.files:
		return fmt.Errorf("%w: its networks take at least %d open files at once, and the limit is %d; %s, %s", record.ErrNothing, r.files, have.files, machine.MoreOpenFiles, fewer)
	case r.namespaces > have.namespaces:
		return fmt.Errorf("%w: its networks take at least %d network namespaces at once, and the limit is %d; %s, %s", record.ErrNothing, r.namespaces, have.namespaces, netns.RaiseLimit, fewer)
	case r.memory > have.memory:
		return fmt.Errorf("%w: its networks take at least %v of memory at once, and %v are free; %s, %s", record.ErrNothing, r.memory, have.memory, machine.MoreMemory, fewer)
	}
	return nil
}
