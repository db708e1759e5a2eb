package words

import (
	"strings"
	"testing"

	"netdelta/result"
)

// Each condition that is declared has words of its own in headings.
func TestEveryConditionHasWords(t *testing.T) {
	for _, d := range result.Parameters() {
		l := result.Level{Factor: d.Factor, Value: "1x2:3"}
		if says := levelWords(l); strings.HasPrefix(d.Field, "Conditions.") && says == l.String() {
			t.Errorf("%s has no words: headings say %q", d.Key, says)
		}
	}
	if l := (result.Level{Factor: "new", Value: "x:1"}); levelWords(l) != l.String() {
		t.Errorf("a factor without words is %q", levelWords(l))
	}
}

// Shares are printed to two digits, never as a power of ten.
func TestRoughly(t *testing.T) {
	for share, want := range map[float64]string{0.00123: "0.12%", 0.0456: "4.6%", 0.77: "77%", 0.996: "100%", 1.13: "113%"} {
		if got := roughly(share); got != want {
			t.Errorf("%g is printed as %s, want %s", share, got, want)
		}
	}
}
