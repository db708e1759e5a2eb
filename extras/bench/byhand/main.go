// Command byhand holds what netdelta finds against what sockperf finds that is run by hand: in the same pods of labs, in the same
// minutes, in turn and in random order. For each network and regime it prints both ratios to host, with their intervals.
//
// The two need not agree to the percent: sockperf's round trips hold what it does itself between two clock readings, which makes
// every ratio smaller. What must agree is the order and the sign.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"netdelta/extras/bench/harness"
	"netdelta/network"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// baseline is what all networks are held against.
const baseline = "host"

// regime is where the two ends run.
type regime struct {
	name           string
	client, server int // processors
}

func main() {
	networks := flag.String("networks", "bridge,routed,vxlan", "networks to hold against host, with commas between")
	rounds := flag.Int("rounds", 6, "rounds: in each, both programs measure each network once in each regime, for a second")
	message := flag.Int("message", 300, "bytes of a message, at least 14")
	harness.Main("byhand", func(ctx context.Context) error {
		sockperf, err := exec.LookPath("sockperf")
		if err != nil {
			return fmt.Errorf("find sockperf: %w; install the package sockperf", err)
		}
		return run(ctx, append([]string{baseline}, strings.Split(*networks, ",")...), sockperf, *rounds, *message)
	})
}

// programs are what measures, in the order of the columns.
func programs() []string { return []string{"sockperf", "netdelta"} }

// key names a series of medians.
type key struct{ program, network, regime string }

// regimes are those in which both can be run.
func regimes() []regime { return []regime{{"saturated", 1, 1}, {"waking", 1, 0}} }

func run(ctx context.Context, networks []string, sockperf string, rounds, message int) error {
	medians, err := measured(ctx, networks, sockperf, rounds, message)
	if err == nil {
		write(networks[1:], medians)
	}
	return err
}

// measured are the logarithms of the medians of all turns, in the order of rounds.
func measured(ctx context.Context, networks []string, sockperf string, rounds, message int) (medians map[key][]float64, err error) {
	all := map[string]*ends{}
	defer func() {
		for _, e := range all {
			err = errors.Join(err, e.close())
		}
	}()
	driver := lab.NewDriver(network.Catalogue())
	for _, n := range networks {
		tb, err := driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: n, Link: testbed.Link{MTU: 1500}})
		if err != nil {
			return nil, err
		}
		all[n] = &ends{tb: tb, sockperf: sockperf, message: message, sessions: map[string]int{}}
		if err := all[n].open(ctx, regimes()); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
	}
	medians = map[key][]float64{}
	type turn struct {
		key
		regime regime
	}
	for range rounds {
		var turns []turn
		for _, r := range regimes() {
			for _, n := range networks {
				for _, p := range programs() {
					turns = append(turns, turn{key{p, n, r.name}, r})
				}
			}
		}
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			ns, err := all[t.network].measure(ctx, t.program, t.regime)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", t.program, t.network, err)
			}
			medians[t.key] = append(medians[t.key], math.Log(ns))
		}
	}
	return medians, nil
}

// write writes a line for each network and regime, of ratios that are paired within rounds.
func write(networks []string, medians map[key][]float64) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "network\tregime\tsockperf by hand\tnetdelta\tnetdelta's by sockperf's")
	for _, r := range regimes() {
		for _, n := range networks {
			var ratios [2][]float64
			for i, p := range programs() {
				base := medians[key{p, baseline, r.name}]
				for k, v := range medians[key{p, n, r.name}] {
					ratios[i] = append(ratios[i], v-base[k])
				}
			}
			var between []float64
			for k := range ratios[0] {
				between = append(between, ratios[1][k]-ratios[0][k])
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", n, r.name, ratio(ratios[0]), ratio(ratios[1]), ratio(between))
		}
	}
	_ = t.Flush() // an error on standard output has no one to go to
}

// ratio is the mean of logarithms of ratios with its 95% interval.
func ratio(logs []float64) string {
	mean, low, high := stats.MeanInterval(logs, 0.95)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", math.Exp(mean), math.Exp(low), math.Exp(high))
}

// length is how long a turn measures, patience how long it may take.
const (
	length   = time.Second
	patience = 30 * time.Second
)
