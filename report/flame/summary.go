package flame

// Summary is what the page of a run says of a flame graph, which is a page of its own.
type Summary struct {
	// Page is the file of the graph, as the run's page links to it.
	Page     string   `json:"page"`
	Networks []string `json:"networks"`
	Per      string   `json:"per"`
	// Busy is the processor time of each network for one unit.
	Busy      []string   `json:"busy"`
	Functions []Function `json:"functions"`
}

// Function is one that differs between the networks, in its own time for one unit.
type Function struct {
	Name       string   `json:"name"`
	Kernel     bool     `json:"kernel"`
	Times      []string `json:"times"`
	Difference string   `json:"difference,omitempty"`
}

// summaryMost is how many functions a summary has.
const summaryMost = 10

// Summarise sums up the graph of networks: the functions that differ most, the largest difference first.
func Summarise(page string, sides ...Side) Summary {
	d := drawing{Sides: sides}
	s := Summary{Page: page, Per: d.Last().Per.Name}
	for _, side := range sides {
		s.Networks, s.Busy = append(s.Networks, side.Network), append(s.Busy, side.Busy())
	}
	rows := d.Rows()
	for _, r := range rows[:min(len(rows), summaryMost)] {
		s.Functions = append(s.Functions, Function{Name: r.Function, Kernel: r.Kernel, Times: r.Times, Difference: r.Delta})
	}
	return s
}
