package experiment

import (
	"time"

	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/workload"
)

// warmupShare is the part of a burst's length that is run before it and thrown away, to fill caches and congestion
// windows after the pause between two bursts of a cell: one part in so many.
const warmupShare = 5

// How long a burst may take beyond its length before its pod is given up: of one that a program of others carries out, more,
// for it has to start, and to end.
const (
	hangAfter        = 5 * time.Second
	programHangAfter = 20 * time.Second
)

// What a burst costs beside its length: the exchange with the agents, and the start of a program.
const (
	exchange     = 500 * time.Microsecond
	programStart = 400 * time.Millisecond
)

// A visit to a network under live swaps has so many bursts of each cell when the study does not say: together they take about as
// long as it takes to swap a network and let it settle. Of bursts that are longer there are fewer, but visitBursts of
// them are never more than visitLength.
const (
	visitBursts = 20
	visitLength = time.Second
)

// pace is how a cell is measured.
type pace struct {
	length   time.Duration // of a burst, less its warm-up
	deadline time.Duration // when a burst is given up
	cost     time.Duration // of a burst with all that belongs to it, as guessed
	visit    int           // bursts in one visit under live swaps
}

// paceOf is the pace of a cell with the study's length of a burst and bursts in a visit (0: it does not say).
func paceOf(burst time.Duration, visit int, d workload.Demand) pace {
	p := pace{length: max(burst, d.Burst), visit: visit}
	p.deadline, p.cost = p.length+hangAfter, p.length+p.length/warmupShare+exchange
	if len(d.Programs) > 0 {
		p.deadline = p.length + programHangAfter
	}
	if d.Burst > 0 { // a program that is started for each burst
		p.cost += programStart
	}
	if p.visit == 0 {
		p.visit = max(1, min(visitBursts, int(visitLength/p.length)))
	}
	return p
}

// spec is the form of the cell's bursts.
func (p pace) spec() workload.BurstSpec {
	return workload.BurstSpec{Duration: p.length, Warmup: p.length / warmupShare, Deadline: p.deadline}
}

// guess is what the parts of a run cost before anything was measured: only the choice of a subset rests on it.
func (p *Plan) guess(burst time.Duration, visit int) {
	p.Costs = plan.Costs{
		Start: time.Second,
		Build: 50 * time.Millisecond,
		Cell:  5 * time.Millisecond,
		Burst: paceOf(burst, visit, workload.Demand{}).cost,
		Cells: map[string]time.Duration{},
	}
	p.slowDown(burst)
	started := map[started]bool{}
	for _, c := range p.Cells {
		d := p.demands[c.ID]
		at := paceOf(burst, visit, d)
		cost := at.cost
		if p.Blocks {
			cost = at.visitCost(d)
		} else if len(d.Programs) > 0 {
			p.Costs.Build += serverStart
		}
		if d.Cluster != nil {
			if s := startOf(c, d); c.Unsupported == "" && !started[s] {
				started[s] = true
				p.Costs.Start += clusterStart
			}
		}
		p.Costs.Cells[c.ID] = cost
	}
}

// visitCost is what a cell costs in a visit to a network, as guessed.
func (p pace) visitCost(d workload.Demand) time.Duration {
	cost := time.Duration(p.visit)*p.cost + settle
	if d.Cluster != nil {
		cost += clusterCheck
	}
	return cost
}

// visitCost is the cell's, by which what a visit took is shared out among its cells.
func (st *stage) visitCost(c result.Cell) time.Duration {
	d := demandOf(st.workloads, c)
	return paceOf(st.burst, st.visit, d).visitCost(d)
}

// A build in bursts has rounds for so long at least, and no fewer than leastRounds.
const (
	roundsLength = time.Second
	leastRounds  = 2
)

// slowDown plans with fewer rounds and builds where some cell's bursts are long: the shortest that are worth their set-up, and as
// many builds as an interval takes. What time is left goes into more of them.
func (p *Plan) slowDown(burst time.Duration) {
	longest := burst
	for _, c := range plan.Measured(p.Cells) {
		longest = max(longest, p.demands[c.ID].Burst)
	}
	if p.Blocks || p.Rules.Rounds > 0 || time.Duration(p.Rules.MinRounds)*longest <= roundsLength {
		return
	}
	p.Rules.MinRounds = max(leastRounds, int(roundsLength/longest))
	p.Rules.Builds = p.Rules.MinBuilds
}

// What services cost, as guessed: the start of a server and of a cluster, and, in each visit to a network, to dial a cluster,
// to prove its path and to ask how it is.
const (
	serverStart  = 300 * time.Millisecond
	clusterStart = 20 * time.Second
	clusterCheck = 2 * time.Second
)

// started is what services are started once for in a run: a cluster on an underlay.
type started struct {
	underlay
	key string
}

func startOf(c result.Cell, d workload.Demand) started {
	return started{groupOf(c).underlay, d.Cluster.Key}
}
