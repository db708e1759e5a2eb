package insight

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/result"
)

// Unwell begins the reason of a burst that was left out because a daemon that serves it failed.
const Unwell = "service unwell"

// unwellServices counts the bursts that were left out because a daemon failed, by what was wrong with it.
func unwellServices(b result.Bursts) map[string]int {
	found := map[string]int{}
	for _, reason := range b.Disturbed {
		if why, ok := strings.CutPrefix(reason, Unwell); ok {
			found[strings.TrimPrefix(why, ": ")]++
		}
	}
	return found
}

// failures are the transactions of a trial that failed, of so many that were begun: those of the trial as a whole, or where
// it has no such sum those of its bursts.
func failures(t *result.Trial) (failed, of int64) {
	failed = t.Errors
	done := t.Transactions
	if failed == 0 {
		done = 0
		for i, n := range t.Bursts.Errors {
			failed += n
			if i < len(t.Bursts.Transactions) {
				done += t.Bursts.Transactions[i]
			}
		}
	}
	return failed, done + failed
}

// failedShare warns of the transactions of a cell that failed, which no figure holds; "" if none did.
func failedShare(cell string, all []sitting) string {
	failed, of := int64(0), int64(0)
	for _, s := range all {
		if t := s.good(cell); t != nil {
			n, begun := failures(t.trial)
			failed, of = failed+n, of+begun
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d transactions failed and are in no figure", failed, of)
}

// Services are the daemons behind the trials that count, each once, by name: what they took at most, and how often they had to
// be started again.
func Services(trials []result.Trial) []result.Service {
	most := map[string]result.Service{}
	for _, t := range trials {
		if t.Failed != "" {
			continue
		}
		for _, s := range t.Services {
			had, known := most[s.Name]
			if known {
				s.Memory, s.Restarts = max(s.Memory, had.Memory), max(s.Restarts, had.Restarts)
			}
			most[s.Name] = s
		}
	}
	var all []result.Service
	for _, name := range slices.Sorted(maps.Keys(most)) {
		all = append(all, most[name])
	}
	return all
}
