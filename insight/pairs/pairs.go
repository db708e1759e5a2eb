// Package pairs finds the odd node among many: it takes what was measured between all pairs of nodes apart into what each node
// adds as client and as server, and asks which node, or which pair, stands out from the others.
package pairs

import (
	"math"
	"slices"

	"netdelta/experiment/pairs"
	"netdelta/internal/gather"
	"netdelta/stats"
)

// Report is an outcome with its conclusions.
type Report struct {
	pairs.Outcome
	Judged []Network `json:"judged"`
}

// Builds is how many builds a pair was measured in at most.
func (r Report) Builds() int {
	most := 0
	for _, n := range r.Judged {
		for _, p := range n.Pairs {
			most = max(most, p.Builds)
		}
	}
	return most
}

// Network is what was concluded of one network's pairs.
type Network struct {
	Network string `json:"network"`
	// Typical is the value of a pair without anything odd, in the outcome's unit.
	Typical float64 `json:"typical"`
	// Nodes are in the outcome's order.
	Nodes []Node `json:"nodes"`
	// Pairs are as measured, with what the two nodes do not explain.
	Pairs []Pair `json:"pairs"`
	// Note says why no node is called odd where that could not be decided.
	Note string `json:"note,omitempty"`
}

// Node is what a node adds to the pairs that it is in, as ratios to the median of all nodes.
type Node struct {
	Node     string  `json:"node"`
	AsClient float64 `json:"as_client"`
	AsServer float64 `json:"as_server"`
	// Ratio is the mean of both, with its interval over the builds; null with too few of them.
	Ratio     float64       `json:"ratio"`
	RatioLow  *float64      `json:"ratio_low"`
	RatioHigh *float64      `json:"ratio_high"`
	PAdjusted float64       `json:"p_adjusted"`
	Verdict   stats.Verdict `json:"verdict"`
	// Odd says that the node is slower or faster than the others, beyond what they differ by among themselves.
	Odd bool `json:"odd"`
}

