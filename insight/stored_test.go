package insight_test

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"testing"

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

// whole is a run with all that follows from it, as JSON.
func whole(t *testing.T, run result.Run, trials result.Trials) string {
	t.Helper()
	run.Confidence, run.Margin, run.Testbed = 0.95, 0.02, "lab"
	words.NewJudge(nil).ConcludeFrom(&run, trials)
	text, err := json.MarshalIndent(run, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Trials that are read a setting at a time give what trials in memory give.
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
		if got, want := whole(t, c.run, read), whole(t, c.run, result.List(c.trials)); got != want {
			t.Errorf("%s: read a setting at a time:\n%s\nin memory:\n%s", name, got, want)
		}
		if most := slices.Max(slices.Collect(maps.Values(read.asked))); len(read.asked) != len(c.trials) || most > 6 {
			t.Errorf("%s: %d of %d trials were read, one of them %d times", name, len(read.asked), len(c.trials), most)
		}
	}
}
