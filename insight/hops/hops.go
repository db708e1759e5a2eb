// Package hops sums up what was traced: where on the way the time goes, and where two networks differ.
package hops

import (
	"maps"
	"math"
	"slices"
	"strings"

	"netdelta/experiment/tracing"
	probe "netdelta/probe/hops"
	"netdelta/stats"
)

// Way is where the time of one network goes, hop by hop.
type Way struct {
	Network  string `json:"network"`
	Workload string `json:"workload"`
	// Request and Response are the hops of each direction, in order.
	Request  []HopTime `json:"request"`
	Response []HopTime `json:"response"`
	// Untraced and Traced are the medians of the round trip without and with the tracer, in nanoseconds; Sum is the sum of the
	// hops' medians, which have the cost of tracing taken off: it should be near Untraced.
	Untraced float64 `json:"untraced_ns"`
	Traced   float64 `json:"traced_ns"`
	Sum      float64 `json:"sum_ns"`
	// UntracedBuilds are the medians of the builds. Untraced is their mean.
	UntracedBuilds []float64 `json:"untraced_builds_ns,omitempty"`
	// Run is the round trip of the run that the hops explain, in nanoseconds, and RunError half of the interval of what it is more than the
	// baseline's; 0 where there is none.
	Run      float64 `json:"run_ns,omitempty"`
	RunError float64 `json:"run_error_ns,omitempty"`
	// Cost is what noting an event takes, in nanoseconds; Events is how many a transaction has.
	Cost   float64 `json:"cost_ns"`
	Events int     `json:"events"`
	// Stamped says that the hops come from the sockets' own time stamps: both ends then ran on one thread, so that no program
	// had to be woken up, and Traced is that exchange.
	Stamped bool `json:"stamped,omitempty"`
	// Builds and Transactions are what this rests on; Otherwise is how many more transactions took another way, Lost how many
	// events were lost.
	Builds       int `json:"builds"`
	Transactions int `json:"transactions"`
	Otherwise    int `json:"otherwise"`
	Lost         int `json:"lost"`
	// Outliers says what was different about the slowest transactions, where that was asked for.
	Outliers *Outliers `json:"outliers,omitempty"`
}

// HopTime is a hop with its time, in nanoseconds.
type HopTime struct {
	Name  string `json:"name"`
	Step  string `json:"step"`
	Where string `json:"where,omitempty"`
	From  string `json:"from"`
	To    string `json:"to"`
	// P50 is the mean of the builds' medians, with its interval over the builds where there are enough; P90 and P99 are of all
	// transactions.
	P50  float64  `json:"p50_ns"`
	Low  *float64 `json:"p50_low_ns"`
	High *float64 `json:"p50_high_ns"`
	P90  float64  `json:"p90_ns"`
	P99  float64  `json:"p99_ns"`
	// Share is the part of the round trip.
	Share float64 `json:"share"`
	// Builds are the medians of the builds, from which the interval of a difference comes.
	Builds []float64 `json:"builds_ns,omitempty"`

	numbers []int // of the builds
}

// ofBuilds are the medians by the number of their build. Builds without numbers are counted.
func (h *HopTime) ofBuilds() map[int]float64 {
	all := map[int]float64{}
	for i, v := range h.Builds {
		number := i
		if len(h.numbers) == len(h.Builds) {
			number = h.numbers[i]
		}
		all[number] = v
	}
	return all
}

// Overhead is how much tracing adds to a round trip, as a fraction.
func (w Way) Overhead() float64 { return w.Traced/w.Untraced - 1 }

// Gap is how far the sum of the hops is from the round trip as it is without tracing, as a fraction of it.
func (w Way) Gap() float64 { return w.Sum/w.Untraced - 1 }

// hopConfidence is the confidence of the intervals of hops.
const hopConfidence = 0.95

// WayOf sums up what was traced of a cell. Builds whose packets went another way than in the first of which transactions were followed count
// as such.
func WayOf(c tracing.Cell) Way {
	w := Way{Network: c.Network, Workload: c.Workload}
	if len(c.Builds) == 0 {
		return w
	}
	first := c.Builds[max(0, slices.IndexFunc(c.Builds, func(b tracing.Traced) bool { return len(b.Request) > 0 }))]
	w.Stamped = first.Stamped
	request, response := newTally(first.Request), newTally(first.Response)
	var untraced, traced, costs []float64
	for _, b := range c.Builds {
		w.Otherwise += b.Otherwise
		w.Lost += b.Lost
		untraced, costs = append(untraced, quantile(b.Untraced, 0.5)), append(costs, b.Cost)
		if len(b.Traced) > 0 { // no message was followed to its end where the machine was busy
			traced = append(traced, quantile(b.Traced, 0.5))
		}
		if !request.fits(b.Request) || !response.fits(b.Response) {
			if len(b.Request) > 0 {
				w.Otherwise += len(b.Request[0].Times)
			}
			continue
		}
		request.add(b.Build, b.Request)
		response.add(b.Build, b.Response)
		w.Builds++
		w.Transactions += len(b.Request[0].Times)
	}
	w.UntracedBuilds = untraced
	w.Untraced, w.Cost, w.Events = stats.Mean(untraced), stats.Mean(costs), first.Events
	if len(traced) > 0 {
		w.Traced = stats.Mean(traced)
	}
	w.Outliers = explain(c)
	w.Request, w.Response = request.times(w.Untraced), response.times(w.Untraced)
	for _, h := range slices.Concat(w.Request, w.Response) {
		w.Sum += h.P50
	}
	return w
}

