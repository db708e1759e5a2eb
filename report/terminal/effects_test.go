package terminal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/golden"
	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/result"
)

func TestEffectsGolden(t *testing.T) {
	run, _ := reporttest.Guarded().Measure(t)
	var out bytes.Buffer
	if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 100, Unicode: true}, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, filepath.Join("testdata", "effects.txt"), out.String())
}

// Of many tables of effects some are left out on a terminal, which says how to see them.
func TestManyEffects(t *testing.T) {
	w := reporttest.Guarded()
	w.Rounds, w.Builds = 2, 2
	for rules := range effectsMost + 3 {
		w.Conditions = append(w.Conditions, result.Conditions{Policy: result.PolicyIPTables, PolicyRules: 1 + rules})
	}
	run, _ := w.Measure(t)
	all := len(w.Conditions) - 1
	for interactive, want := range map[bool]int{true: effectsMost, false: all} {
		var out bytes.Buffer
		if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 100, Interactive: interactive, Unicode: true}, Verbose: true, Folder: "runs/r"}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "Policy from none to "); n != want {
			t.Errorf("interactive %v: %d tables of effects are printed, want %d", interactive, n, want)
		}
		more := fmt.Sprintf("%d more tables of effects are not shown here: netdelta show runs/r | less prints all of them", all-effectsMost)
		if told := strings.Contains(strings.Join(strings.Fields(out.String()), " "), more); told != interactive {
			t.Errorf("interactive %v: told how to see the rest: %v", interactive, told)
		}
	}
}
