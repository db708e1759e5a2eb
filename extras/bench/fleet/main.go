// Command fleet measures what a controller of many agents takes: memory, processor time, time to start, and how far apart agents
// begin that are to begin together. All agents are real processes, in pods of a lab that they share; each size has a controller of
// its own. Each figure is printed with its ratio to a reference measured in the same run: starting as many processes that do
// nothing, and keeping every histogram in place of merging it. It fails when memory grows with the number of bursts.
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
	"sync"
	"text/tabwriter"
	"time"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/experiment/fleet"
	"netdelta/experiment/record"
	"netdelta/extras/bench/harness"
	"netdelta/internal/procfile"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

func main() {
	sizes := flag.String("agents", "10,100,1000", "how many agents, one size after another")
	network := flag.String("network", "bridge", "network of the lab")
	few := flag.Int("few", 2, "bursts of the shorter of two runs of each size")
	many := flag.Int("many", 12, "bursts of the longer one")
	one := flag.Int("one", 0, "be the controller of one size and print its figures as JSON")
	bursts := flag.Int("bursts", 0, "with -one: bursts")
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
	cmd := exec.CommandContext(ctx, self, "-one", strconv.Itoa(agents), "-bursts", strconv.Itoa(bursts), "-network", network)
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

// atOnce is how many agents are started at the same time.
const atOnce = 16

// burst is how long the clients fire each time.
const burst = 500 * time.Millisecond

// figures are what one controller took.
type figures struct {
	Ready   time.Duration   `json:"ready"`
	Peak    int64           `json:"peak"`     // most memory that was resident, bytes
	KeepAll int64           `json:"keep_all"` // what the histograms of all agents and bursts would take, bytes
	CPU     time.Duration   `json:"cpu"`
	Late    fleet.Quantiles `json:"late"`
	Clock   time.Duration   `json:"clock"`
	Lost    int             `json:"lost"`
	Agent   int64           `json:"-"` // an agent's own memory, bytes, as a mean
}

// control is the controller of one size: it prints its figures.
func control(ctx context.Context, name string, agents, bursts int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	driver := lab.NewDriver(network.Catalogue())
	config := fleet.Config{
		Load: record.Load{Program: agent.Program{Path: self}, Networks: []string{name}, Builds: 1, Burst: burst, Seed: 1, Log: func(line string) { fmt.Fprintln(os.Stderr, line) }},
		Open: fleet.In(driver, result.Params{}), Clients: agents, Servers: 1, Bursts: bursts, AtOnce: atOnce,
	}
	for _, w := range catalogue.Workloads() {
		if w.Name == "tcp-rr" {
			config.Workload, config.Params = w, w.Defaults
		}
	}
	rec, err := record.Conduct(ctx, config.Head(), nil, nil, config.Measure)
	if err != nil {
		return err
	}
	outcome, err := fleet.Of(rec.Run, rec.Trials)
	if err != nil {
		return err
	}
	n := outcome.Networks[0]
	for _, f := range n.Failures {
		fmt.Fprintln(os.Stderr, "lost:", f.Pod, f.Why)
	}
	if len(n.Builds) == 0 || n.Late == nil {
		return errors.New("nothing was measured")
	}
	counters := len(result.NewHistogram().Export().Counts)
	f := figures{
		Ready: n.Builds[0].Armed, Late: *n.Late, Clock: n.ClockError, Lost: n.Failed,
		KeepAll: int64(agents) * int64(bursts) * int64(counters) * int64(unsafe.Sizeof(int64(0))),
	}
	status, err := statusOf(os.Getpid())
	if err != nil {
		return err
	}
	f.Peak = int64(status.VmHWM)
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return err
	}
	f.CPU = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	return json.NewEncoder(os.Stdout).Encode(f)
}

// statusOf is what the kernel knows of a process's memory, among other things.
func statusOf(pid int) (procfs.ProcStatus, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return procfs.ProcStatus{}, err
	}
	return p.NewStatus()
}

// watch looks at the children of a process every two seconds until the function that it returns is called, which says how much
// memory of its own a child had at most, as a mean over the children.
func watch(parent int) func() int64 {
	done := make(chan struct{})
	var ended sync.WaitGroup
	most := int64(0)
	ended.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Second):
				most = max(most, ofChildren(parent))
			}
		}
	})
	return func() int64 {
		close(done)
		ended.Wait()
		return most
	}
}

// ofChildren is the mean of the children's own memory.
func ofChildren(parent int) int64 {
	sum, n := int64(0), int64(0)
	for _, pid := range procfile.Children(parent) {
		if status, err := statusOf(pid); err == nil {
			sum, n = sum+int64(status.RssAnon), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}
