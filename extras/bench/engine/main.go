package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"netdelta/extras/bench/harness"
	"netdelta/internal/clock"
)

// options are the command line.
type options struct {
	builds, rounds int
	burst          time.Duration
	cpu, size      int
}

func main() {
	var o options
	flag.IntVar(&o.builds, "builds", 4, "how often the namespaces and all programs are made anew")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds in each build; a round takes about six seconds")
	flag.DurationVar(&o.burst, "burst", 20*time.Millisecond, "length of a burst")
	flag.IntVar(&o.cpu, "cpu", 1, "processor that both ends of everything are pinned to")
	flag.IntVar(&o.size, "size", 64, "bytes of a request and of its response")
	harness.Main("engine", func(ctx context.Context) error { return run(ctx, o) })
}

func run(ctx context.Context, o options) error {
	c := clock.System()
	if err := leave(o.cpu); err != nil {
		return err
	}
	fmt.Printf("both ends on processor %d, %d-byte messages, %d builds of %d rounds, bursts of %v, clock %v, congestion control %s\n",
		o.cpu, o.size, o.builds, o.rounds, o.burst, &c, congestion)
	programs, err := prepare()
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(programs.folder) }()
	sheet := newSheet()
	for build := range o.builds {
		fmt.Fprintf(os.Stderr, "build %d of %d\n", build+1, o.builds)
		if err := measureBuild(ctx, o, programs, sheet); err != nil {
			return err
		}
	}
	recording(sheet)
	if missed := sheet.print(os.Stdout); missed > 0 {
		return fmt.Errorf("%d targets missed", missed)
	}
	return nil
}

// measureBuild makes a pair of namespaces and runs the rounds in it.
func measureBuild(ctx context.Context, o options, p *programs, s *sheet) (err error) {
	ends, err := newNamespaces()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ends.close()) }()
	for _, protocol := range []string{"tcp", "udp"} {
		if err := latencies(ctx, o, p, ends, protocol, s); err != nil {
			return fmt.Errorf("%s: %w", protocol, err)
		}
	}
	for _, flows := range []int{1, 4} {
		if err := streams(ctx, o, p, ends, flows, s); err != nil {
			return fmt.Errorf("%d streams: %w", flows, err)
		}
	}
	return nil
}
