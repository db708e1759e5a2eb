package suggest_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/internal/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"host", "bridge", "bridge-nat", "macvlan", "vxlan", "time_budget"}
	for name, want := range map[string]string{
		"brigde":      "bridge", // neighbours swapped
		"BRIDGE":      "bridge",
		"bridge_nat":  "bridge-nat",
		"mcvlan":      "macvlan",
		"time-budget": "time_budget",
		"mac":         "macvlan", // the only one that begins so
		"bri":         "",        // two begin so
		"hosts":       "host",
		"token-ring":  "",
		"":            "",
		"x":           "",
	} {
		if got, ok := suggest.Nearest(name, known); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", name, got, ok, want)
		}
	}
	if got, ok := suggest.Nearest("host", nil); ok {
		t.Errorf("suggested %q out of nothing", got)
	}
}

func TestAnySlipIsFound(t *testing.T) {
	known := []string{"routed", "vxlan-routed", "macvlan", "ipvlan-l2"}
	property.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(known).Draw(t, "name")
		at := rapid.IntRange(0, len(name)-1).Draw(t, "at")
		slip := name[:at] + name[at+1:]
		if got, ok := suggest.Nearest(slip, known); !ok || got != name {
			t.Fatalf("%q without a letter: got %q, %v", name, got, ok)
		}
		if _, ok := suggest.Nearest(strings.Repeat(slip, 20), known); ok {
			t.Fatalf("a name of %d letters was taken for a slip", 20*len(slip))
		}
	})
}
