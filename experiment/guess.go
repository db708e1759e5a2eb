package experiment

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// guess sets what the parts of a run cost before anything was measured. Only what is measured from the first build on rests on it. Where the
// cluster is changed all is made anew in each build.
func (p *Plan) guess(burst time.Duration, visit int, anew bool) {
	p.Costs = plan.Costs{
		Start: time.Second,
		Build: 50 * time.Millisecond,
		Cell:  5 * time.Millisecond,
		Burst: measure.SizeOf(burst, visit, workload.Demand{}).Cost,
		Cells: map[string]time.Duration{}, Servers: map[string]plan.Server{}, Once: map[string]plan.Server{},
	}
	for _, c := range p.Cells {
		d := p.demands[c.ID]
		cost := measure.SizeOf(burst, visit, d).Cost
		if p.Blocks {
			cost = measure.VisitCost(burst, visit, d)
		} else if len(d.Programs) > 0 {
			p.Costs.Servers[c.ID] = plan.Server{Key: c.ID, Takes: serverStartTakes}
		}
		if d.Cluster != nil {
			started := p.Costs.Once
			if anew { // in each build
				started = p.Costs.Servers
			}
			started[c.ID] = plan.Server{Key: fmt.Sprint(clusterStartOf(c, d)), Takes: clusterStartTakes}
		}
		p.Costs.Cells[c.ID] = cost
	}
}

// guessElsewhere takes over the provider's guesses of what a run costs, and plans with no more builds than an interval takes: what
// time is left goes into more of them.
func (p *Plan) guessElsewhere(costs testbed.Costs) {
	if !p.Blocks {
		p.Rules.Builds = min(p.Rules.Builds, p.Rules.MinBuilds)
	}
	p.Rules.Ground = costs.Ground
	p.Costs.Start, p.Costs.Build, p.Costs.Cell = costs.Start, costs.Build, costs.Cell
	p.Costs.Burst += costs.Exchange
	for id := range p.Costs.Cells {
		p.Costs.Cells[id] += costs.Exchange
	}
}

// A build in bursts has rounds for so long at least, and no fewer than leastRounds.
const (
	roundsLength = time.Second
	leastRounds  = 2
)

// slowDown plans with fewer rounds and builds where some cell's bursts are long, and says whether: the shortest that are worth their
// set-up, and as many builds as an interval takes. What time is left goes into more of them.
func (p *Plan) slowDown(burst time.Duration) bool {
	longest := burst
	for _, c := range plan.Measured(p.Cells) {
		longest = max(longest, p.demands[c.ID].Burst, p.demands[c.ID].Transaction, p.demands[c.ID].Lasting)
	}
	if p.Blocks || p.Rules.Rounds > 0 || time.Duration(p.Rules.MinRounds)*longest <= roundsLength {
		return false
	}
	p.Rules.MinRounds = max(leastRounds, int(roundsLength/longest))
	p.Rules.Builds = p.Rules.MinBuilds
	return true
}

// What it takes, as guessed, to start a server and a cluster of daemons, and to change a Kubernetes cluster and restore it.
const (
	serverStartTakes  = 300 * time.Millisecond
	clusterStartTakes = 15 * time.Second
	changeTakes       = 5 * time.Second
)

// clusterStart identifies a cluster that is started once in a run, by what it serves and its underlay.
type clusterStart struct {
	measure.Underlay
	key string
}

func clusterStartOf(c result.Cell, d workload.Demand) clusterStart {
	return clusterStart{measure.GroupOf(c).Underlay, d.Cluster.Key}
}

// fewerVisits plans with as many visits to each state of a cluster as the time budget holds with all that is to be measured, where that are
// fewer than small differences take, but as many as an interval takes: a state may take minutes to make.
func (p *Plan) fewerVisits() {
	measured, wanted := plan.Measured(p.Cells), p.Rules.MinBuilds
	whole := func(visits int) time.Duration {
		rules := p.Rules
		rules.Builds = visits
		_, takes := plan.Visits(measured, p.Costs, rules)
		return takes
	}
	n := wanted
	for n > stats.DefaultMinBuilds && whole(n) > p.Rules.Budget {
		n--
	}
	if n == wanted {
		return
	}
	p.Rules.Builds, p.Rules.MinBuilds = n, n
	p.Notes = append(p.Notes, fmt.Sprintf("the time budget of %s holds %d visits to each state of the cluster, as guessed; small differences take %d: --time-budget %s",
		unit.FormatDuration(p.Rules.Budget), n, wanted, unit.FormatDuration(whole(wanted))))
}

// planStates plans with networks that change the cluster: each state is measured in separate builds.
func (p *Plan) planStates(s *study.Study) {
	p.Blocks = false
	if s.Design.Blocks > 0 {
		p.FixBuilds(s.Design.Blocks)
	}
	changed := gather.Each(s.Changes, func(c testbed.Change) string { return c.Network })
	how := fmt.Sprintf("in which %s stood in every round", s.Baseline)
	if s.AcrossStates() {
		how = fmt.Sprintf("deltas are across visits, against %s; its A/A control is a second visit to the same state in each block", s.Baseline)
	}
	p.Notes = append(p.Notes, fmt.Sprintf("the cluster was changed for %s: each change was made anew in builds of its own, and undone after each; %s",
		strings.Join(changed, ", "), how))
	if s.AcrossStates() && !slices.Contains(s.Networks, study.HostNetwork) {
		p.Notes = append(p.Notes, fmt.Sprintf("what the machines are like during a visit stays in deltas across visits: with %s among the networks it can be taken out of them",
			study.HostNetwork))
	}
}
