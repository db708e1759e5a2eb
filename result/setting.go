package result

// Setting is what a cell and its baseline have in common: everything but the network and how the server is named. Deltas
// are taken within a setting, and a table shows one. It can be compared and used as a key.
type Setting struct {
	Workload  string    `json:"workload"`
	Params    Params    `json:"params"`
	Placement Placement `json:"placement"`
}

// Regime is how a workload of requests and responses keeps its processors; "" for other workloads, and where the ends are not pinned.
func (s Setting) Regime() string {
	if !HasRegimes(s.Workload) {
		return ""
	}
	return s.Params.Regime()
}

// Setting is the cell's setting.
func (c Cell) Setting() Setting { return Setting{c.Workload, c.Params, c.Placement} }

// Settings lists the settings of cells in the order in which they first occur.
func Settings(cells []Cell) []Setting {
	var list []Setting
	seen := map[Setting]bool{}
	for _, c := range cells {
		if s := c.Setting(); !seen[s] {
			seen[s] = true
			list = append(list, s)
		}
	}
	return list
}
