package insight_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"netdelta/insight"
	"netdelta/internal/property"
	"netdelta/report/words"
	"netdelta/result"
)

// reread are trials of which each is read anew whenever it is asked for, as from a journal.
type reread struct {
	result.List
	lock  sync.Mutex
	asked map[int]int
}

func (r *reread) Trial(i int) *result.Trial {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.asked[i]++
	t := r.List[i]
	return &t
}

// conclusions are a run with all that follows from it, as JSON.
func conclusions(t rapid.TB, run result.Run, trials *insight.Summaries) string {
	t.Helper()
	run.Confidence, run.Margin, run.Testbed = 0.95, 0.02, "lab"
	words.NewJudge(nil).ConcludeFrom(&run, trials)
	text, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Trials that are on disk give what trials in memory give, and each is read once.
func TestTrialsNeedNotBeInMemory(t *testing.T) {
	l, w, apart := usualLands(), usual(), usual()
	w.samples = 2000
	odd := w.trials(t)
	for i := range odd {
		odd[i].Path = &result.Path{OK: true, Weak: []string{"no packet sample", "b"}[:i%3%2]}
		odd[i].Services = []result.Service{{Name: "nginx", Version: string(rune('a' + i%20))}}
		odd[i].Disk = &result.Disk{P50: 1000}
		odd[i].CarryOver = &result.CarryOver{Visits: 100, Sum: 1, Squares: 0.01}
		switch i % 11 {
		case 3:
			odd[i].Failed = "its pod was lost"
		case 7:
			astray(&odd[i])
		}
	}
	stray := odd[5]
	stray.Cell, stray.Failed = "of no setting", "lost"
	claims := []result.Claim{{Expect: "p50 of bridge below vxlan"}}
	for name, c := range map[string]struct {
		run    result.Run
		trials []result.Trial
	}{
		"several settings": {result.Run{Cells: l.cells()}, l.trials()},
		"all that is odd":  {result.Run{Cells: w.cells()}, append(odd, stray)},
		"apart":            {result.Run{Cells: apart.cells()}, apart.inParts(t, nil)},
		"claims":           {result.Run{Cells: w.cells(), Claims: claims}, w.trials(t)},
	} {
		read := &reread{List: c.trials, asked: map[int]int{}}
		if got, want := conclusions(t, c.run, insight.Summarize(read)), conclusions(t, c.run, insight.Summarize(result.List(c.trials))); got != want {
			t.Errorf("%s: read one by one:\n%s\nin memory:\n%s", name, got, want)
		}
		if most := slices.Max(slices.Collect(maps.Values(read.asked))); len(read.asked) != len(c.trials) || most > 1 {
			t.Errorf("%s: %d of %d trials were read, one of them %d times", name, len(read.asked), len(c.trials), most)
		}
	}
}

// A journal that is summed up while it is read gives what its trials give that were read whole: the same figures, or the same error.
func TestSummariesOfJournal(t *testing.T) {
	dir := t.TempDir()
	n := 0
	property.Check(t, func(rt *rapid.T) {
		n++
		at := filepath.Join(dir, strconv.Itoa(n))
		cells, trials := drawn(rt)
		if err := written(at, trials); err != nil {
			rt.Fatal(err)
		}
		damage(rt, filepath.Join(at, result.TrialsFile))
		whole, wantErr := result.LoadTrials(at)
		files, err := result.OpenRun(at)
		if err != nil {
			rt.Fatal(err)
		}
		defer files.Close()
		var summaries insight.Summaries
		stored, err := files.Stored(summaries.Add)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			rt.Fatalf("read at once: %v; read whole: %v", err, wantErr)
		}
		if err != nil {
			return
		}
		summaries.Trials = stored
		if stored.Torn != whole.Torn {
			rt.Fatalf("torn: %q, want %q", stored.Torn, whole.Torn)
		}
		run := result.Run{Cells: cells}
		got, want := conclusions(rt, run, &summaries), conclusions(rt, run, insight.Summarize(result.List(whole.Trials)))
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		gathered, wanted := insight.Gather(cells, &summaries), insight.Gather(cells, insight.Summarize(result.List(whole.Trials)))
		for _, s := range result.Settings(cells) {
			if diff := cmp.Diff(wanted.Distributions(s), gathered.Distributions(s)); diff != "" {
				rt.Fatal(diff)
			}
		}
		if diff := cmp.Diff(insight.Summarize(result.List(whole.Trials)).Audit(), summaries.Audit()); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// drawn are the trials of a small run in which anything may be missing, disturbed, out of order or there twice.
func drawn(t *rapid.T) ([]result.Cell, []result.Trial) {
	var cells []result.Cell
	var trials []result.Trial
	for i, network := range []string{"host", "host again", "bridge", "vxlan"} {
		role := []result.Role{result.RoleBaseline, result.RoleControl, result.RoleCell, result.RoleCell}[i]
		cells = append(cells, result.Cell{ID: network, Network: strings.TrimSuffix(network, " again"), Placement: result.SameNode, Workload: "tcp-rr", Role: role})
	}
	positive := rapid.Float64Range(1, 1e6)
	h, err := result.EncodeHistogram(histogram(rapid.SliceOfN(rapid.Int64Range(1, 1e9), 0, 50).Draw(t, "latencies")))
	if err != nil {
		t.Fatal(err)
	}
	for build := range rapid.IntRange(1, 5).Draw(t, "builds") {
		for _, c := range cells {
			rows := rapid.IntRange(0, 12).Draw(t, "rows")
			tr := result.Trial{
				Cell: c.ID, Role: c.Role, Build: build, Started: time.Unix(int64(build), 0).UTC(), Finished: time.Unix(int64(build)+1, 0).UTC(),
				Histogram: rapid.SampledFrom([]string{"", h, "not one"}).Draw(t, "histogram"),
				Failed:    rapid.SampledFrom([]string{"", "", "", "", "lost"}).Draw(t, "failed"),
			}
			b := &tr.Bursts
			b.Round = rapid.Permutation(rapid.SliceOfNDistinct(rapid.IntRange(0, 20), rows, rows, rapid.ID).Draw(t, "rounds")).Draw(t, "order")
			b.Start = rapid.SliceOfN(rapid.Int64Range(0, 1e12), rows, rows).Draw(t, "starts")
			b.Duration = make([]int64, rows)
			b.P50 = rapid.SliceOfN(positive, rows, rows).Draw(t, "p50")
			for _, column := range []*[]float64{&b.Mean, &b.Split, &b.SweepLevel, &b.Throughput} {
				if rapid.Bool().Draw(t, "column") {
					*column = rapid.SliceOfN(positive, rows, rows).Draw(t, "values")
				}
			}
			if rapid.Bool().Draw(t, "marked") {
				b.Disturbed = rapid.SliceOfN(rapid.SampledFrom([]string{"", "", "steal"}), rows, rows).Draw(t, "disturbed")
			}
			for range rapid.SampledFrom([]int{1, 1, 1, 0, 2}).Draw(t, "times") {
				trials = append(trials, tr)
			}
		}
	}
	return cells, trials
}

// written is a run folder with these trials.
func written(dir string, trials []result.Trial) error {
	folder, err := result.Create(dir, []byte("study: s\n"))
	if err != nil {
		return err
	}
	for _, t := range trials {
		if err := folder.Append(t); err != nil {
			return err
		}
	}
	return folder.Close()
}

// damage does to a journal what disks and editors do.
func damage(t *rapid.T, journal string) {
	text, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	place := func() int { return rapid.IntRange(0, max(len(text)-1, 0)).Draw(t, "place") }
	switch what := rapid.SampledFrom([]string{"nothing", "nothing", "cut", "flip", "bare"}).Draw(t, "damage"); {
	case len(text) == 0:
	case what == "cut":
		text = text[:place()]
	case what == "flip":
		text[place()] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	case what == "bare": // as it was written before there were checksums
		text = regexp.MustCompile(`,"crc32c":"[0-9a-f]{8}"`).ReplaceAll(text, nil)
	}
	if err := os.WriteFile(journal, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func histogram(latencies []int64) *hdrhistogram.Histogram {
	h := result.NewHistogram()
	for _, ns := range latencies {
		_ = h.RecordValue(ns) // all are in its range
	}
	return h
}
