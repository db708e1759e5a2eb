package terminal

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
	want := reporttest.Golden(t, filepath.Join("testdata", "effects.txt"), out.String(), *update)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Many tables of effects are cut, and it is said where the rest are.
func TestManyEffectsAreCut(t *testing.T) {
	w := reporttest.Guarded()
	w.Rounds, w.Builds = 2, 2
	for rules := range effectsMost + 3 {
		w.Conditions = append(w.Conditions, result.Conditions{Policy: result.PolicyIPTables, PolicyRules: 1 + rules})
	}
	run, _ := w.Measure(t)
	var out bytes.Buffer
	if err := Write(&out, run, View{Terminal: ui.Terminal{Width: 100, Unicode: true}, Verbose: true}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "Policy from none to "); n != effectsMost {
		t.Errorf("%d tables of effects are printed, want %d", n, effectsMost)
	}
	if want := fmt.Sprintf("%d more tables of effects are in the report", len(w.Conditions)-1-effectsMost); !strings.Contains(out.String(), want) {
		t.Errorf("it is not said that there are more: %q", want)
	}
}
