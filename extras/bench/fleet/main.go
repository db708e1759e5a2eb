package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"netdelta/extras/bench/harness"
)

func main() {
	sizes := flag.String("agents", "10,100,1000", "how many agents, one size after another")
	network := flag.String("network", "bridge", "network of the lab")
	few := flag.Int("few", 2, "bursts of the shorter of two runs of each size")
	many := flag.Int("many", 12, "bursts of the longer one")
	one := flag.Int("one", 0, "be the controller of one size and print its figures as JSON")
	bursts := flag.Int("volleys", 0, "with -one: bursts")
	bare := flag.Bool("bare", false, "do nothing, as the reference for starting")
	harness.Main("fleet", func(ctx context.Context) error {
		switch {
		case *bare:
			return nil
		case *one > 0:
			return control(ctx, *network, *one, *bursts)
		}
		return run(ctx, os.Stdout, *sizes, *network, *few, *many)
	})
}

// growth is how much more memory a controller may take after many bursts than after few: what the garbage collector happens to
// leave.
const growth = 1.25

func run(ctx context.Context, out io.Writer, sizes, network string, few, many int) error {
	if few < 1 || many <= few {
		return errors.New("-few must be 1 or more, and -many more than it")
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "agents\tready after\t/ idle processes\tcontroller %d bursts\t%d bursts\tratio\t/ keeping all\tCPU per burst and agent\tan agent's memory\tbegan late p50\tp99\tlast\tclocks +-\tlost\n", few, many)
	var grown []string
	for text := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-agents %q: it takes numbers with commas between them", text)
		}
		idle, err := startIdle(ctx, n)
		if err != nil {
			return err
		}
		short, err := child(ctx, network, n, few)
		if err != nil {
			return err
		}
		long, err := child(ctx, network, n, many)
		if err != nil {
			return err
		}
		ratio := float64(long.Peak) / float64(short.Peak)
		if ratio > growth {
			grown = append(grown, fmt.Sprintf("%d agents: %.2f", n, ratio))
		}
		cpu := (long.CPU - short.CPU) / time.Duration((many-few)*n)
		fmt.Fprintf(t, "%d\t%s\t%.1f\t%s\t%s\t%.2f\t%.4f\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n", n, seconds(long.Ready), float64(long.Ready)/float64(idle),
			mebi(short.Peak), mebi(long.Peak), ratio, float64(long.Peak)/float64(long.KeepAll), cpu.Round(time.Microsecond), mebi(long.Agent),
			ms(long.Late.P50), ms(long.Late.P99), ms(long.Late.Max), long.Clock.Round(time.Microsecond), long.Lost+short.Lost)
	}
	_ = t.Flush() // an error on standard output has no one to go to
	if len(grown) > 0 {
		return fmt.Errorf("the controller's memory grows with the number of bursts: %s", strings.Join(grown, "; "))
	}
	return nil
}

// child measures one size with a controller of its own, and watches the agents' memory from outside.
func child(ctx context.Context, network string, agents, bursts int) (figures, error) {
	self, err := os.Executable()
	if err != nil {
		return figures{}, err
	}
	cmd := exec.CommandContext(ctx, self, "-one", strconv.Itoa(agents), "-volleys", strconv.Itoa(bursts), "-network", network)
	cmd.Stderr = os.Stderr
	answer, err := cmd.StdoutPipe()
	if err != nil {
		return figures{}, err
	}
	if err := cmd.Start(); err != nil {
		return figures{}, err
	}
	watched := watch(cmd.Process.Pid)
	var f figures
	err = json.NewDecoder(answer).Decode(&f)
	f.Agent = watched()
	if ended := cmd.Wait(); ended != nil {
		err = ended
	}
	if err != nil {
		return f, fmt.Errorf("the controller of %d agents: %w", agents, err)
	}
	return f, nil
}

// startIdle says how long as many processes of this program take to start, 16 at a time, that end at once.
func startIdle(ctx context.Context, n int) (time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	places, failed := make(chan struct{}, atOnce), make(chan error, n)
	for range n {
		places <- struct{}{}
		go func() {
			failed <- exec.CommandContext(ctx, self, "-bare").Run()
			<-places
		}()
	}
	for range n {
		err = errors.Join(err, <-failed)
	}
	return time.Since(began), err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
func ms(ns float64) string           { return fmt.Sprintf("%.2f ms", ns/1e6) }
func mebi(bytes int64) string        { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }
