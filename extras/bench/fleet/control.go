package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
	"unsafe"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/experiment/fleet"
	"netdelta/experiment/record"
	"netdelta/internal/procfile"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

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
