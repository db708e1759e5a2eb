package result

// Setting is what a cell and its baseline have in common: everything but the network and how the server is named. Deltas
// are taken within a setting, and a table shows one. It can be compared and used as a key.
type Setting struct {
	Workload  string
	Params    Params
	Placement Placement
}

// Setting is the cell's setting.
func (c Cell) Setting() Setting { return Setting{c.Workload, c.Params, c.Placement} }

// Setting is the delta's setting.
func (d Delta) Setting() Setting { return Setting{d.Workload, d.Params, d.Placement} }

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
