package measure

import (
	"errors"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/probe/cpu"
	"netdelta/probe/pressure"
	"netdelta/probe/stalls"
	"netdelta/result"
	"netdelta/workload"
)

// recorder keeps the bursts of a session, in the columns that its workload has.
type recorder struct {
	bursts    result.Bursts
	changes   []result.ConfigChange
	drops     []result.Drop // by the testbed
	disturbed bool          // the last burst, so that the agent leaves it out of its histogram

	latencies  bool // the bursts have latencies
	throughput bool // ... a throughput
	rates      bool // ... a rate of transactions
	searches   bool // ... the highest rates that were found
	levels     bool // ... levels, since they are made of visits in sweeps
}

// recorderFor is the recorder of a workload's metrics. What a search finds replaces the usual ones.
func recorderFor(w workload.Workload, p result.Params) recorder {
	if p.Search {
		return recorder{searches: true}
	}
	var r recorder
	for _, m := range w.Metrics {
		r.latencies = r.latencies || m.Name == "p50"
		r.throughput = r.throughput || m.Name == "throughput"
		r.rates = r.rates || m.Name == "rate"
	}
	return r
}

// record appends one burst.
func (r *recorder) record(b engine.Burst, round int, start time.Duration, reason string) {
	c := &r.bursts
	c.Round = append(c.Round, round)
	c.Start = append(c.Start, start.Nanoseconds())
	c.Duration = append(c.Duration, b.Duration.Nanoseconds())
	c.Span = append(c.Span, b.Span.Nanoseconds())
	c.Transactions = append(c.Transactions, b.Transactions)
	c.Lost = append(c.Lost, b.Lost)
	if r.latencies {
		c.Min = append(c.Min, b.Min)
		c.P50 = append(c.P50, b.P50)
		c.P90 = append(c.P90, b.P90)
		c.P99 = append(c.P99, b.P99)
		c.Mean = append(c.Mean, b.Mean)
		c.Max = append(c.Max, b.Max)
		c.Split = append(c.Split, b.Split)
	}
	if r.levels {
		c.SweepLevel = append(c.SweepLevel, b.Level)
	}
	if r.throughput {
		c.Throughput = append(c.Throughput, b.Throughput)
	}
	if r.rates {
		c.Rate = append(c.Rate, perSecond(b))
		c.Errors = append(c.Errors, b.Errors)
	}
	if r.searches {
		found := b.Search
		if found == nil {
			found = &engine.Search{}
		}
		c.NoDrop = append(c.NoDrop, found.NoDrop)
		c.PartialDrop = append(c.PartialDrop, found.PartialDrop)
		c.AtLeast = append(c.AtLeast, found.AtLeast)
		c.Load10 = append(c.Load10, found.Load10)
		c.Load50 = append(c.Load50, found.Load50)
		c.Load90 = append(c.Load90, found.Load90)
	}
	if reason == "" && (r.latencies && b.P50 <= 0 || r.throughput && b.Throughput <= 0 || r.searches && b.Bytes <= 0 || r.rates && b.Transactions <= 0) {
		reason = stalls.NothingArrived
	}
	c.Disturbed = append(c.Disturbed, reason)
	r.disturbed = reason != ""
}

// perSecond is the rate of a burst's transactions.
func perSecond(b engine.Burst) float64 {
	if b.Duration <= 0 {
		return 0
	}
	return float64(b.Transactions) / b.Duration.Seconds()
}

// markRound marks the last burst as disturbed when it belongs to the given round.
func (r *recorder) markRound(round int, reason string) {
	last := len(r.bursts.Round) - 1
	if last < 0 || r.bursts.Round[last] != round || r.bursts.Disturbed[last] != "" {
		return
	}
	r.bursts.Disturbed[last] = reason
	r.disturbed = true
}

// conclude records a burst, and whether others took the processor from it.
func (s *Session) conclude(b engine.Burst, spent cpu.Spent, round int, at time.Duration) {
	reason, least := "", 0.0
	if s.levels {
		least = sweptLeast
	}
	// A neighbour that takes the processor away under best-effort is what is measured there, and the threads of a program take it
	// away from each other.
	if s.Cell.Params.Conditions.QoS != result.BestEffort && !s.demand.Opaque && s.meter.Preempted(b, spent, s.share, least) {
		reason = pressure.ReasonPreempted
	}
	if s.clients.apart(s.Size.length) {
		reason = Apart
	}
	s.record(b, round, at, reason)
	s.meter.Record(&s.bursts, b, spent)
}

