package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// widest is the half width that the interval may have: 1%.
const widest = 0.01

// rulesFound compares a routed path with the same path behind some firewall rules, in a run with six other networks.
func rulesFound(ctx context.Context, w io.Writer, rules int, budget time.Duration) error {
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		return err
	}
	filtered := network.Filtered(routed, rules)
	record, err := measure(ctx, job{
		networks: append(networks, filtered), baseline: "routed",
		compare:    []string{filtered.Name, "host", "bridge", "bridge-nat", "macvlan", "vxlan", "vxlan-routed"},
		placements: []result.Placement{result.CrossNode}, budget: budget, seed: 1, margin: 0.005,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d firewall rules on a routed path, along with six other networks, in %v:\n", rules, budget)
	var found *result.Delta
	for i, d := range record.Deltas {
		if !d.Headline {
			continue
		}
		fmt.Fprintf(w, "  %-17s %s %s in %d builds, %d rounds\n", d.Network, interval(d), d.Verdict, d.Blocks, d.Rounds)
		if d.Network == filtered.Name {
			found = &record.Deltas[i]
		}
	}
	switch {
	case found == nil || found.RatioLow == nil:
		return fmt.Errorf("%s has no interval", filtered.Name)
	case stats.Verdict(found.Verdict) != stats.Slower:
		return fmt.Errorf("%d rules were not found: %s", rules, found.Verdict)
	case halfWidth(*found) > widest:
		return fmt.Errorf("the interval of %s is +-%.2f%%, wider than +-%.0f%%", filtered.Name, 100*halfWidth(*found), 100*widest)
	}
	return nil
}

func halfWidth(d result.Delta) float64 { return math.Log(*d.RatioHigh / *d.RatioLow) / 2 }
