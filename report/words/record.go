package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// Split puts a split in words: what is measured, and what is a difference of two measured figures.
func Split(s result.Split) string {
	text := fmt.Sprintf("%s = disk %s, %s in client, server and network %s, %s for %s",
		unit.Duration(s.Total), unit.Duration(s.Disk), unit.Duration(s.Common), s.Baseline, unit.Difference(s.Added), insight.Name(s.Network, s.Path))
	if s.AddedLow != nil && s.AddedHigh != nil {
		text += fmt.Sprintf(" [%s, %s]", unit.Difference(*s.AddedLow), unit.Difference(*s.AddedHigh))
	}
	if s.RoundTrip > 0 {
		text += "; a raw round trip is " + unit.Duration(s.RoundTrip) + " of it"
	}
	return text
}

// SplitParts says what the parts of splits are.
func SplitParts() string {
	return "The total and the disk, without a network, are measured; the rest are differences of what is measured. Only the last part depends on the network."
}

// Replication puts what a cluster says of its replication in words.
func Replication(r result.Replicated) string {
	text := fmt.Sprintf("replication %s (at most %s)", unit.Duration(r.Mean), unit.Duration(r.Max))
	if r.Rate > 0 {
		text += " at " + Value(Unit(result.Delta{Setting: r.Setting, Unit: unitPerSecond}), r.Rate)
	}
	return text
}

// Clients says of each cell that several clients did together how much each of them did: "vxlan, block, 2 client pods: w1 5012 IOPS, w4 4987 IOPS".
func Clients(all []result.SharedRate) []string {
	return gather.Each(all, func(r result.SharedRate) string {
		each := gather.Each(r.Clients, func(c result.ClientRate) string {
			return c.Node + " " + Value(Unit(result.Delta{Setting: r.Setting, Unit: unitPerSecond}), c.Rate)
		})
		return insight.Name(r.Network, r.Path) + ", " + Load(r.Setting) + ": " + strings.Join(each, ", ")
	})
}

// Raw names the figure with which a correlation compares an application.
func Raw(c result.Correlation) string {
	what := "round trip"
	if c.RawMetric != "p50" {
		what = "throughput"
	}
	return what + " of " + c.RawWorkload
}

// Correlation puts a correlation in words, and says where there are too few networks for it to mean much.
func Correlation(c result.Correlation) string {
	text := fmt.Sprintf("%s: %+.2f", goesWith(c), c.Pearson)
	few := c.PearsonLow == nil || c.PearsonHigh == nil
	if !few {
		text += fmt.Sprintf(" [%+.2f, %+.2f]", *c.PearsonLow, *c.PearsonHigh)
	}
	text += fmt.Sprintf(" of logarithms, %+.2f of ranks (p %.2g), over %d networks", c.Spearman, c.P, len(c.Points))
	const wide = 1 // half of all that there is
	switch {
	case few:
		text += "; too few for an interval: it takes four"
	case *c.PearsonHigh-*c.PearsonLow >= wide:
		text += "; they are few, and the interval is wide"
	}
	return text
}

// goesWith is the verdict on a correlation, such as "more with a shorter round trip".
func goesWith(c result.Correlation) string {
	sides := map[string]string{result.CorrelationRises: "more ", result.CorrelationFalls: "less "}
	if c.RawMetric == "p50" {
		sides = map[string]string{result.CorrelationRises: "a longer ", result.CorrelationFalls: "a shorter "}
	}
	side, known := sides[c.Verdict]
	if !known {
		return result.CorrelationOpen
	}
	what, _, _ := strings.Cut(Raw(c), " of ")
	return "more with " + side + what
}

// service puts what a daemon used in words: "ceph-osd.1 212 MiB".
func service(s result.Service) string {
	text := s.Name
	if s.Memory > 0 {
		text += fmt.Sprintf(" %d MiB", (s.Memory+unit.MiB/2)/unit.MiB)
	}
	if s.Restarts > 0 {
		text += fmt.Sprintf(" (started again %s)", unit.Counted(s.Restarts, "time"))
	}
	return text
}

// Absent names the cells of an absence: by their networks where these are unsupported, else by their number.
func Absent(a insight.Absence) string {
	if a.Conditions {
		return unit.Counted(a.Cells, "cell") + " of " + List(a.Networks)
	}
	if a.Unsupported {
		return strings.Join(a.Networks, ", ")
	}
	return unit.Counted(a.Cells, "cell")
}

// LeftOut says how many bursts and trials enter no delta, and why: "" where none was left out.
func LeftOut(a *result.Account) string {
	if a == nil {
		return ""
	}
	var all []string
	for _, part := range []struct {
		lost map[string]int
		of   int
		what string
	}{{a.LostBursts, a.Bursts, "burst"}, {a.LostTrials, a.Trials, "trial"}} {
		if n := gather.Sum(part.lost); n > 0 {
			all = append(all, fmt.Sprintf("%s of %s: %s", unit.Counted(n, part.what), unit.Thousands(part.of), strings.Join(counts(part.lost, "%s %d"), ", ")))
		}
	}
	return strings.Join(all, "; ")
}

// Services lists the daemons of a run with what they took at most, "" where there are none.
func Services(all []result.Service) string {
	parts := gather.Each(all, service)
	return strings.Join(parts, ", ")
}

// ExactComparison says how well instructions explain the order that time gives.
func ExactComparison(b result.ExactComparison) string {
	if b.Correlation == nil {
		return "Too few networks are in both runs for a rank correlation."
	}
	settings := fmt.Sprintf("over %d settings", len(b.Settings))
	if len(b.Settings) == 1 {
		settings = "in the one setting of both"
	}
	how := "orders the networks much as time does"
	switch rho := *b.Correlation; {
	case rho < 0.5:
		how = "does not explain the order that time gives: what it leaves out decides here"
	case rho < 0.8:
		how = "explains a part of the order that time gives"
	}
	return fmt.Sprintf("The rank correlation (Spearman) is %.2f, the median %s: the length of the kernel's path %s.", *b.Correlation, settings, how)
}

// ExactRows are the networks of a setting that both runs have: name, change and place by time, change and place by instructions, and
// the instructions that a request and its response take more than the baseline's.
func ExactRows(s result.ExactSetting) [][]string {
	place := func(rank float64) string { return strconv.FormatFloat(rank, 'f', -1, 64) } // several networks may share one
	var rows [][]string
	for _, n := range s.Networks {
		rows = append(rows, []string{
			n.Network, Percent(n.Native), place(n.NativeRank), unit.Ratio(n.Exact).PercentTo(2), place(n.ExactRank),
			fmt.Sprintf("%+.0f", n.Request), fmt.Sprintf("%+.0f", n.Response),
		})
	}
	return rows
}

// ExactSays is what a run that counts instructions counts, and what not; "" for any other.
func ExactSays(run result.Run) string {
	if run.Exact == nil {
		return ""
	}
	e := run.Exact
	seeds := gather.Each(e.Seeds, func(s uint64) string { return fmt.Sprint(s) })
	return fmt.Sprintf("This run counts instructions: those that one emulated processor (%s, QEMU %s) carries out from a request to its response, in the kernel and in "+
		"the two programs. Each takes %g ns of the guest's clock, so times here are counts, and nothing the machine did meanwhile is in them: equal guests "+
		"give equal figures. What is not counted: caches and memory, branches that are guessed wrong, network cards and their offloads, and work that runs in parallel. "+
		"Intervals are ranges over seeds (%s), which decide where code and data lie in memory.", e.Processor, e.Emulator, e.PerInstruction, strings.Join(seeds, ", "))
}

// Change prints a ratio as a change in percent, without the sign for percent, with so many decimals as its interval bears.
func Change(ratio float64, d result.Delta) string {
	text := fmt.Sprintf("%+.*f", Decimals(ratio, d), 100*(ratio-1))
	if strings.Trim(text, "+-0.") == "" {
		return strings.TrimLeft(text, "+-")
	}
	return text
}

