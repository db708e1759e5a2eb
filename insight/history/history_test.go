package history_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight/history"
	"netdelta/result"
)

// run is one whose network adds so much.
func run(ratio float64) result.Run {
	low, high := ratio*0.99, ratio*1.01
	return result.Run{
		Ended: plan.EndedResolved, Confidence: 0.95, Environment: environment("6.18"),
		Deltas: []result.Delta{{
			Cell: "bridge/tcp-rr", Baseline: "host", Setting: result.Setting{Workload: "tcp-rr", Params: result.Params{CPU: "same"}}, Headline: true, Unit: "ns",
			BaselineValue: 20_000, Judgement: result.Judgement{Ratio: ratio, RatioLow: &low, RatioHigh: &high, Blocks: 8},
		}},
	}
}

func environment(kernel string) result.Environment {
	return result.Environment{Kernel: kernel, Hostname: "here"}
}

func place(t *testing.T, kernel string, nodes int) string {
	t.Helper()
	p, err := history.Place(environment(kernel), study.Testbed{Kind: "lab", Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What runs leave is found by later ones of the same testbed and kernel, and by no others.
func TestEarlierRuns(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "netdelta", history.Folder)
	here := place(t, "6.18", 2)
	if runs, err := history.Earlier(folder, here); err != nil || runs != nil {
		t.Errorf("before the first run there are %v: %v", runs, err)
	}
	for _, ratio := range []float64{1.1, 1.2} {
		if err := history.Keep(t.Context(), folder, here, run(ratio)); err != nil {
			t.Fatal(err)
		}
	}
	interrupted := run(1.3)
	interrupted.Ended = plan.EndedInterrupted
	if err := history.Keep(t.Context(), folder, here, interrupted); err != nil {
		t.Fatal(err)
	}
	runs, err := history.Earlier(folder, here)
	if err != nil || len(runs) != 2 || len(runs[0]) != 1 || runs[0][0].Regime != "saturated" || !(runs[0][0].Center < runs[1][0].Center) {
		t.Errorf("found %+v: %v", runs, err)
	}
	for _, other := range []string{place(t, "6.19", 2), place(t, "6.18", 3)} {
		if runs, err := history.Earlier(folder, other); err != nil || len(runs) > 0 {
			t.Errorf("elsewhere there are %v: %v", runs, err)
		}
	}
}

// Runs that end at once lose nothing; a line that can't be read hides no other, and a folder that others may write is refused.
func TestRunsEndAtOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "netdelta", history.Folder)
	here := place(t, "6.18", 2)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := history.Keep(t.Context(), folder, here, run(1+float64(i)/100)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	path := filepath.Join(folder, "runs.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("{\"schema\": torn\n\x00\n"), data...), 0o600); err != nil {
		t.Fatal(err)
	}
	if runs, err := history.Earlier(folder, here); err != nil || len(runs) != 20 {
		t.Errorf("of 20 runs %d are found: %v", len(runs), err)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Earlier(folder, here); err == nil {
		t.Error("a folder that all may write is read")
	}
}

// Only so many runs are kept: the latest.
func TestRunsAreLimited(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "netdelta", history.Folder)
	here := place(t, "6.18", 2)
	for i := range 205 {
		if err := history.Keep(t.Context(), folder, here, run(1+float64(i)/1000)); err != nil {
			t.Fatal(err)
		}
	}
	runs, err := history.Earlier(folder, here)
	if err != nil || len(runs) != 200 || runs[0][0].Center < 0.004 {
		t.Errorf("%d runs are kept, the first at %+v: %v", len(runs), runs[0], err)
	}
}
