// Command trust holds netdelta's verdicts against what is known to be true, on the real lab of this machine: host networking
// against itself must come out as no difference, and ten firewall rules on a routed path, which cost a few percent, must be
// found.
//
// It prints what it found and exits with 1 when netdelta can't be trusted. It needs a machine that does nothing else.
package main

import (
	"context"
	"flag"
	"os"
	"time"

	"netdelta/extras/bench/harness"
)

func main() {
	runs := flag.Int("runs", 20, "short runs of host against host; 0 for none")
	each := flag.Duration("each", 8*time.Second, "time budget of each of them")
	rules := flag.Int("rules", 10, "firewall rules to find; 0 for none")
	times := flag.Int("times", 1, "runs in which to find them")
	margin := flag.Float64("margin", 0.5, "differences that don't matter to these runs, in percent")
	covered := flag.Int("coverage", 0, "runs of paths with 0 to 100 rules, whose intervals and verdicts are counted; 0 for none")
	budget := flag.Duration("budget", 15*time.Second, "time budget to find them in, and of each run of -coverage")
	harness.Main("trust", func(ctx context.Context) error {
		if *runs > 0 {
			if err := nothingFound(ctx, os.Stdout, *runs, *each); err != nil {
				return err
			}
		}
		if *rules > 0 {
			if err := rulesFound(ctx, os.Stdout, search{rules: *rules, runs: *times, budget: *budget, margin: *margin / 100}); err != nil {
				return err
			}
		}
		if *covered > 0 {
			return coverage(ctx, os.Stdout, *covered, *budget)
		}
		return nil
	})
}
