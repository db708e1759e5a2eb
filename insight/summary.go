package insight

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
)

// Summaries are what conclusions need of the trials of a run: columns of figures, and what a trial proves. Each trial is read once for
// them, and is not kept. The zero value is ready for Add.
type Summaries struct {
	// Trials are the whole trials, which are read again when they are asked for.
	result.Trials

	tails result.Tails

	lock   sync.Mutex // of what follows
	all    []*summary // in the order of the journal
	rounds []int      // as the last trial had them, for the next one to share
	starts []int64
}

// Summarize sums up trials.
func Summarize(trials result.Trials) *Summaries {
	s := &Summaries{Trials: trials, all: make([]*summary, trials.Len())}
	inParallel(trials.Len(), func(i int) { s.Add(i, trials.Trial(i)) })
	return s
}

// Add sums up the trial at a place in the journal, from 0, and keeps nothing of its bursts. Several goroutines may add at a time.
func (s *Summaries) Add(i int, t *result.Trial) {
	made := newSummary(i, t)
	made.copyBursts()
	made.tail = s.tailOf(t.Histogram)
	made.found = checksOf(t, made.tail.broken)
	s.lock.Lock()
	defer s.lock.Unlock()
	s.rounds, s.starts = shared(s.rounds, made.rounds), shared(s.starts, made.starts)
	made.rounds, made.starts = s.rounds, s.starts
	for len(s.all) <= i {
		s.all = append(s.all, nil)
	}
	s.all[i] = made
}

// shared is a copy of a column, or another one that is alike: the cells of a build have the same rounds, and in sweeps the same instants.
func shared[T comparable](other, column []T) []T {
	if slices.Equal(other, column) {
		return other
	}
	return slices.Clone(column)
}

// summary is what conclusions need of a trial.
type summary struct {
	index, build int // in the journal; of the run
	cell         string
	started      time.Time
	lasted       time.Duration
	visit        int      // to a state of the cluster, in which it was measured; 0 for all where states are not compared
	reference    *summary // the trial of the nodes' own network in the same visit, nil where there is none

	otherLoad    float64 // as Trial.OtherLoad
	failed       string  // why it gave nothing, "" if it did
	reconfigured bool    // the configuration changed while it was measured
	path         *result.Path
	found        []Check // what is wrong with it
	carry        *result.CarryOver

	// The bursts, a column each. order are the rows ascending by round; nil if they are so anyway.
	rounds, order []int
	starts, spans []int64
	disturbed     []string // nil if no burst was
	split, level  []float64
	columns       []column

	tail                     tail
	p99                      *float64 // of another program's trial, which is one burst, where that alone is known of its tail
	exact                    *result.ExactTrial
	transactions, sent, lost int64
	errors, begun            int64 // transactions that failed, of so many
	cpu                      CPU
	spends                   bool // its processor time says something of the network
	moves                    bool // its work is to move bytes, not to answer requests
	searched                 bool // it looked for the rate at which packets are lost: its loss says nothing of the network

	bound       *result.Bound
	disk        *result.Disk
	replication *result.Replication
	services    []result.Service
	clients     []result.ClientRate
	links       []result.LinkUse
}

// column is a figure of each burst, by the name of its metric.
type column struct {
	metric string
	values []float64
}

// newSummary sums a trial up, but for its histogram and for what is wrong with it.
func newSummary(index int, t *result.Trial) *summary {
	b := &t.Bursts
	s := &summary{
		index: index, build: t.Build, cell: t.Cell, started: t.Started, lasted: t.Finished.Sub(t.Started),
		otherLoad: t.OtherLoad, failed: t.Failed, reconfigured: len(t.Changes) > 0, path: t.Path, tail: tail{none: true}, exact: t.Exact,
		rounds: b.Round, starts: b.Start, spans: b.Span, split: b.Split, level: b.SweepLevel,
		transactions: t.Transactions, sent: t.Sent, lost: t.Lost, cpu: Spent(*t), moves: len(b.P50) == 0, searched: len(b.NoDrop) > 0,
		bound: t.Bound, disk: t.Disk, replication: t.Replication, services: t.Services, clients: t.Clients, links: t.Links,
	}
	if len(t.Links) == 0 {
		s.spans = nil
	}
	if t.Failed == "" {
		s.carry = t.CarryOver
	}
	if marked(b.Disturbed) > 0 {
		s.disturbed = b.Disturbed
	}
	// A client that used no processor time is one whose time was not counted.
	s.spends = !s.searched && slices.ContainsFunc(b.ClientCPU, func(ns int64) bool { return ns > 0 })
	if t.Histogram == "" && len(b.Round) == 1 && len(b.P99) == 1 {
		s.p99 = &b.P99[0]
	}
	s.errors, s.begun = failures(t)
	s.columns = columnsOf(b)
	if t.Fleet != nil {
		s.perClient(t.Fleet.Fired)
	}
	if !slices.IsSorted(b.Round) {
		for i := range b.Round {
			s.order = append(s.order, i)
		}
		slices.SortStableFunc(s.order, func(a, z int) int { return cmp.Compare(b.Round[a], b.Round[z]) })
	}
	return s
}

