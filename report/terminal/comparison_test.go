package terminal

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/golden"
	"netdelta/report/reporttest"
	"netdelta/report/ui"
	"netdelta/result"
)

func compared(t *testing.T, c result.Comparison, terminal ui.Terminal) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteComparison(&out, c, terminal); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestComparisonGolden(t *testing.T) {
	comparisons := reporttest.Comparisons(t)
	for name, c := range map[string]struct {
		comparison string
		terminal   ui.Terminal
	}{
		"compare-regressed":  {"regressed", ui.Terminal{Width: 100, Unicode: true}},
		"compare-narrow":     {"regressed", ui.Terminal{Width: 60, Unicode: true}},
		"compare-ascii":      {"regressed", ui.Terminal{Width: 80}},
		"compare-colour":     {"regressed", ui.Terminal{Width: 100, Unicode: true, Colour: true}},
		"compare-same":       {"same", ui.Terminal{Width: 100, Unicode: true}},
		"compare-nothing":    {"nothing", ui.Terminal{Width: 100, Unicode: true}},
		"compare-all":        {"all", ui.Terminal{Width: 100, Unicode: true}},
		"compare-unresolved": {"unresolved", ui.Terminal{Width: 100, Unicode: true}},
		"compare-loss":       {"loss", ui.Terminal{Width: 100, Unicode: true}},
		"compare-hostile":    {"hostile", ui.Terminal{Width: 100, Unicode: true}},
	} {
		golden.Check(t, filepath.Join("testdata", name+".txt"), compared(t, comparisons[c.comparison], c.terminal))
	}
}

// Lines fit, whatever the width, and nothing that a terminal obeys comes through; the last line is the outcome.
func TestComparisonFits(t *testing.T) {
	for name, c := range reporttest.Comparisons(t) {
		for _, width := range []int{40, 60, 80, 120, 200} {
			text := compared(t, c, ui.Terminal{Width: width, Unicode: true})
			for line := range strings.Lines(text) {
				if n := ui.Columns(strings.TrimSuffix(line, "\n")); n > width && width >= 60 && strings.Count(strings.TrimSpace(line), " ") > 0 {
					t.Errorf("%s at %d: a line of %d: %s", name, width, n, line)
				}
			}
			if strings.ContainsAny(text, "\x1b\x07\u202e") {
				t.Errorf("%s: what a terminal obeys comes through: %q", name, text)
			}
			if end := strings.Join(strings.Fields(text), " "); !strings.HasSuffix(end, strings.Join(strings.Fields(ui.Clean(c.Says)), " ")) {
				t.Errorf("%s does not end with its outcome:\n%s", name, text)
			}
		}
	}
}

type fullWriter struct{}

var errNoRoom = errors.New("no room")

func (fullWriter) Write([]byte) (int, error) { return 0, errNoRoom }

func TestComparisonErrors(t *testing.T) {
	if err := WriteComparison(fullWriter{}, reporttest.Comparisons(t)["all"], ui.Terminal{Width: 80}); !errors.Is(err, errNoRoom) {
		t.Errorf("%v", err)
	}
}
