package study

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestParseGoal(t *testing.T) {
	for text, want := range map[string]Goal{
		"vxlan.p99 < +20%":             {Network: "vxlan", Metric: "p99", Below: true, Limit: 0.2},
		" *.p99.9>=+50us ":             {Network: "*", Metric: "p99.9", OrEqual: true, Limit: 50_000, InTime: true},
		"bridge.throughput > -10%":     {Network: "bridge", Metric: "throughput", Limit: -0.1},
		"cni:my.conflist.p50 <= +1ms":  {Network: "cni:my.conflist", Metric: "p50", Below: true, OrEqual: true, Limit: 1e6, InTime: true},
		"pod (nodeport).loss < +0.01%": {Network: "pod (nodeport)", Metric: "loss", Below: true, Limit: 0.0001},
	} {
		g, err := ParseGoal(text)
		if err != nil || g != want {
			t.Errorf("%q is %+v, %v; want %+v", text, g, err, want)
		}
		if again, err := ParseGoal(g.String()); err != nil || again != g {
			t.Errorf("%q is written as %q, which is %+v, %v", text, g, again, err)
		}
		if g.Opposite().Opposite() != g {
			t.Errorf("the opposite of the opposite of %q is %q", g, g.Opposite().Opposite())
		}
	}
	for text, want := range map[string]string{
		"vxlan.p99":            "column 10: a goal needs < or >",
		"vxlan.p9 < +20%":      `column 7: unknown metric "p9"; did you mean "p90"?`,
		"vxlan < +20%":         `column 1: "vxlan" names no metric`,
		"vxlan.p99 < 20%":      `column 13: "20%" has no sign: a limit is a change against the baseline: write +20%`,
		"vxlan.p99 < +20":      `column 13: "+20" has no unit: write +20% or +20us`,
		"vxlan.p99 <":          "column 12: a goal needs a limit",
		"vxlan.loss < +2ms":    "column 14: loss is no time",
		".p99 < +20%":          "column 1: a goal is about a network",
		"vxlan.p99 < +twenty%": "is no change in percent",
		"vxlan.p99 < -100%":    "is no change in percent",
	} {
		if _, err := ParseGoal(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A goal of the file has a place, and is about a network of the study. One whose network flags take away goes with it.
func TestGoalsOfStudies(t *testing.T) {
	const head = "study: s\nbaseline: host\nnetworks: [host, bridge, vxlan]\nworkloads: [tcp-rr]\ngoals:\n"
	s, err := Parse("f", []byte(head+"  - vxlan.p99 < +20%\n  - '*.p50 < +50us'\n"), everythingKnown())
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Marshal()
	if err != nil || !strings.Contains(string(text), "vxlan.p99 < +20%") {
		t.Errorf("written as %s, %v", text, err)
	}
	fewer, err := s.Override(Overrides{Networks: []string{"host", "bridge"}, Goals: []string{"bridge.p50 < +9%"}}, everythingKnown())
	if err != nil || len(fewer.Goals) != 2 || fewer.Goals[1] != "bridge.p50 < +9%" || len(s.Goals) != 2 {
		t.Errorf("with fewer networks: %q, %v", fewer.Goals, err)
	}
	if _, err := Parse("f", []byte(head+"  - vxlna.p99 < +20%\n"), everythingKnown()); err == nil || !strings.Contains(err.Error(), `f:6`) || !strings.Contains(err.Error(), `"vxlan"`) {
		t.Errorf("a network that is not in the study: %v", err)
	}
	if goals, err := FailIf([]string{"vxlan.p99 > +20%"}); err != nil || goals[0] != "vxlan.p99 <= +20%" {
		t.Errorf("fail if: %q, %v", goals, err)
	}
}

// FuzzParseGoal holds that any text is refused at a place within it, or read as something that is written and read again the same.
func FuzzParseGoal(f *testing.F) {
	for _, text := range []string{"vxlan.p99 < +20%", "*.p50>=-1.5us", "a.p99.9 <= +1e3%", "µ.loss > +0%", "<", "x.p50 < +"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGoal(s)
		if err != nil {
			var at *ExpectationError
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(s) || at.Column > utf8.RuneCountInString(s)+1 {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		if again, err := ParseGoal(g.String()); err != nil || again.String() != g.String() {
			t.Fatalf("%q is written as %q, and that as %q: %v", s, g, again, err)
		}
	})
}
