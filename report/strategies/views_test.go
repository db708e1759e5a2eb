package strategies_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"netdelta/insight"
	"netdelta/internal/leak"
	"netdelta/report/html"
	"netdelta/report/markdown"
	"netdelta/report/openmetrics"
	"netdelta/report/reporttest"
	"netdelta/report/terminal"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// All views of a run count alike what it measured and what it left out.
func TestViewsCountAlike(t *testing.T) {
	w := reporttest.Usual()
	run, trials := w.Measure(t)
	for _, role := range []result.Role{result.RoleBaseline, result.RoleControl, result.RoleCell} {
		c := run.Cells[0]
		c.ID, c.Role, c.Skipped, c.Params.Message = string(role)+"/large", role, "left out to keep the time budget", 2048
		run.Cells = append(run.Cells, c)
	}
	for i := range 3 { // of the baseline, of its A/A control, of a network
		trials[i].Bursts.Disturbed[0] = "preempted"
	}
	summaries := insight.Summarize(result.List(trials))
	words.NewJudge(nil).ConcludeFrom(&run, summaries)
	if run.Account.LeftOut != 3 {
		t.Errorf("%d cells are left out, want 3", run.Account.LeftOut)
	}
	bursts := words.LeftOut(run.Account)
	briefly, _, _ := strings.Cut(bursts, ":")
	count, of, _ := strings.Cut(briefly, " bursts of ")
	if count == "" || of == "" {
		t.Fatalf("left out: %q", bursts)
	}
	for name, view := range map[string]struct {
		write func(io.Writer) error
		shows []string
	}{
		"terminal": {func(w io.Writer) error {
			return terminal.Write(w, run, terminal.View{Terminal: ui.Terminal{Width: 120}})
		}, []string{briefly, "3 cells"}},
		"markdown": {func(w io.Writer) error { return markdown.Write(w, run) }, []string{bursts, "3 cells"}},
		"page":     {func(w io.Writer) error { return html.Write(w, run, summaries) }, []string{">" + count + " of " + of + "<", "3 cells"}},
		"metrics": {func(w io.Writer) error {
			return openmetrics.Write(w, openmetrics.Snapshot{Run: run, Trials: result.List(trials)})
		}, []string{`netdelta_left_out_bursts{study="latency",reason="preempted"} ` + count + ".0", `netdelta_left_out_cells{study="latency"} 3.0`}},
	} {
		var out bytes.Buffer
		if err := view.write(&out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, shown := range view.shows {
			if !strings.Contains(out.String(), shown) {
				t.Errorf("%s does not show %q", name, shown)
			}
		}
	}
}
