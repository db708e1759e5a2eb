// Command lab measures how long the local lab takes to come up, to change its network under running pods, and to go down,
// and holds that against its targets.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/extras/bench/harness"
	"netdelta/internal/leak"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

func main() {
	times := flag.Int("times", 40, "repetitions of each measurement")
	seed := flag.Uint64("seed", 1, "seed of the order of networks")
	harness.Main("lab", func(ctx context.Context) error {
		if *times < 1 {
			return harness.UsageError("-times must be 1 or more")
		}
		b := &bench{driver: lab.NewDriver(network.Catalogue()), times: *times, random: rand.New(rand.NewPCG(*seed, 0)), out: os.Stdout}
		return b.run(ctx)
	})
}

// bench is one run of all measurements.
type bench struct {
	driver   *lab.Driver
	networks []string // those that this kernel supports
	times    int
	random   *rand.Rand
	out      io.Writer
	missed   bool
}

func (b *bench) run(ctx context.Context) error {
	for _, n := range network.Catalogue() {
		err := b.driver.Supports(ctx, testbed.Spec{Network: n.Name, Family: result.IPv4})
		if errors.Is(err, testbed.ErrUnsupported) {
			fmt.Fprintln(b.out, err)
			continue
		}
		if err != nil {
			return err
		}
		b.networks = append(b.networks, n.Name)
	}
	fmt.Fprintf(b.out, "%-52s %6s %10s %10s %10s  %s\n", "", "times", "median", "p90", "longest", "target for the median")
	for _, part := range []func(context.Context) error{b.upAndDown, b.swaps, b.sideBySide} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	if b.missed {
		return errors.New("a target was missed")
	}
	return nil
}

// print shows durations against a target.
func (b *bench) print(what string, took []time.Duration, target time.Duration) {
	slices.Sort(took)
	n := len(took)
	median := (took[(n-1)/2] + took[n/2]) / 2
	verdict := "met"
	if median >= target {
		verdict, b.missed = "MISSED", true
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/1e6) }
	fmt.Fprintf(b.out, "%-52s %6d %10s %10s %10s  < %s: %s\n", what, n, ms(median), ms(took[n*9/10]), ms(took[n-1]), target, verdict)
}

// pick draws a network at random.
func (b *bench) pick() string { return b.networks[b.random.IntN(len(b.networks))] }

// gonePatience is how long the kernel may take to free the namespaces of a closed lab.
const gonePatience = 30 * time.Second

// upAndDown opens and closes labs of 2 nodes with 2 pods each, and waits for the kernel to have freed a pod's namespace.
func (b *bench) upAndDown(ctx context.Context) error {
	var up, down, gone []time.Duration
	for range b.times {
		began := time.Now()
		l, err := b.driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: b.pick()})
		if err != nil {
			return err
		}
		up = append(up, time.Since(began))
		idle, err := l.Pods()[0].Start(ctx, testbed.Command{Path: "/bin/sleep", Args: []string{"600"}})
		if err != nil {
			return errors.Join(err, l.Close())
		}
		wire, err := leak.NewTripwire(idle.PID())
		if err != nil {
			return errors.Join(err, l.Close())
		}
		began = time.Now()
		if err := l.Close(); err != nil {
			return errors.Join(err, wire.Close())
		}
		down = append(down, time.Since(began))
		if err := errors.Join(wire.Wait(gonePatience), wire.Close()); err != nil {
			return err
		}
		gone = append(gone, time.Since(began))
	}
	b.print("lab up, 2 nodes x 2 pods", up, 500*time.Millisecond)
	b.print("lab down, with a process in it", down, 500*time.Millisecond)
	b.print("lab down, until the kernel has freed it", gone, 500*time.Millisecond)
	return nil
}

// swaps changes the network under 2 nodes with 2 pods each, in a random order.
func (b *bench) swaps(ctx context.Context) error {
	l, err := b.driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 2, Network: b.networks[0], PodsOutlive: true})
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 3 * b.times {
		began := time.Now()
		if err := l.Swap(ctx, b.pick()); err != nil {
			return errors.Join(err, l.Close())
		}
		took = append(took, time.Since(began))
	}
	b.print("live swap, 2 nodes x 2 pods", took, 100*time.Millisecond)
	return l.Close()
}

// sideBySide has eight networks up at once, each with 2 nodes of one pod.
func (b *bench) sideBySide(ctx context.Context) error {
	const together = 8
	var up, down []time.Duration
	for range max(1, b.times/4) {
		labs := make([]testbed.Testbed, together)
		var opening errgroup.Group
		began := time.Now()
		for i := range labs {
			opening.Go(func() error {
				l, err := b.driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: b.networks[i%len(b.networks)]})
				if err == nil {
					labs[i] = l
				}
				return err
			})
		}
		err := opening.Wait()
		up = append(up, time.Since(began))
		began = time.Now()
		for _, l := range labs {
			if l != nil {
				err = errors.Join(err, l.Close())
			}
		}
		down = append(down, time.Since(began))
		if err != nil {
			return err
		}
	}
	b.print("eight networks side by side up, 16 pods", up, time.Second)
	b.print("eight networks side by side down", down, time.Second)
	return nil
}
