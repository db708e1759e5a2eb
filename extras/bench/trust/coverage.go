package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// doses are how many firewall rules the copies of one routed path have; the first has no firewall at all, the second one without rules.
func doses() []int { return []int{-1, 0, 7, 30, 100} }

// coverage measures paths of known order again and again, side by side, and prints how often an interval holds what the other runs
// found in the middle, and how often a verdict says that there is something. The first path is the same as the baseline.
func coverage(ctx context.Context, w io.Writer, runs int, budget time.Duration) error {
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		return err
	}
	var names []string
	for _, rules := range doses() {
		copied := network.Filtered(routed, rules)
		if rules < 0 {
			copied = routed
			copied.Name += "-again"
		}
		networks, names = append(networks, copied), append(names, copied.Name)
	}
	found := map[string][]result.Delta{}
	for i := range runs {
		record, err := measure(ctx, job{
			networks: networks, baseline: "routed", compare: names, placements: []result.Placement{result.CrossNode}, budget: budget,
			seed: uint64(i + 1), margin: 0.005,
		})
		if err != nil {
			return err
		}
		for _, d := range record.Deltas {
			if d.Headline && d.RatioLow != nil && d.RatioHigh != nil {
				found[d.Network] = append(found[d.Network], d)
			}
		}
	}
	fmt.Fprintf(w, "firewall rules on a routed path, %d runs of %v, tcp-rr, across nodes:\n", runs, budget)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "rules\tmedian change\tmedian half width\tintervals that hold it\tslower\tsame\tunresolved\tfaster\t")
	for i, name := range names {
		r := summarise(found[name])
		label := strconv.Itoa(doses()[i])
		if doses()[i] < 0 {
			label = "no firewall"
		}
		fmt.Fprintf(table, "%s\t%+.2f%%\t%.2f%%\t%d of %d\t%d\t%d\t%d\t%d\t\n", label, 100*(r.middle-1), 100*r.half, r.held, len(found[name]),
			r.called[stats.Slower], r.called[stats.Same], r.called[stats.Unresolved], r.called[stats.Faster])
	}
	return table.Flush()
}

// summary is what many runs found of one path.
type summary struct {
	middle, half float64 // medians of the ratio and of the half width of its interval
	held         int     // intervals that hold the median of the other runs
	called       map[stats.Verdict]int
}

// summarise counts intervals and verdicts.
func summarise(all []result.Delta) summary {
	s := summary{called: map[stats.Verdict]int{}}
	var ratios, halves []float64
	for _, d := range all {
		ratios, halves = append(ratios, d.Ratio), append(halves, halfWidth(d))
	}
	s.middle, s.half = stats.Median(slices.Clone(ratios)), stats.Median(halves)
	for i, d := range all {
		others := stats.Median(slices.Delete(slices.Clone(ratios), i, i+1))
		if *d.RatioLow <= others && others <= *d.RatioHigh {
			s.held++
		}
		s.called[stats.Verdict(d.Verdict)]++
	}
	return s
}