// recordHang records a burst that hung: it is the worst of stalls.
func (s *Session) recordHang(err error, deadline time.Duration, round int, at time.Duration) {
	if errors.Is(err, agent.ErrHung) {
		s.recordEmpty(engine.Burst{Span: deadline}, round, at, stalls.NothingArrived)
	}
}

// Unwell begins the reason for which a burst is left out during which a service was unwell; what ailed it follows.
const Unwell = "service unwell: "

// recordUnwell records a burst that failed because a service was unwell.
func (s *Session) recordUnwell(round int, at time.Duration, ailment string) {
	s.recordEmpty(engine.Burst{}, round, at, Unwell+ailment)
	s.broken = true
}

// recordEmpty records a burst that measured nothing.
func (s *Session) recordEmpty(b engine.Burst, round int, at time.Duration, reason string) {
	s.record(b, round, at, reason)
	s.bounds.Skip()
	s.meter.Record(&s.bursts, b, cpu.Spent{})
}

// warmupShare: one part in so many of a burst's length is run before it and thrown away, to fill caches and congestion windows after
// the pause between two bursts of a cell.
const warmupShare = 5

// How long a burst may take beyond its length before its pod is given up. A program has to start and to end.
const (
	hangAfter        = 5 * time.Second
	programHangAfter = 20 * time.Second
)

// slowest is how many times as long as was guessed a number of transactions may take.
const slowest = 20

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
	length   time.Duration // without the warm-up; no transaction begins after it. A number of transactions may end the burst instead
	warmup   time.Duration
	takes    time.Duration // without the warm-up: its length, or transactions that take longer
	deadline time.Duration // when a burst is given up
	// transactions end the burst, 0 leaves that to its length.
	transactions int
}

// SizeOf is the size of a cell's bursts from the study's length of a burst and bursts in a visit (0: it does not say).
func SizeOf(burst time.Duration, visit int, d workload.Demand) BurstSize {
	s := BurstSize{length: max(burst, d.Burst), Visit: visit}
	if d.Transaction < s.length {
		s.warmup = s.length / warmupShare
	}
	s.takes = max(s.length, d.Transaction)
	s.deadline = s.takes + hangAfter
	if d.Transactions > 0 {
		s.transactions, s.takes = d.Transactions, d.Lasting
		s.deadline = slowest*s.takes + hangAfter
	}
	s.Cost = s.takes + s.warmup + exchange
	if len(d.Programs) > 0 || d.Burst > 0 {
		s.deadline = s.takes + programHangAfter
	}
	if d.Burst > 0 { // a program is started for each burst, also against a user's own database
		s.Cost += programStart
	}
	if s.Visit == 0 {
		s.Visit = max(1, min(visitBursts, int(visitLength/s.Cost)))
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
		s.deadline = min(s.deadline, s.takes+patience)
	}
	return s
}

func (s BurstSize) spec() engine.BurstSpec {
	spec := engine.BurstSpec{Duration: s.length, Warmup: s.warmup, Deadline: s.deadline}
	if s.transactions > 0 {
		spec.Duration, spec.Transactions = 0, int64(s.transactions)
	}
	return spec
}

// Settle is how long a swapped network is left alone before it is measured: neighbours resolve, bridges learn.
const Settle = 50 * time.Millisecond

// clusterVisit is what it takes in each visit to a network to have a client dial a cluster, to prove its path and to ask how it is, as
// guessed.
const clusterVisit = 2 * time.Second

// VisitCost is what a cell costs in a visit to a network, as guessed.
func VisitCost(burst time.Duration, visit int, d workload.Demand) time.Duration {
	s := SizeOf(burst, visit, d)
	cost := time.Duration(s.Visit)*s.Cost + Settle
	if d.Cluster != nil {
		cost += clusterVisit * time.Duration(max(d.Clients, 1))
	}
	return cost
}