// copyBursts has columns of its own in place of the trial's, but for those that summaries share.
func (s *summary) copyBursts() {
	s.spans, s.disturbed, s.split, s.level = slices.Clone(s.spans), slices.Clone(s.disturbed), slices.Clone(s.split), slices.Clone(s.level)
	for i := range s.columns {
		s.columns[i].values = slices.Clone(s.columns[i].values)
	}
	if s.p99 != nil {
		alone := *s.p99
		s.p99 = &alone
	}
}

// columnsOf are the columns that metrics are made of.
func columnsOf(b *result.Bursts) []column {
	all := [...]column{
		{metricP50, b.P50}, {metricP90, b.P90}, {metricMean, b.Mean}, {metricMin, b.Min}, {metricRate, b.Rate},
		{metricThroughput, b.Throughput}, {metricNoDrop, b.NoDrop}, {metricPartialDrop, b.PartialDrop},
		{metricLoad10, b.Load10}, {metricLoad50, b.Load50}, {metricLoad90, b.Load90},
	}
	return slices.Clone(slices.DeleteFunc(all[:], func(c column) bool { return len(c.values) == 0 }))
}

// perClient makes the rates of a fleet's bursts those of one client: bursts differ in how many took part.
func (s *summary) perClient(fired []int) {
	for i, c := range s.columns {
		if c.metric != metricRate && c.metric != metricThroughput || len(fired) != len(c.values) {
			continue
		}
		each := make([]float64, len(fired))
		for k, n := range fired {
			each[k] = c.values[k] / float64(n)
		}
		s.columns[i].values = each
	}
}

// column is a metric of each burst, nil if the trial has none.
func (s *summary) column(metric string) []float64 {
	c, _ := gather.First(s.columns, func(c column) bool { return c.metric == metric })
	return c.values
}

// id names the trial within its run.
func (s *summary) id() string { return result.Trial{Cell: s.cell, Build: s.build}.ID() }

// why is why a burst is left out of deltas, "" if it counts.
func (s *summary) why(row int) string {
	if row < len(s.disturbed) {
		return s.disturbed[row]
	}
	return ""
}

// excluded is why a trial as a whole enters no delta, "" if it does.
func (s *summary) excluded() string {
	switch {
	case s.failed != "":
		return TrialFailed
	case s.path != nil && !s.path.OK:
		return Misrouted
	}
	return ""
}

// marked counts the bursts that were disturbed.
func marked(reasons []string) int {
	n := 0
	for _, reason := range reasons {
		if reason != "" {
			n++
		}
	}
	return n
}

// tailSamples is how many transactions must lie beyond a percentile before it says anything.
const tailSamples = 10

// tail is what metrics ask a trial's histogram for.
type tail struct {
	result.Tail      // in nanoseconds
	none        bool // the trial has no histogram
	broken      error
}

func (s *Summaries) tailOf(histogram string) tail {
	if histogram == "" {
		return tail{none: true}
	}
	t, err := s.tails.Of(histogram)
	return tail{Tail: t, broken: err}
}

// percentile reads the histogram, which holds a value to within 0.1%.
func (s *summary) percentile(percent float64) (float64, string) {
	switch {
	case s.reconfigured:
		return 0, result.Reconfigured
	case s.tail.broken != nil:
		return 0, "histogram unreadable"
	case percent == 99 && s.p99 != nil:
		return *s.p99, ""
	case s.tail.none:
		return 0, "no histogram"
	case float64(s.tail.Count)*(1-percent/100) < tailSamples*(1-1e-9):
		return 0, "too few transactions"
	}
	if percent == 99 {
		return float64(s.tail.P99), ""
	}
	return float64(s.tail.P999), ""
}

// loss is the share of datagrams that did not arrive.
func (s *summary) loss() (float64, string) {
	sent := cmp.Or(s.sent, s.transactions+s.lost)
	if sent <= 0 {
		return 0, "nothing sent"
	}
	return float64(s.lost) / float64(sent), ""
}

// cpuPerTransaction is in nanoseconds. It is one figure for each trial, since where the kernel accounts for soft interrupts
// apart its clock is coarser than a burst.
func (s *summary) cpuPerTransaction() (float64, string) {
	return per(s.cpu.Total(), s.cpu.Transactions)
}

// cpuPerByte is in nanoseconds a byte, which is seconds a gigabyte (10^9 bytes).
func (s *summary) cpuPerByte() (float64, string) { return per(s.cpu.Total(), s.cpu.Bytes) }

func per(spent, work int64) (float64, string) {
	if work <= 0 {
		return 0, "no work done"
	}
	return float64(spent) / float64(work), ""
}

// holds says whether any of the trials has the metric, so that there is something to compare.
func (m metric) holds(trials []*summary) bool {
	return slices.ContainsFunc(trials, func(s *summary) bool {
		switch {
		case m.ofBursts():
			return s.column(m.name) != nil
		case m.name == metricLoss:
			return (s.sent > 0 || s.lost > 0) && !s.searched && s.exact == nil
		case m.name == metricCPU:
			return s.spends && s.moves == (m.unit != "ns")
		case m.name == metricRequest, m.name == metricResponse:
			return s.exact != nil
		}
		return !s.tail.none || m.name == metricP99 && s.p99 != nil
	})
}
