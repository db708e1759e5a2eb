package pairs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"netdelta/experiment/pairs"
	insight "netdelta/insight/pairs"
	"netdelta/internal/property"
	"netdelta/stats"
)

// world is nodes whose pairs take 20 us times what each end adds, with noise of each build.
func world(nodes, builds int, noise float64, adds func(client, server int) float64) pairs.Outcome {
	o := pairs.Outcome{Metric: "p50", Unit: "ns", Better: "lower", Seed: 1}
	rng := rand.New(rand.NewPCG(5, 0))
	n := pairs.Network{Network: "pod"}
	for i := range nodes {
		o.Nodes = append(o.Nodes, fmt.Sprintf("n%d", i))
	}
	for i := range nodes {
		for j := range nodes {
			if i == j {
				continue
			}
			p := pairs.Pair{Client: o.Nodes[i], Server: o.Nodes[j]}
			for b := range builds {
				p.Builds = append(p.Builds, pairs.Value{Build: b, Bursts: 10, Value: 20_000 * adds(i, j) * math.Exp(noise*rng.NormFloat64())})
			}
			n.Pairs = append(n.Pairs, p)
		}
	}
	o.Networks = []pairs.Network{n}
	return o
}

// slow has one node add a factor to all of its pairs.
func slow(node int, factor float64) func(int, int) float64 {
	return func(client, server int) float64 {
		if client == node || server == node {
			return factor
		}
		return 1
	}
}

func odd(n insight.Network) (nodes, edges []string) {
	for _, x := range n.Nodes {
		if x.Odd {
			nodes = append(nodes, x.Node+" "+string(x.Verdict))
		}
	}
	for _, p := range n.Pairs {
		if p.Odd {
			edges = append(edges, p.Client+"-"+p.Server)
		}
	}
	return nodes, edges
}

func TestOddNodeIsFound(t *testing.T) {
	for _, c := range []struct {
		says   string
		nodes  int
		adds   func(int, int) float64
		odd    []string
		ratio  float64
		better string
	}{
		{"one of three", 3, slow(2, 1.5), []string{"n2 slower"}, 1.5, "lower"},
		{"one of four", 4, slow(1, 1.2), []string{"n1 slower"}, 1.2, "lower"},
		{"one of twelve", 12, slow(7, 1.3), []string{"n7 slower"}, 1.3, "lower"},
		{"a fast one", 6, slow(0, 0.7), []string{"n0 faster"}, 0.7, "lower"},
		{"less throughput", 6, slow(5, 0.5), []string{"n5 slower"}, 0.5, "higher"},
		{"nobody", 8, slow(-1, 1), nil, 1, "lower"},
		{"less than the margin", 8, slow(3, 1.03), nil, 1, "lower"},
	} {
		o := world(c.nodes, 6, 0.01, c.adds)
		o.Better = c.better
		n := insight.Judge(o, stats.Options{Margin: 0.05}).Judged[0]
		nodes, edges := odd(n)
		if fmt.Sprint(nodes) != fmt.Sprint(c.odd) || len(edges) > 0 {
			t.Errorf("%s: odd are %v and %v, want %v", c.says, nodes, edges, c.odd)
		}
		for _, x := range n.Nodes {
			if x.Odd && math.Abs(x.Ratio/c.ratio-1) > 0.03 {
				t.Errorf("%s: %s by %v, want %v", c.says, x.Node, x.Ratio, c.ratio)
			}
		}
		if _, err := json.Marshal(n); err != nil {
			t.Errorf("%s: %v", c.says, err)
		}
	}
}

// A pair that is slow by itself is no odd node, and is named.
func TestOddPairIsFound(t *testing.T) {
	o := world(6, 6, 0.01, func(client, server int) float64 {
		if client == 2 && server == 4 {
			return 2
		}
		return 1
	})
	nodes, edges := odd(insight.Judge(o, stats.Options{Margin: 0.05}).Judged[0])
	if len(nodes) > 0 || fmt.Sprint(edges) != "[n2-n4]" {
		t.Errorf("odd are %v and %v", nodes, edges)
	}
}

// Where it can't be known which node is odd, none is called odd.
func TestNobodyIsAccused(t *testing.T) {
	two := insight.Judge(world(2, 6, 0.01, slow(1, 2)), stats.Options{}).Judged[0]
	few := insight.Judge(world(5, 2, 0.01, slow(1, 2)), stats.Options{}).Judged[0]
	none := insight.Judge(pairs.Outcome{Nodes: []string{"a"}, Networks: []pairs.Network{{Network: "pod"}}}, stats.Options{}).Judged[0]
	for _, n := range []insight.Network{two, few, none} {
		if nodes, edges := odd(n); len(nodes)+len(edges) > 0 || n.Note == "" {
			t.Errorf("odd are %v and %v; it says %q", nodes, edges, n.Note)
		}
	}
}

// A node that is missing in one build, and a pair that is missing in all, do no harm.
func TestMissingPairs(t *testing.T) {
	o := world(5, 7, 0.01, slow(3, 1.4))
	kept := o.Networks[0].Pairs[:0]
	for _, p := range o.Networks[0].Pairs {
		if p.Client == "n0" && p.Server == "n1" {
			continue
		}
		if p.Client == "n4" || p.Server == "n4" {
			p.Builds = p.Builds[1:]
		}
		kept = append(kept, p)
	}
	o.Networks[0].Pairs = kept
	n := insight.Judge(o, stats.Options{Margin: 0.05}).Judged[0]
	if nodes, _ := odd(n); fmt.Sprint(nodes) != "[n3 slower]" {
		t.Errorf("odd are %v", nodes)
	}
	if _, err := json.Marshal(n); err != nil {
		t.Error(err)
	}
}

// What is additive is taken apart without a rest, whatever the diagonal.
func TestPolishOfSums(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 9).Draw(t, "nodes")
		side := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n)
		rows, columns := side.Draw(t, "rows"), side.Draw(t, "columns")
		m := make([][]float64, n)
		for i := range m {
			m[i] = make([]float64, n)
			for j := range m[i] {
				m[i][j] = 3 + rows[i] + columns[j]
				if i == j {
					m[i][j] = math.NaN()
				}
			}
		}
		f := insight.Polish(m)
		for i := range m {
			for j := range m[i] {
				whole := f.Overall + f.Rows[i] + f.Columns[j] + f.Residuals[i][j]
				if i != j && math.Abs(whole-m[i][j]) > 1e-6 {
					t.Fatalf("%d,%d is %v, want %v", i, j, whole, m[i][j])
				}
			}
		}
	})
}