// Interval is a delta's interval: of its ratio in percent, or without a ratio of its difference in points.
func Interval(d result.Delta) string {
	if d.Ratio == 0 {
		return fmt.Sprintf("[%+.2f, %+.2f]", 100**d.DifferenceLow, 100**d.DifferenceHigh)
	}
	return "[" + Change(*d.RatioLow, d) + ", " + Change(*d.RatioHigh, d) + "]"
}

// Decimals are how many of a percentage a ratio of the delta is printed with, as its interval bears: none for what is twice as much
// or more, or not known to a tenth, two for a count of instructions that is known to a hundredth of a percent.
func Decimals(ratio float64, d result.Delta) int {
	known := d.RatioLow != nil && d.RatioHigh != nil
	large := math.Abs(ratio-1) >= 1
	counted := d.Rounds == d.Blocks // one round in each build, as only counts have
	switch {
	case known && counted && *d.RatioHigh-*d.RatioLow < 1e-3 && !large:
		return 2
	case large || known && *d.RatioHigh-*d.RatioLow > 0.2:
		return 0
	}
	return 1
}

// Proved says how many trials were proved to have gone the way that their networks say, and what some proofs lack; "" where nothing was
// measured.
func Proved(proofs []result.PathProof) string {
	proved, trials, weak := 0, 0, map[string]int{}
	for _, proof := range proofs {
		proved += proof.Proved
		trials += proof.Trials
		for _, w := range proof.Weak {
			weak[w] += proof.Trials
		}
	}
	if trials == 0 {
		return ""
	}
	text := fmt.Sprintf("%d of %d trials proved by the counters of every device", proved, trials)
	if len(weak) == 0 {
		return text + " and a sample of packets"
	}
	for _, w := range slices.Sorted(maps.Keys(weak)) {
		text += fmt.Sprintf("; weaker in %d: %s", weak[w], w)
	}
	return text
}

// BaselineValue prints what the baseline of some deltas of one metric measured. Where networks were measured in builds of their own,
// each with a baseline, it is a range, from the least to the most. There has to be one delta at least.
func BaselineValue(deltas []result.Delta) string {
	low, high := deltas[0], deltas[0]
	for _, d := range deltas {
		if d.BaselineValue < low.BaselineValue {
			low = d
		}
		if d.BaselineValue > high.BaselineValue {
			high = d
		}
	}
	from, to := Value(Unit(low), low.BaselineValue), Value(Unit(high), high.BaselineValue)
	if from == to {
		return from
	}
	return from + " to " + to
}

// Spread says how a cell's traffic was spread over the links of a bond.
type Spread struct {
	Network, Load, Bond string
	// Shares are what each link sent of the bond's bytes, "97% 3%", Used what that is of its rate, "" where links have no rate.
	Shares, Used string
}

// Spreads describes the links of each cell and bond.
func Spreads(links []result.LinkShare) []Spread {
	var all []Spread
	for _, own := range insight.By(links, func(l result.LinkShare) [2]string { return [2]string{l.Cell, l.Bond} }) {
		first := own[0]
		s := Spread{
			Network: first.Network, Load: Load(result.Setting{Workload: first.Workload, Params: first.Params}), Bond: first.Bond,
			Shares: percentages(own, func(l result.LinkShare) float64 { return l.Share }),
		}
		if slices.ContainsFunc(own, func(l result.LinkShare) bool { return l.Used > 0 }) {
			s.Used = percentages(own, func(l result.LinkShare) float64 { return l.Used })
		}
		all = append(all, s)
	}
	return all
}

func percentages(links []result.LinkShare, value func(result.LinkShare) float64) string {
	parts := gather.Each(links, func(l result.LinkShare) string { return fmt.Sprintf("%.0f%%", 100*value(l)) })
	return strings.Join(parts, " ")
}

// found is what the doctor found, and why it matters.
func found(f result.Finding) string {
	says := strings.TrimSuffix(f.Says, ".")
	if f.Why != "" {
		says += ": " + f.Why
	}
	return says
}

// Findings puts what the doctor found before a run in words.
func Findings(all []result.Finding) []string {
	var texts []string
	for _, f := range all {
		text := f.Topic + ": " + found(f)
		if f.Fix != "" {
			text += "; fix: " + f.Fix
		}
		texts = append(texts, text)
	}
	return texts
}
