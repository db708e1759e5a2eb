package measure

import (
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/workload"
)

// warmupShare: one part in so many of a burst's length is run before it and thrown away, to fill caches and congestion windows after
// the pause between two bursts of a cell.
const warmupShare = 5

// How long a burst may take beyond its length before its pod is given up. A program has to start and to end.
const (
	hangAfter        = 5 * time.Second
	programHangAfter = 20 * time.Second
)

// What a burst costs in addition to its length: the exchange with the agents, and the start of a program.
const (
	exchange     = 500 * time.Microsecond
	programStart = 400 * time.Millisecond
)

// The bursts of a visit under live swaps, unless the study says how many: together they take about as long as it takes to swap a
// network and let it settle. Of longer bursts there are fewer, so that a visit does not exceed visitLength.
const (
	visitBursts = 20
	visitLength = time.Second
)

// BurstSize is the length and number of a cell's bursts.
type BurstSize struct {
	// Visit is the number of bursts in one visit under live swaps.
	Visit int
	// Cost is what a burst takes in all, as guessed.
	Cost     time.Duration
	length   time.Duration // without the warm-up
	deadline time.Duration // when a burst is given up
}

// SizeOf is the size of a cell's bursts from the study's length of a burst and bursts in a visit (0: it does not say).
func SizeOf(burst time.Duration, visit int, d workload.Demand) BurstSize {
	s := BurstSize{length: max(burst, d.Burst), Visit: visit}
	s.deadline, s.Cost = s.length+hangAfter, s.length+s.length/warmupShare+exchange
	if len(d.Programs) > 0 {
		s.deadline = s.length + programHangAfter
	}
	if d.Burst > 0 { // a program that is started for each burst
		s.Cost += programStart
	}
	if s.Visit == 0 {
		s.Visit = max(1, min(visitBursts, int(visitLength/s.length)))
	}
	return s
}

// patient is the size with bursts that are given up after less than usual, where the run has so little patience. Programs that make the
// load have to start and to end.
func (s BurstSize) patient(patience time.Duration, d workload.Demand) BurstSize {
	if d.Burst > 0 {
		patience *= agent.ProgramsPatience
	}
	if patience > 0 {
		s.deadline = min(s.deadline, s.length+patience)
	}
	return s
}

func (s BurstSize) spec() engine.BurstSpec {
	return engine.BurstSpec{Duration: s.length, Warmup: s.length / warmupShare, Deadline: s.deadline}
}

// Settle is how long a swapped network is left alone before it is measured: neighbours resolve, bridges learn.
const Settle = 50 * time.Millisecond

// clusterVisit is what it takes in each visit to a network to dial a cluster, to prove its path and to ask how it is, as guessed.
const clusterVisit = 2 * time.Second

// VisitCost is what a cell costs in a visit to a network, as guessed.
func VisitCost(burst time.Duration, visit int, d workload.Demand) time.Duration {
	s := SizeOf(burst, visit, d)
	cost := time.Duration(s.Visit)*s.Cost + Settle
	if d.Cluster != nil {
		cost += clusterVisit
	}
	return cost
}
