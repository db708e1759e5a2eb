package imported

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/result"
)

// Rebase makes another network of an imported run the baseline. The figures have to be computed anew.
func Rebase(run *result.Run, baseline string) error {
	var networks []string
	for _, c := range run.Cells {
		if !slices.Contains(networks, c.Network) {
			networks = append(networks, c.Network)
		}
	}
	if !slices.Contains(networks, baseline) {
		return fmt.Errorf("%w %s; the run has %s", ErrBaseline, baseline, strings.Join(networks, ", "))
	}
	run.Cells = slices.Clone(run.Cells)
	for i, c := range run.Cells {
		run.Cells[i].Role = result.RoleCell
		if c.Network == baseline {
			run.Cells[i].Role = result.RoleBaseline
		}
	}
	return nil
}
