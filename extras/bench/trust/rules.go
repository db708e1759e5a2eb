package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// widest is the half width that the interval may have: 1%.
const widest = 0.01

// search is what is to be found, and in what.
type search struct {
	rules, runs int
	budget      time.Duration // of a run
	margin      float64       // as a ratio less one
}

// foundShare is the share of runs in which a difference has to be found.
const foundShare = 0.95

// rulesFound compares a routed path with the same path behind some firewall rules, in runs with six other networks.
func rulesFound(ctx context.Context, w io.Writer, s search) error {
	networks := network.Catalogue()
	routed, err := network.Find(networks, "routed")
	if err != nil {
		return err
	}
	filtered := network.Filtered(routed, s.rules)
	fmt.Fprintf(w, "%d firewall rules on a routed path, along with six other networks, %d runs of %v:\n", s.rules, s.runs, s.budget)
	found := 0
	for i := range s.runs {
		record, err := measure(ctx, job{
			networks: append(networks, filtered), baseline: "routed",
			compare:    []string{filtered.Name, "host", "bridge", "bridge-nat", "macvlan", "vxlan", "vxlan-routed"},
			placements: []result.Placement{result.CrossNode}, budget: s.budget, seed: uint64(i + 1), margin: s.margin,
		})
		if err != nil {
			return err
		}
		d, err := s.judge(w, record, filtered.Name)
		if err != nil {
			return err
		}
		if stats.Verdict(d.Verdict) == stats.Slower {
			found++
		}
	}
	if share := float64(found) / float64(s.runs); share < foundShare {
		return fmt.Errorf("%d rules were found in %d of %d runs", s.rules, found, s.runs)
	}
	return nil
}

// judge prints the deltas of a run, and returns the one to be found. It returns an error if its interval is wider than it may be.
func (s search) judge(w io.Writer, record result.Run, name string) (result.Delta, error) {
	var found result.Delta
	for _, d := range record.Deltas {
		if !d.Headline {
			continue
		}
		fmt.Fprintf(w, "  %-17s %s %s in %d builds, %d rounds\n", d.Network, interval(d), d.Verdict, d.Blocks, d.Rounds)
		if d.Network == name {
			found = d
		}
	}
	switch {
	case found.RatioLow == nil:
		return found, fmt.Errorf("%s has no interval", name)
	case halfWidth(found) > widest:
		return found, fmt.Errorf("the interval of %s is +-%.2f%%, wider than +-%.0f%%", name, 100*halfWidth(found), 100*widest)
	}
	return found, nil
}

func halfWidth(d result.Delta) float64 { return math.Log(*d.RatioHigh / *d.RatioLow) / 2 }

// confidence of every interval here, as in a study that does not say otherwise.
const confidence = 0.95

// nothingFound runs host against host again and again. Each run looks at both placements, and may call a difference real
// with a probability of 5%.
func nothingFound(ctx context.Context, w io.Writer, runs int, budget time.Duration) error {
	fmt.Fprintf(w, "host against host, %d runs of %v, tcp-rr, on one node and across nodes:\n", runs, budget)
	wrong := 0
	for i := range runs {
		record, err := measure(ctx, job{
			networks: network.Catalogue(), baseline: "host", compare: []string{"host"},
			placements: []result.Placement{result.SameNode, result.CrossNode}, budget: budget, seed: uint64(i + 1),
		})
		if err != nil {
			return err
		}
		called := false
		fmt.Fprintf(w, "  run %2d:", i+1)
		for _, d := range record.Null {
			if !d.Headline {
				continue
			}
			verdict := stats.Verdict(d.Verdict)
			called = called || verdict == stats.Slower || verdict == stats.Faster
			fmt.Fprintf(w, "  %s %s %s in %d builds;", d.Placement, interval(d), d.Verdict, d.Blocks)
		}
		fmt.Fprintln(w)
		if called {
			wrong++
		}
	}
	most := mayBeWrong(runs)
	fmt.Fprintf(w, "  %d of %d runs called a difference real; up to %d are no reason to doubt\n", wrong, runs, most)
	if wrong > most {
		return fmt.Errorf("host against host was called a difference in %d of %d runs", wrong, runs)
	}
	return nil
}

// mayBeWrong is the number of false calls in so many runs that honest verdicts exceed in less than one of a hundred
// attempts.
func mayBeWrong(runs int) int {
	b := distuv.Binomial{N: float64(runs), P: 1 - confidence}
	most := 0
	for b.CDF(float64(most)) < 0.99 {
		most++
	}
	return most
}
