package page_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"netdelta/report/page"
)

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		low, high float64
		most      int
		want      []float64
	}{
		{0, 144, 5, []float64{0, 50, 100}}, {0, 100, 5, []float64{0, 20, 40, 60, 80, 100}}, {0, 0.9, 5, []float64{0, 0.2, 0.4, 0.6000000000000001, 0.8}},
		{0, 1, 1, []float64{0, 1}}, {0, 0, 5, nil}, {0, -1, 5, nil}, {0, math.NaN(), 5, nil}, {0, math.Inf(1), 5, nil}, {0, 7, 0, nil}, {-41, 263, 5, []float64{0, 100, 200}}, {12, 19, 4, []float64{12, 14, 16, 18}},
	} {
		if got := page.Ticks(test.low, test.high, test.most); !slices.Equal(got, test.want) {
			t.Errorf("ticks from %v to %v: %v, want %v", test.low, test.high, got, test.want)
		}
	}
}

// A part at the top of a page is allowed by the page's policy, with its style.
func TestHeaded(t *testing.T) {
	const css = "nav { color: red }"
	var out strings.Builder
	const layout = `<head><meta http-equiv="Content-Security-Policy" content="{{policy}}"><style>{{style}}</style></head><body><p>{{.}}</p></body>`
	if err := page.New(layout, "p { margin: 0 }", "").Write(&out, "a page", "text"); err != nil {
		t.Fatal(err)
	}
	headed := page.Headed(out.String(), css, "<nav>back</nav>")
	allowed := page.Policy("", css)
	_, styleOf, _ := strings.Cut(allowed, "style-src ")
	styleOf, _, _ = strings.Cut(styleOf, ";")
	if policy := page.PolicyOf(headed); !strings.Contains(policy, styleOf) || !strings.HasPrefix(policy, "default-src 'none'") {
		t.Errorf("the policy is %q, want it to allow %s", policy, styleOf)
	}
	if !strings.Contains(headed, "<nav>back</nav><p>text") || !strings.Contains(headed, "<style>"+css+"</style>") {
		t.Errorf("the page is %s", headed)
	}
	if plain := page.Headed("no page", css, "x"); plain != "no page" {
		t.Errorf("what is no page became %q", plain)
	}
}
