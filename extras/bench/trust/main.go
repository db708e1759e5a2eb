// Command trust holds netdelta's verdicts against what is known to be true, on the real lab of this machine: host networking
// against itself must come out as no difference, and ten firewall rules on a routed path, which cost a few percent, must be
// found.
//
// It prints what it found and exits with 1 when netdelta can't be trusted. It needs a machine that does nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"netdelta/agent"
	"netdelta/testbed/lab/udptun"
	"netdelta/workload/catalogue"
)

func main() {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	if udptun.Asked() {
		os.Exit(udptun.Become())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "trust:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, args []string) error {
	flags := flag.NewFlagSet("trust", flag.ContinueOnError)
	runs := flags.Int("runs", 20, "short runs of host against host; 0 for none")
	each := flags.Duration("each", 8*time.Second, "time budget of each of them")
	rules := flags.Int("rules", 10, "firewall rules to find; 0 for none")
	budget := flags.Duration("budget", 30*time.Second, "time budget to find them in")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *runs > 0 {
		if err := nothingFound(ctx, w, *runs, *each); err != nil {
			return err
		}
	}
	if *rules > 0 {
		return rulesFound(ctx, w, *rules, *budget)
	}
	return nil
}
