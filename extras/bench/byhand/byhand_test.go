package main

import (
	"os"
	"testing"

	"netdelta/extras/bench/harness"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) {
	harness.Children()
	os.Exit(m.Run())
}

// Both programs measure both networks in all regimes, and neither reads the other's figures.
func TestRun(t *testing.T) {
	require.Long(t)
	require.Namespaces(t)
	sockperf := require.Tool(t, "sockperf")
	medians, err := measured(t.Context(), []string{"host", "bridge-nat"}, sockperf, 1, 300)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 * 2 * len(regimes()); len(medians) != want {
		t.Errorf("got %d series, want %d", len(medians), want)
	}
	for k, logs := range medians {
		const least, most = 7, 19 // a microsecond and 180 milliseconds
		if len(logs) != 1 || logs[0] < least || logs[0] > most {
			t.Errorf("%v: got %v", k, logs)
		}
	}
}