// tally gathers the times of the hops of one direction.
type tally struct {
	hops    []probe.Hop
	all     [][]float64
	builds  [][]float64
	numbers []int // of the builds
}

func newTally(s []tracing.Stretch) *tally {
	t := &tally{all: make([][]float64, len(s)), builds: make([][]float64, len(s))}
	for _, h := range s {
		t.hops = append(t.hops, h.Hop)
	}
	return t
}

// fits is false for a build whose way is another, or that has nothing to say.
func (t *tally) fits(s []tracing.Stretch) bool {
	same := slices.EqualFunc(s, t.hops, func(s tracing.Stretch, h probe.Hop) bool { return s.Same(h) })
	return same && len(s) > 0 && len(s[0].Times) > 0
}

// add takes a build that fits.
func (t *tally) add(build int, s []tracing.Stretch) {
	t.numbers = append(t.numbers, build)
	for k := range s {
		t.all[k] = append(t.all[k], s[k].Times...)
		t.builds[k] = append(t.builds[k], quantile(s[k].Times, 0.5))
	}
}

// times are the hops, none where no build was followed.
func (t *tally) times(roundTrip float64) []HopTime {
	if len(t.numbers) == 0 {
		return nil
	}
	var list []HopTime
	for k, h := range t.hops {
		mean, low, high := stats.MeanInterval(t.builds[k], hopConfidence)
		list = append(list, HopTime{
			Name: h.String(), Step: string(h.Step), Where: h.Where, From: h.From, To: h.To,
			P50: mean, Low: finite(low), High: finite(high), P90: quantile(t.all[k], 0.9), P99: quantile(t.all[k], 0.99),
			Share: mean / roundTrip, Builds: t.builds[k], numbers: t.numbers,
		})
	}
	tellApart(list)
	return list
}

// tellApart adds the ends of hops to their names where several have the same.
func tellApart(list []HopTime) {
	count := map[string]int{}
	for _, h := range list {
		count[h.Name]++
	}
	for i, h := range list {
		if count[h.Name] > 1 && h.Where != "" {
			list[i].Name += ", " + strings.TrimPrefix(h.From, h.Where+" ") + " to " + strings.TrimPrefix(h.To, h.Where+" ")
		}
	}
}

// finite is nil for a bound that is not known.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// quantile is a quantile of values, NaN if there are none.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// HopDelta is one line of two ways side by side: a hop that both have, or that only one has.
type HopDelta struct {
	// Base and Other are the hop in each, nil where it has none.
	Base  *HopTime `json:"base"`
	Other *HopTime `json:"other"`
	// Difference is the other's time less the base's, in nanoseconds, with its interval over the builds.
	Difference float64  `json:"difference_ns"`
	Low        *float64 `json:"difference_low_ns"`
	High       *float64 `json:"difference_high_ns"`
}

// Name is the hop's.
func (d HopDelta) Name() string {
	if d.Other != nil {
		return d.Other.Name
	}
	return d.Base.Name
}

// alike says of hops of two ways that the same happens in both, in the same namespace. Sockets do the same in any namespace: a pod on the
// network of its node has them there.
func alike(a, b HopTime) bool { return a.Step == b.Step && (a.Where == b.Where || atSocket(a.Step)) }

// atSocket says whether a step is one of those at either end of a way.
func atSocket(step string) bool {
	switch probe.Step(step) {
	case probe.StepCall, probe.StepOut, probe.StepIn, probe.StepWake, probe.StepDelivery:
		return true
	}
	return false
}

// Compare aligns the hops of two ways by what happens in them, in order, so that what only one of them does has a line of its own.
func Compare(base, other []HopTime) []HopDelta {
	// The longest common subsequence of what happens where.
	length := make([][]int, len(base)+1)
	for i := range length {
		length[i] = make([]int, len(other)+1)
	}
	for i := len(base) - 1; i >= 0; i-- {
		for j := len(other) - 1; j >= 0; j-- {
			if alike(base[i], other[j]) {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	var lines []HopDelta
	for i, j := 0, 0; i < len(base) || j < len(other); {
		switch {
		case i < len(base) && j < len(other) && alike(base[i], other[j]):
			lines = append(lines, hopDelta(&base[i], &other[j]))
			i, j = i+1, j+1
		case j == len(other) || i < len(base) && length[i+1][j] >= length[i][j+1]:
			lines = append(lines, hopDelta(&base[i], nil))
			i++
		default:
			lines = append(lines, hopDelta(nil, &other[j]))
			j++
		}
	}
	return lines
}

func hopDelta(base, other *HopTime) HopDelta {
	d := HopDelta{Base: base, Other: other}
	var differences []float64
	switch {
	case base == nil:
		differences = other.Builds
	case other == nil:
		for _, v := range base.Builds {
			differences = append(differences, -v)
		}
	default: // only what was measured in one build is a pair
		was, is := base.ofBuilds(), other.ofBuilds()
		for _, build := range slices.Sorted(maps.Keys(is)) {
			if v, both := was[build]; both {
				differences = append(differences, is[build]-v)
			}
		}
	}
	mean, low, high := stats.MeanInterval(differences, hopConfidence)
	d.Difference, d.Low, d.High = mean, finite(low), finite(high)
	return d
}
