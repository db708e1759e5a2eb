package html

import (
	"strings"
	"testing"

	"netdelta/report/browsertest"
	"netdelta/report/flame"
)

// functions are those that differ most.
func functions() *flame.Summary {
	return &flame.Summary{
		Page: "flame/vxlan.html", Networks: []string{"routed", "vxlan"}, Per: "transaction", Busy: []string{"9.1 µs", "12.0 µs"},
		Functions: []flame.Function{{Name: "vxlan_xmit", Kernel: true, Times: []string{"0 ns", "640 ns"}, Difference: "+640 ns"}},
	}
}

// testFunctionsOnPage: the page has the functions that differ most between two networks, and a link to the file of the graph, which it does
// not load.
func testFunctionsOnPage(t *testing.T, b *browsertest.Browser) {
	run, trials := usual().run(t)
	b.Open(written(t, run, trials, WithFlame(functions())))
	if got := visible(b, "#flame tbody td", "e.textContent"); strings.Join(got, "; ") != "vxlan_xmit kernel; 0 ns; 640 ns; +640 ns" {
		t.Errorf("the functions are %q", got)
	}
	if got := visible(b, "#flame a", "e.getAttribute('href')"); len(got) != 1 || got[0] != "flame/vxlan.html" {
		t.Errorf("the graph is linked to as %q", got)
	}
	b.Quiet()
}
