package guest_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload/catalogue"
)

// lines hands each whole line on.
type lines struct{ to func([]byte) error }

func (l lines) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if err := l.to([]byte(strings.TrimSuffix(line, "\n"))); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// here does a job in this process, where the clock counts no instructions but all else is as in a guest.
func here(ctx context.Context, job guest.Job, line func([]byte) error) error {
	return guest.Exact(ctx, job, network.Catalogue(), catalogue.Workloads(), guest.NewWriter(lines{line}))
}

// counting is an exact run over three seeds in a folder.
func counting(t *testing.T, folder *result.Folder, in func(context.Context, guest.Job, func([]byte) error) error) guest.Seeds {
	t.Helper()
	require.Namespaces(t)
	cells := plan.Expand(small())
	return guest.Seeds{
		Run: result.Run{
			Schema: result.Schema, Run: "small", Study: "small", Testbed: "vm", Cells: cells, Confidence: 0.95, Margin: result.ExactMargin,
			Exact: &result.Exact{Seeds: []uint64{5, 6, 7}, PerInstruction: 2, Transactions: 20},
		},
		Job: guest.Job{ExactJob: experiment.ExactJob{
			Cells: cells, Warmup: 2, Transactions: 20, PerInstruction: 2,
			Testbed: testbed.Spec{Nodes: 2, PodsPerNode: 2, Link: testbed.Link{MTU: 1500}},
		}},
		Guest: in, Parallel: 2, Folder: folder, Judge: words.NewJudge(catalogue.Workloads()), Progress: func(int, int) {},
	}
}

func create(t *testing.T) (string, *result.Folder) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	f, err := result.Create(dir, []byte("study: small\n"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, f
}

// TestSeeds: each seed is a build, deltas have their range, and progress ends at 100%.
func TestSeeds(t *testing.T) {
	dir, folder := create(t)
	s := counting(t, folder, here)
	var mu sync.Mutex
	var last [2]int
	s.Progress = func(done, of int) {
		mu.Lock()
		defer mu.Unlock()
		last = [2]int{done, of}
	}
	run, err := s.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closed(t, folder)
	seeds := map[int]uint64{}
	for _, tr := range journal(t, dir) {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
			continue
		}
		seeds[tr.Build] = tr.Exact.Seed
	}
	if len(seeds) != 3 || seeds[0] != 5 || seeds[2] != 7 || run.Ended != plan.EndedBuilds || last != [2]int{9, 9} {
		t.Errorf("seeds %v, ended %s, progress %v", seeds, run.Ended, last)
	}
	i := slices.IndexFunc(run.Deltas, func(d result.Delta) bool { return d.Headline })
	if i < 0 || run.Deltas[i].RatioLow == nil || run.Environment.Kernel == "" {
		t.Errorf("%d deltas, on %q", len(run.Deltas), run.Environment.Kernel)
	}
}

// TestSeedsFail: a guest that fails ends the run with what it said; what was counted is kept, and a resumed run asks only for the
// rest.
func TestSeedsFail(t *testing.T) {
	dir, folder := create(t)
	broken := errors.New("the guest hung")
	s := counting(t, folder, func(ctx context.Context, job guest.Job, line func([]byte) error) error {
		if job.Seed == 6 {
			return broken
		}
		return here(ctx, job, line)
	})
	s.Parallel = 1
	run, err := s.Count(t.Context())
	closed(t, folder)
	if !errors.Is(err, broken) || run.Ended != plan.EndedFailed || len(journal(t, dir)) != 3 {
		t.Fatalf("ended %s with %d trials: %v", run.Ended, len(journal(t, dir)), err)
	}
	folder, err = result.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []uint64
	run, err = counting(t, folder, func(ctx context.Context, job guest.Job, line func([]byte) error) error {
		mu.Lock()
		asked = append(asked, job.Seed)
		mu.Unlock()
		return here(ctx, job, line)
	}).Count(t.Context())
	closed(t, folder)
	slices.Sort(asked)
	if err != nil || !slices.Equal(asked, []uint64{6, 7}) || len(journal(t, dir)) != 9 || run.Ended != plan.EndedBuilds {
		t.Errorf("asked for seeds %v; %d trials, ended %s: %v", asked, len(journal(t, dir)), run.Ended, err)
	}
}

// TestSeedsInterrupted: an interrupt is no error.
func TestSeedsInterrupted(t *testing.T) {
	_, folder := create(t)
	ctx, cancel := context.WithCancel(t.Context())
	run, err := counting(t, folder, func(ctx context.Context, _ guest.Job, _ func([]byte) error) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	}).Count(ctx)
	closed(t, folder)
	if err != nil || run.Ended != plan.EndedInterrupted {
		t.Errorf("ended %s: %v", run.Ended, err)
	}
}

// TestSeedsNameWhatIsUnsupported: a network that the guest can't build is marked, and does not fail.
func TestSeedsNameWhatIsUnsupported(t *testing.T) {
	dir, folder := create(t)
	s := counting(t, folder, here)
	s.Guest = func(_ context.Context, job guest.Job, line func([]byte) error) error {
		w := guest.NewWriter(lines{line})
		return errors.Join(w.Send(guest.Message{Unsupported: map[string]string{job.Cells[2].ID: "needs a link"}}), w.Send(guest.Message{End: &guest.End{}}))
	}
	run, err := s.Count(t.Context())
	closed(t, folder)
	if err != nil || run.Cells[2].Unsupported != "needs a link" || len(journal(t, dir)) != 0 {
		t.Errorf("%q: %v", run.Cells[2].Unsupported, err)
	}
}