// Pair is a pair's value, with its interval over the builds, and its ratio to what its nodes explain.
type Pair struct {
	Client string   `json:"client"`
	Server string   `json:"server"`
	Value  float64  `json:"value"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	Builds int      `json:"builds"`
	Ratio  float64  `json:"ratio"`
	Odd    bool     `json:"odd"`
}

// What is called odd: beyond so many times the usual spread (of nodes, or of residuals), and by the margin of the options.
const (
	spreads = 4.0
	// It can't be known which of two nodes is odd, nor which pair where three nodes leave one degree of freedom.
	nodesLeast, pairsLeast = 3, 5
)

// Judge finds what is odd in each network.
func Judge(o pairs.Outcome, options stats.Options) Report {
	r := Report{Outcome: o}
	for _, n := range o.Networks {
		r.Judged = append(r.Judged, judge(o, n, options))
	}
	return r
}

func judge(o pairs.Outcome, n pairs.Network, options stats.Options) Network {
	out := Network{Network: n.Network, Nodes: []Node{}, Pairs: []Pair{}}
	fits := fitsOf(o.Nodes, n)
	if len(fits) == 0 {
		out.Note = "nothing was measured"
		return out
	}
	overall := gather.Each(fits, func(f Fit) float64 { return f.Overall })
	out.Typical = math.Exp(stats.Mean(overall))
	out.judgeNodes(o, fits, options)
	out.judgePairs(o, n, fits, options)
	switch {
	case len(o.Nodes) < nodesLeast:
		out.Note = "two nodes: which of them is odd can't be told; it takes three"
	case len(fits) < leastBuilds(options):
		out.Note = "too few builds to call a node odd"
	}
	return out
}

func leastBuilds(o stats.Options) int {
	if o.MinBuilds >= 2 {
		return o.MinBuilds
	}
	return stats.DefaultMinBuilds
}

// fitsOf fits the matrix of each build, of logarithms.
func fitsOf(nodes []string, n pairs.Network) []Fit {
	matrices := map[int][][]float64{}
	for _, p := range n.Pairs {
		i, j := slices.Index(nodes, p.Client), slices.Index(nodes, p.Server)
		for _, v := range p.Builds {
			if matrices[v.Build] == nil {
				matrices[v.Build] = blank(len(nodes))
			}
			matrices[v.Build][i][j] = math.Log(v.Value)
		}
	}
	var builds []int
	for b := range matrices {
		builds = append(builds, b)
	}
	slices.Sort(builds)
	return gather.Each(builds, func(b int) Fit { return Polish(matrices[b]) })
}

// blank is a matrix without entries.
func blank(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
		for j := range m[i] {
			m[i][j] = math.NaN()
		}
	}
	return m
}

// judgeNodes says what each node adds, and whether it is odd.
func (out *Network) judgeNodes(o pairs.Outcome, fits []Fit, options stats.Options) {
	var estimates []stats.Estimate
	var family []float64
	for i, node := range o.Nodes {
		var client, server []float64
		var builds []stats.Build
		for _, f := range fits {
			row, column := f.Rows[i], f.Columns[i]
			if math.IsNaN(row) || math.IsNaN(column) {
				builds = append(builds, stats.Build{}) // each build has its place
				continue
			}
			client, server = append(client, row), append(server, column)
			builds = append(builds, stats.Build{Deltas: []float64{(row + column) / 2}})
		}
		if len(client) == 0 {
			continue
		}
		e := stats.Compare(builds, options)
		n := Node{Node: node, AsClient: math.Exp(stats.Mean(client)), AsServer: math.Exp(stats.Mean(server)), Ratio: math.Exp(e.Center)}
		n.RatioLow, n.RatioHigh = bounds(e)
		out.Nodes, estimates, family = append(out.Nodes, n), append(estimates, e), append(family, e.P)
	}
	centers := gather.Each(estimates, func(e stats.Estimate) float64 { return e.Center })
	// A node is held against the others, however much these differ among themselves.
	floor := spreads * stats.MAD(centers)
	for i, p := range stats.Holm(family) {
		n := &out.Nodes[i]
		n.PAdjusted = certain(p)
		n.Verdict = stats.Judge(estimates[i], p, floor, stats.Better(o.Better), options)
		n.Odd = len(out.Nodes) >= nodesLeast && (n.Verdict == stats.Slower || n.Verdict == stats.Faster)
	}
}

// judgePairs says what each pair measured, and whether it is odd, given its nodes.
func (out *Network) judgePairs(o pairs.Outcome, n pairs.Network, fits []Fit, options stats.Options) {
	var residuals []stats.Estimate
	var centers, family []float64
	for _, p := range n.Pairs {
		var values, rest []stats.Build
		i, j := slices.Index(o.Nodes, p.Client), slices.Index(o.Nodes, p.Server)
		for _, v := range p.Builds {
			values = append(values, stats.Build{Deltas: []float64{math.Log(v.Value)}})
		}
		for _, f := range fits {
			b := stats.Build{}
			if !math.IsNaN(f.Residuals[i][j]) {
				b.Deltas = []float64{f.Residuals[i][j]}
			}
			rest = append(rest, b)
		}
		e, r := stats.Compare(values, options), stats.Compare(rest, options)
		pair := Pair{Client: p.Client, Server: p.Server, Value: math.Exp(e.Center), Builds: e.Builds, Ratio: math.Exp(r.Center)}
		pair.Low, pair.High = bounds(e)
		out.Pairs, residuals = append(out.Pairs, pair), append(residuals, r)
		centers, family = append(centers, r.Center), append(family, r.P)
	}
	floor := spreads * stats.MAD(centers)
	for i, p := range stats.Holm(family) {
		verdict := stats.Judge(residuals[i], p, floor, stats.Better(o.Better), options)
		out.Pairs[i].Odd = len(o.Nodes) >= pairsLeast && (verdict == stats.Slower || verdict == stats.Faster)
	}
}

// certain is a p value; 1 where there is none.
func certain(p float64) float64 {
	if math.IsNaN(p) {
		return 1
	}
	return p
}

// bounds of an estimate as ratios, nil without an interval.
func bounds(e stats.Estimate) (low, high *float64) {
	if !e.HasInterval {
		return nil, nil
	}
	l, h := math.Exp(e.Low), math.Exp(e.High)
	return &l, &h
}

// Fit is a matrix taken apart into what its rows and its columns add: value = Overall + Rows[i] + Columns[j] + Residuals[i][j].
type Fit struct {
	Overall       float64
	Rows, Columns []float64
	Residuals     [][]float64
}

// polishMost and polishEnough end the polishing: it converges fast, and not always to a point.
const (
	polishMost   = 100
	polishEnough = 1e-9
)

// Polish fits a square matrix by Tukey's median polish, so that a few odd entries stay in the residuals and don't move the rest.
// Entries that are NaN, as on the diagonal, are not there. Rows and columns each have a median of 0; one without any entry is NaN.
func Polish(m [][]float64) Fit {
	n := len(m)
	f := Fit{Rows: make([]float64, n), Columns: make([]float64, n), Residuals: make([][]float64, n)}
	for i, row := range m {
		f.Residuals[i] = append([]float64(nil), row...)
	}
	for range polishMost {
		moved := 0.0
		for i := range n {
			by := medianOf(n, func(j int) float64 { return f.Residuals[i][j] })
			f.Rows[i] += by
			for j := range n {
				f.Residuals[i][j] -= by
			}
			moved = max(moved, math.Abs(by))
		}
		for j := range n {
			by := medianOf(n, func(i int) float64 { return f.Residuals[i][j] })
			f.Columns[j] += by
			for i := range n {
				f.Residuals[i][j] -= by
			}
			moved = max(moved, math.Abs(by))
		}
		if moved < polishEnough {
			break
		}
	}
	for _, side := range [][]float64{f.Rows, f.Columns} {
		by := medianOf(n, func(i int) float64 { return side[i] })
		f.Overall += by
		for i := range side {
			side[i] -= by
		}
	}
	for i := range n {
		if empty(n, func(j int) float64 { return m[i][j] }) {
			f.Rows[i] = math.NaN()
		}
		if empty(n, func(j int) float64 { return m[j][i] }) {
			f.Columns[i] = math.NaN()
		}
	}
	return f
}

// medianOf is the median of n values without those that are NaN; 0 if all are.
func medianOf(n int, value func(int) float64) float64 {
	all := make([]float64, 0, n)
	for i := range n {
		if v := value(i); !math.IsNaN(v) {
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return stats.Median(all)
}

// empty says whether none of n values is a number.
func empty(n int, value func(int) float64) bool {
	for i := range n {
		if !math.IsNaN(value(i)) {
			return false
		}
	}
	return true
}
