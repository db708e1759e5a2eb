package pairs_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"netdelta/experiment/pairs"
	insight "netdelta/insight/pairs"
	"netdelta/internal/golden"
	report "netdelta/report/pairs"
	"netdelta/stats"
)

// measured is four nodes in two networks, of which one node is slow in the second; a name tries to be markup, and a control
// sequence.
func measured() insight.Report {
	o := pairs.Outcome{
		Workload: "tcp-rr", Metric: "p50", Unit: "ns", Better: "lower", Seed: 1,
		Nodes: []string{"w1", "w2", "<b>w3</b>", "w4\x1b[31m"},
	}
	for _, name := range []string{"host", "pod"} {
		n := pairs.Network{Network: name}
		for i, client := range o.Nodes {
			for j, server := range o.Nodes {
				if i == j || name == "host" && i == 0 && j == 3 {
					continue
				}
				p := pairs.Pair{Client: client, Server: server}
				for b := range 6 {
					v := 20_000 * math.Exp(0.004*math.Sin(float64(b*7+i*3+j)))
					if name == "pod" && (i == 2 || j == 2) {
						v *= 1.4
					}
					p.Builds = append(p.Builds, pairs.Value{Build: b, Bursts: 10, Value: v})
				}
				n.Pairs = append(n.Pairs, p)
			}
		}
		o.Networks = append(o.Networks, n)
	}
	o.Networks[0].Failures = []pairs.Failure{{Build: 2, Client: "w1", Server: "w4\x1b[31m", Why: "pod gone:\nevicted \x1b[2J"}}
	return insight.Judge(o, stats.Options{Margin: 0.05})
}

func TestText(t *testing.T) {
	var out bytes.Buffer
	if err := report.WriteText(&out, measured()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Error("a name reaches the terminal as it is")
	}
	golden.Check(t, "testdata/pairs.txt", out.String())
}

func TestPage(t *testing.T) {
	var out bytes.Buffer
	if err := report.Write(&out, measured()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "<b>") {
		t.Error("a name is markup")
	}
	golden.Check(t, "testdata/pairs.html", out.String())
	// The darkest of worse and of better are as far from typical on a logarithmic scale.
	if page := out.String(); !strings.Contains(page, `<span class="h0 key">typical</span>`) || strings.Count(page, ` key">&#43;`) != 10 || strings.Count(page, ` key">-`) != 10 {
		t.Error("the colours of the map have no values")
	}
}

// A large cluster's matrix is left to the page, and of two nodes none is called odd.
func TestSizes(t *testing.T) {
	for nodes, want := range map[int]string{2: "it takes three", 13: "the matrix is in the page"} {
		o := pairs.Outcome{Workload: "tcp-rr", Metric: "p50", Unit: "ns", Better: "lower"}
		n := pairs.Network{Network: "pod"}
		for i := range nodes {
			o.Nodes = append(o.Nodes, fmt.Sprint("w", i))
			n.Pairs = append(n.Pairs, pairs.Pair{Client: fmt.Sprint("w", i), Server: fmt.Sprint("w", (i+1)%nodes), Builds: []pairs.Value{{Bursts: 1, Value: 20_000}}})
		}
		o.Networks = []pairs.Network{n}
		var out bytes.Buffer
		if err := report.WriteText(&out, insight.Judge(o, stats.Options{})); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%d nodes: %v\n%s", nodes, err, out.String())
		}
	}
}
