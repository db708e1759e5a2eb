package insight_test

import (
	"netdelta/insight"

	"fmt"
	"testing"
)

// BenchmarkDeltas is what a run pays after each build to find out which cells are resolved: eight networks in one setting,
// twelve builds of 400 rounds.
func BenchmarkDeltas(b *testing.B) {
	w := usual()
	for i := range 5 {
		w.networks = append(w.networks, fmt.Sprintf("n%d", i))
	}
	w.builds, w.rounds = 12, 400
	cells, trials := w.cells(), w.trials(b)
	for b.Loop() {
		insight.Deltas(cells, trials, insight.Options{HeadlinesOnly: true})
	}
}
