// Command limits measures netdelta at its limits: planning a run of 9,900 cells, showing and reporting runs of a thousand builds and of
// ten thousand cells, the size of their pages, and how soon a browser has drawn them. It makes the runs itself, of random figures, and prints a table.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/extras/bench/harness"
	"netdelta/network"
	"netdelta/testbed/lab"
	"netdelta/unit"
	"netdelta/workload/catalogue"
)

func main() {
	keep := flag.String("keep", "", "keep the runs in this folder, and take those that are there")
	harness.Main("limits", func(ctx context.Context) error { return measure(ctx, *keep) })
}

// row is a line of the table.
type row struct {
	what         string
	lasted, used time.Duration // by the clock, and of processors
	memory       unit.Bytes    // at most
	left         string        // what came of it
}

func measure(ctx context.Context, keep string) (err error) {
	dir := keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "netdelta-limits-*"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	program := filepath.Join(dir, "netdelta")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, "netdelta/cmd/netdelta").CombinedOutput(); err != nil {
		return fmt.Errorf("build netdelta: %w\n%s", err, out)
	}
	planned, err := planning(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%-30s %8s %10s %10s  %s\n", "what", "time", "processors", "memory", "leaves")
	planned.print()
	for _, size := range []struct{ cells, builds int }{{10, 1000}, {10_000, 6}} {
		folder := filepath.Join(dir, fmt.Sprintf("%d-%d", size.cells, size.builds))
		if _, err := os.Stat(folder); err != nil {
			if err := write(folder, size.cells, size.builds); err != nil {
				return err
			}
		}
		for _, verb := range []string{"show", "report"} {
			r, err := call(ctx, program, verb, folder)
			if err != nil {
				return err
			}
			r.what = fmt.Sprintf("%s %d cells, %d builds", verb, size.cells, size.builds)
			r.print()
		}
	}
	return nil
}

func (r row) print() {
	fmt.Printf("%-30s %7.1fs %9.1fs %10v  %s\n", r.what, r.lasted.Seconds(), r.used.Seconds(), r.memory, r.left)
}

// planning plans a run of 9,900 cells.
func planning(ctx context.Context) (row, error) {
	driver := lab.NewDriver(network.Catalogue())
	before, began := used(syscall.RUSAGE_SELF), time.Now()
	p, err := experiment.Prepare(ctx, wide(), driver, catalogue.Workloads())
	var short *plan.BudgetError
	if err != nil && !errors.As(err, &short) {
		return row{}, fmt.Errorf("plan: %w", err)
	}
	left := fmt.Sprintf("%d cells, %d of them to measure", len(p.Cells), len(plan.Measured(p.Cells)))
	return row{"plan", time.Since(began), used(syscall.RUSAGE_SELF) - before, 0, left}, nil
}

// used is the time of processors.
func used(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// call has netdelta show or report a run.
func call(ctx context.Context, program, verb, folder string) (row, error) {
	cmd := exec.CommandContext(ctx, program, verb, folder)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return row{}, fmt.Errorf("netdelta %s %s: %w\n%s", verb, folder, err, complaint.String())
	}
	r := row{lasted: time.Since(began), used: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if u, is := cmd.ProcessState.SysUsage().(*syscall.Rusage); is {
		r.memory = unit.Bytes(u.Maxrss) * unit.KiB
	}
	r.left = fmt.Sprintf("%d lines", bytes.Count(out.Bytes(), []byte("\n")))
	if verb == "report" {
		page, err := filepath.Abs(filepath.Join(folder, "report.html"))
		if err != nil {
			return row{}, err
		}
		info, err := os.Stat(page)
		if err != nil {
			return row{}, err
		}
		r.left = fmt.Sprintf("page of %v", unit.Bytes(info.Size()))
		switch took, err := draw(ctx, page); {
		case errors.Is(err, exec.ErrNotFound):
			r.left += ", not drawn: there is no chromium"
		case err != nil:
			return row{}, err
		default:
			r.left += fmt.Sprintf(", drawn within %.2f s", took.Seconds())
		}
	}
	return r, nil
}
