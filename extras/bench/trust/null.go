package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

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
