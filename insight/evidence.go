package insight

import (
	"math"

	"netdelta/result"
)

// Evidence is a run's trials, sorted so that a reader can see what its deltas rest on. It is made once and asked
// setting by setting.
type Evidence struct {
	trials   *Summaries
	batches  []batch
	cellSets map[result.Setting]cellSet
}

// Gather sorts the trials of a run's cells.
func Gather(cells []result.Cell, trials *Summaries) Evidence {
	e := Evidence{trials: trials, batches: batchesOf(cells, trials), cellSets: map[result.Setting]cellSet{}}
	for _, t := range cellSets(cells) {
		e.cellSets[t.setting] = t
	}
	return e
}

// Series names one line of a picture: a cell, by the words of the tables.
type Series struct {
	Cell string
	// Name is the network's, with its path where that is not the pod's own address.
	Name string
	Role result.Role
}

// seriesOf are the cells of a table, the baseline and its A/A control first.
func (t cellSet) seriesOf() []Series {
	var all []Series
	for _, c := range []*result.Cell{t.baseline, t.control} {
		if c != nil {
			all = append(all, Series{c.ID, Name(c.Network, c.Path), c.Role})
		}
	}
	for _, c := range t.cells {
		all = append(all, Series{c.ID, Name(c.Network, c.Path), c.Role})
	}
	return all
}

// of are the trials of a cell that count, in the order of builds.
func (e Evidence) of(cell string) []*summary {
	var all []*summary
	for _, s := range e.batches {
		if good := s.good(cell); good != nil {
			all = append(all, good)
		}
	}
	return all
}

// Quantile is a point of a distribution of latencies: so many percent of them, 0 to 100, are at most Value nanoseconds.
type Quantile struct{ Percent, Value float64 }

// Distribution is what the transactions of a cell took, with all trials that count merged into one histogram.
type Distribution struct {
	Series
	// Count is the number of transactions.
	Count int64
	// Quantiles are ascending in both. They end where fewer than ten transactions lie beyond: what is further out is chance.
	Quantiles []Quantile
}

// The points at which a distribution is read: evenly on the axis of Nines, from the least latency to one in a hundred
// thousand.
const (
	distributionPoints = 100
	mostNines          = 5
)

// Nines is the axis on which a distribution's tail is drawn: 0 for the minimum, 1 for p90, 2 for p99, 3 for p99.9. It is
// -log10(1-p) of a percentage below 100.
func Nines(percent float64) float64 { return -math.Log10(1 - percent/100) }

// Distributions are the distributions of a setting's cells, the baseline and its A/A control first. Cells without latencies have none, nor has
// a cell of whose histograms one can't be read: a check says so.
func (e Evidence) Distributions(s result.Setting) []Distribution {
	var all []Distribution
	for _, series := range e.cellSets[s].seriesOf() {
		var encoded []string
		for _, t := range e.of(series.Cell) {
			if !t.tail.none {
				encoded = append(encoded, e.trials.Trial(t.index).Histogram)
			}
		}
		sum, err := result.MergeHistograms(encoded...)
		if err != nil || sum.TotalCount() == 0 {
			continue
		}
		d := Distribution{Series: series, Count: sum.TotalCount()}
		percents := readable(d.Count)
		for i, v := range sum.ValueAtPercentilesSlice(percents) {
			d.Quantiles = append(d.Quantiles, Quantile{percents[i], float64(v)})
		}
		all = append(all, d)
	}
	return all
}

// readable are the percentages at which a histogram of so many values says something.
func readable(count int64) []float64 {
	var percents []float64
	for i := range distributionPoints + 1 {
		percent := 100 * (1 - math.Pow(10, -mostNines*float64(i)/distributionPoints))
		if i > 0 && float64(count)*(1-percent/100) < tailSamples*(1-1e-9) {
			break
		}
		percents = append(percents, percent)
	}
	return percents
}

// Spending is the processor time that a cell takes, from all trials that count.
type Spending struct {
	Series
	// Client, Server and Kernel are nanoseconds for a transaction, or for a byte where PerByte: that is seconds for a
	// gigabyte.
	Client, Server, Kernel float64
	PerByte, KernelUnknown bool
}

// Total is the time of all.
func (s Spending) Total() float64 { return s.Client + s.Server + s.Kernel }

// Spendings are the spendings of a setting's cells, the baseline first and the A/A control in it. Cells without processor time on record
// have none, nor do those that were searched for their rates.
func (e Evidence) Spendings(s result.Setting) []Spending {
	t := e.cellSets[s]
	sums := map[string]CPU{}
	perByte := false
	for _, series := range t.seriesOf() {
		of := series.Cell
		if series.Role == result.RoleControl && t.baseline != nil {
			of = t.baseline.ID
		}
		for _, trial := range e.of(series.Cell) {
			if !trial.spends {
				continue
			}
			sums[of] = sums[of].Add(trial.cpu)
			perByte = trial.moves
		}
	}
	var all []Spending
	for _, series := range t.seriesOf() {
		sum := sums[series.Cell]
		work := float64(sum.Transactions)
		if perByte {
			work = float64(sum.Bytes)
		}
		if series.Role != result.RoleControl && work > 0 && sum.Total() > 0 {
			all = append(all, Spending{
				Series: series, PerByte: perByte, KernelUnknown: sum.KernelUnknown,
				Client: float64(sum.Client) / work, Server: float64(sum.Server) / work, Kernel: float64(sum.Kernel) / work,
			})
		}
	}
	return all
}

// CPU is the processor time that a trial's undisturbed bursts took, in nanoseconds, and what it was spent on.
type CPU struct {
	// Client and Server are the time of the two ends with the network work that the kernel did in their name, Kernel is the
	// network work that no program is charged for.
	Client, Server, Kernel int64
	KernelUnknown          bool // as it is of other machines
	Transactions, Bytes    int64
}

// Spent sums up the processor time of a trial; it is zero for a trial that has none recorded.
func Spent(t result.Trial) CPU {
	var sum CPU
	b := t.Bursts
	for i := range min(len(b.ClientCPU), len(b.ServerCPU), len(b.Work), len(b.Moved)) {
		if i < len(b.Disturbed) && b.Disturbed[i] != "" {
			continue
		}
		sum.Client += b.ClientCPU[i]
		sum.Server += b.ServerCPU[i]
		if i < len(b.KernelCPU) {
			sum.Kernel += b.KernelCPU[i]
		} else {
			sum.KernelUnknown = true
		}
		sum.Transactions += b.Work[i]
		sum.Bytes += b.Moved[i]
	}
	return sum
}

// Total is the time of all.
func (c CPU) Total() int64 { return c.Client + c.Server + c.Kernel }

// Add is the sum of two.
func (c CPU) Add(o CPU) CPU {
	return CPU{
		Client: c.Client + o.Client, Server: c.Server + o.Server, Kernel: c.Kernel + o.Kernel, KernelUnknown: c.KernelUnknown || o.KernelUnknown,
		Transactions: c.Transactions + o.Transactions, Bytes: c.Bytes + o.Bytes,
	}
}
