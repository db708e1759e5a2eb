package annotations

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"netdelta/internal/golden"
	"netdelta/internal/leak"
	"netdelta/report/reporttest"
	"netdelta/result"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func written(t *testing.T, c result.Comparison) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteComparison(&out, c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGolden(t *testing.T) {
	for name, c := range reporttest.Comparisons(t) {
		golden.Check(t, filepath.Join("testdata", name+".txt"), written(t, c))
	}
}

// command is a workflow command as the documentation has it.
var command = regexp.MustCompile(`^::(error|warning|notice) title=([^:,\r\n]*)::([^\r\n]*)$`)

// unescape undoes what a runner undoes.
func unescape(text string) string {
	return strings.NewReplacer("%0D", "\r", "%0A", "\n", "%3A", ":", "%2C", ",", "%25", "%").Replace(text)
}

// Whatever names say, every line is one command, and none that somebody else has put there.
func TestHostileNames(t *testing.T) {
	text := written(t, reporttest.Comparisons(t)["hostile"])
	for line := range strings.Lines(text) {
		if !command.MatchString(strings.TrimSuffix(line, "\n")) {
			t.Errorf("no command: %q", line)
		}
	}
	if strings.ContainsAny(text, "\x1b\x07\u202e") {
		t.Errorf("what a terminal obeys comes through: %q", text)
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"vxlan", "100%", "a:b,c", "x\n::error::y", "%0A::stop-commands::x", "\r\x1b[0m", reporttest.Hostile(), "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		low, high := 1.05, 1.09
		c := result.Comparison{Says: name, Verdict: "regressed", Margin: 0.02, Changes: []result.Change{{
			Network: name, Baseline: name, Setting: result.Setting{Workload: name, Placement: result.Placement(name)}, Metric: name, Headline: true, Change: 1.07,
			ChangeLow: &low, ChangeHigh: &high, Verdict: "regressed", Unit: name,
		}}}
		text := written(t, c)
		if strings.Count(text, "\n") != 2 {
			t.Fatalf("%q became %q", name, text)
		}
		for line := range strings.Lines(text) {
			found := command.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if found == nil {
				t.Fatalf("%q became no command: %q", name, line)
			}
			if strings.ContainsAny(unescape(found[2])+unescape(found[3]), "\r\n\x1b") {
				t.Fatalf("%q breaks a line, or means something to a terminal: %q", name, line)
			}
		}
	})
}

func TestEscapes(t *testing.T) {
	for text, want := range map[string]string{"a,b: 5%": "a%2Cb%3A 5%25", "x": "x", "%2C": "%252C"} {
		if got := property(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
		if got := unescape(property(text)); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
	if got := data("a,b: 5%"); got != "a,b: 5%25" {
		t.Errorf("a message is %q", got)
	}
}

func TestErrorOfTheWriter(t *testing.T) {
	if err := WriteComparison(reporttest.Full{}, result.Comparison{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}
