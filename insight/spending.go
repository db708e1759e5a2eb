package insight

import "netdelta/result"

// Spending is the processor time that a cell takes, from all trials that count.
type Spending struct {
	Series
	// Client, Server and Kernel are nanoseconds for a transaction, or for a byte where PerByte: that is seconds for a
	// gigabyte.
	Client, Server, Kernel float64
	PerByte                bool
}

// Total is the time of all.
func (s Spending) Total() float64 { return s.Client + s.Server + s.Kernel }

// Spendings are those of a setting's cells, the baseline first and the twin in it. Cells without processor time on record
// have none, nor do those that were searched for their rates.
func (e Evidence) Spendings(s result.Setting) []Spending {
	t := e.tables[s]
	sums := map[string]CPU{}
	perByte := false
	for _, series := range t.seriesOf() {
		of := series.Cell
		if series.Role == result.RoleTwin && t.baseline != nil {
			of = t.baseline.ID
		}
		for _, trial := range e.of(series.Cell) {
			if !spends(trial) {
				continue
			}
			sums[of] = sums[of].Add(Spent(*trial))
			perByte = moves(trial)
		}
	}
	var all []Spending
	for _, series := range t.seriesOf() {
		sum := sums[series.Cell]
		work := sum.Transactions
		if perByte {
			work = sum.Bytes
		}
		if series.Role != result.RoleTwin && work > 0 && sum.Total() > 0 {
			all = append(all, spending(series, sum, perByte))
		}
	}
	return all
}

func spending(s Series, c CPU, perByte bool) Spending {
	work := float64(c.Transactions)
	if perByte {
		work = float64(c.Bytes)
	}
	return Spending{
		Series: s, PerByte: perByte,
		Client: float64(c.Client) / work, Server: float64(c.Server) / work, Kernel: float64(c.Kernel) / work,
	}
}
