// Command limits measures netdelta at its limits: planning a run of 9,900 cells, showing and reporting runs of a thousand builds and of
// ten thousand cells, the size of their pages, and how soon a browser has drawn them. It makes the runs itself, of random figures, and prints a
// table: each figure with its aim, and whether that is met. It exits with 1 where one is missed.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/extras/bench/harness"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/unit"
	"netdelta/workload/catalogue"
)

func main() {
	keep := flag.String("keep", "", "keep the runs in this folder, and take those that are there")
	harness.Main("limits", func(ctx context.Context) error { return measure(ctx, *keep) })
}

// figure is a line of the table: what was measured of a call, and the most that it may be, in the same unit. An aim of 0 is none.
type figure struct {
	of, what   string
	value, aim float64
	text       func(x float64) string
}

// missed says that the figure is beyond its aim.
func (f figure) missed() bool { return f.aim > 0 && f.value > f.aim }

func (f figure) print() {
	aim, verdict := "", ""
	switch {
	case f.missed():
		aim, verdict = f.text(f.aim), "MISSED"
	case f.aim > 0:
		aim, verdict = f.text(f.aim), "met"
	}
	fmt.Println(strings.TrimRight(fmt.Sprintf("%-30s %-15s %10s %10s  %s", f.of, f.what, f.text(f.value), aim, verdict), " "))
}

// How figures are printed.
func seconds(x float64) string   { return fmt.Sprintf("%.2f s", x) }
func megabytes(x float64) string { return fmt.Sprintf("%.2f MB", x/1e6) }
func number(x float64) string    { return fmt.Sprintf("%.0f", x) }

// aims are the most that the figures of a call may be; those that are 0 are not aimed at.
type aims struct{ time, memory, page, drawn float64 }

// sized is a call of a verb with a run of so many cells and builds.
type sized struct {
	verb          string
	cells, builds int
	aims          aims
}

// calls are those that are measured.
func calls() []sized {
	return []sized{
		{"show", 10, 1000, aims{time: 2}},
		{"report", 10, 1000, aims{time: 2}},
		{"show", 10_000, 6, aims{time: 4, memory: 300e6}},
		{"report", 10_000, 6, aims{page: 5e6, drawn: 1}},
	}
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
	missed := 0
	show := func(figures []figure) {
		for _, f := range figures {
			if f.print(); f.missed() {
				missed++
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil { // on a busy machine times by the clock say little
		fmt.Printf("load averages before: %s", load)
	}
	fmt.Printf("%-30s %-15s %10s %10s\n", "of", "what", "measured", "at most")
	planned, err := planning(ctx)
	if err != nil {
		return err
	}
	show(planned)
	for _, c := range calls() {
		folder := filepath.Join(dir, fmt.Sprintf("%d-%d", c.cells, c.builds))
		if _, err := os.Stat(folder); err != nil {
			if err := write(folder, c.cells, c.builds); err != nil {
				return err
			}
		}
		figures, err := call(ctx, program, c.verb, folder, c.aims)
		if err != nil {
			return err
		}
		for i := range figures {
			figures[i].of = fmt.Sprintf("%s %d cells, %d builds", c.verb, c.cells, c.builds)
		}
		show(figures)
	}
	if missed > 0 {
		return fmt.Errorf("%d figures miss their aims", missed)
	}
	return nil
}

// planning plans a run of 9,900 cells.
func planning(ctx context.Context) ([]figure, error) {
	driver := lab.NewDriver(network.Catalogue())
	before := used(syscall.RUSAGE_SELF)
	p, err := experiment.Prepare(ctx, wide(), driver, catalogue.Workloads())
	var short *plan.BudgetError
	if err != nil && !errors.As(err, &short) {
		return nil, fmt.Errorf("plan: %w", err)
	}
	took := used(syscall.RUSAGE_SELF) - before
	return []figure{{fmt.Sprintf("plan %d cells", len(p.Cells)), "processors", took.Seconds(), 2, seconds}}, nil
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
func call(ctx context.Context, program, verb, folder string, a aims) ([]figure, error) {
	cmd := exec.CommandContext(ctx, program, verb, folder)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("netdelta %s %s: %w\n%s", verb, folder, err, complaint.String())
	}
	lasted := time.Since(began)
	figures := []figure{
		{what: "time", value: lasted.Seconds(), aim: a.time, text: seconds},
		{what: "processors", value: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), text: seconds},
	}
	if u, is := cmd.ProcessState.SysUsage().(*syscall.Rusage); is {
		figures = append(figures, figure{what: "memory", value: float64(u.Maxrss) * float64(unit.KiB), aim: a.memory, text: megabytes})
	}
	if verb != "report" {
		return append(figures, figure{what: "lines", value: float64(bytes.Count(out.Bytes(), []byte("\n"))), text: number}), nil
	}
	page, err := filepath.Abs(filepath.Join(folder, "report.html"))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(page)
	if err != nil {
		return nil, err
	}
	figures = append(figures, figure{what: "page", value: float64(info.Size()), aim: a.page, text: megabytes})
	switch took, err := draw(ctx, page); {
	case errors.Is(err, exec.ErrNotFound):
		fmt.Println("not drawn: there is no chromium")
	case err != nil:
		return nil, err
	default:
		figures = append(figures, figure{what: "drawn", value: took.Seconds(), aim: a.drawn, text: seconds})
	}
	return figures, nil
}

// wide is a study of 9,900 cells: eleven networks and the A/A control, in both placements, under many loads.
func wide() *study.Study {
	return wideOf([]string{"host", "bridge", "bridge-nat", "macvlan", "ipvlan-l2", "ipvlan-l3", "routed", "vxlan", "gre", "geneve"}, 450)
}

// wideOf is a study of networks under a number of loads.
func wideOf(networks []string, loads int) *study.Study {
	var messages []any
	for i := range loads {
		messages = append(messages, unit.Bytes(100+i))
	}
	return &study.Study{
		Name: "limits", Testbed: study.Testbed{Kind: "lab", Nodes: 2, Pods: 1, Link: study.Link{MTU: 1500}}, Baseline: networks[0], Networks: networks,
		Placement: []result.Placement{result.SameNode, result.CrossNode},
		Workloads: []study.Workload{{Name: "tcp-rr", Levels: study.Levels{"message": messages}}},
		Design: study.Design{
			Burst: study.DefaultBurst, Builds: study.DefaultBuilds, Confidence: study.DefaultConfidence, Margin: study.DefaultMargin,
			TimeBudget: time.Hour, Seed: 1,
		},
	}
}

const (
	bursts = 40 // of a trial: a line of the journal then has about 4 KB
	seed   = 7
)

// write makes a run folder of so many cells, which were measured in so many builds.
func write(folder string, cells, builds int) error {
	networks := []string{"host", "bridge", "macvlan", "vxlan"}
	run := result.Run{
		Schema: result.Schema, Run: "limits", Study: "limits", Testbed: "lab", Seed: seed, Confidence: study.DefaultConfidence, Margin: study.DefaultMargin,
		Ended: plan.EndedBuilds, Started: time.Unix(0, 0).UTC(), Finished: time.Unix(1e6, 0).UTC(),
		Cells: plan.Expand(wideOf(networks, cells/(2*(len(networks)+1)))),
	}
	f, err := result.Create(folder, []byte("study: limits\n"))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // what was written is on disk by then
	random := rand.New(rand.NewPCG(seed, seed))
	for build := range builds {
		for _, c := range run.Cells {
			t, err := trial(random, c, build, networks)
			if err == nil {
				err = f.Append(t)
			}
			if err != nil {
				return fmt.Errorf("make a run of %d cells and %d builds: %w", cells, builds, err)
			}
		}
	}
	return f.WriteResult(run)
}

// trial is what a cell could have measured in a build: each network costs a tenth more than the one before it.
func trial(random *rand.Rand, c result.Cell, build int, networks []string) (result.Trial, error) {
	typical := 20_000 * math.Exp(0.002*random.NormFloat64())
	for i, n := range networks {
		if n == c.Network {
			typical *= 1 + 0.1*float64(i)
		}
	}
	t := result.Trial{
		Schema: result.Schema, Cell: c.ID, Role: c.Role, Build: build, Started: time.Unix(int64(build), 0).UTC(), Finished: time.Unix(int64(build)+1, 0).UTC(),
		ClientCPU: 1, ServerCPU: 1,
	}
	h := result.NewHistogram()
	for round := range bursts {
		p50 := math.Round(typical * math.Exp(0.01*random.NormFloat64()))
		b := &t.Bursts
		b.Round, b.Start, b.Duration = append(b.Round, round), append(b.Start, int64(round)*350_000_000), append(b.Duration, 5_000_000)
		b.Transactions, b.P50, b.P90 = append(b.Transactions, 200), append(b.P50, p50), append(b.P90, 1.2*p50)
		b.P99, b.Mean = append(b.P99, 1.5*p50), append(b.Mean, 1.05*p50)
		b.Disturbed = append(b.Disturbed, "")
		for range 20 {
			if err := h.RecordValue(int64(p50 * (0.9 + 0.1*random.ExpFloat64()))); err != nil {
				return t, err
			}
		}
		t.Transactions += 200
	}
	var err error
	t.Histogram, err = result.EncodeHistogram(h)
	return t, err
}

// draw opens a page in a headless Chromium and says how soon it was drawn: the best of three times, since what else the machine does can
// only make it slower. Where there is no Chromium the error matches exec.ErrNotFound.
func draw(ctx context.Context, page string) (best time.Duration, err error) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		return 0, err
	}
	home, err := os.MkdirTemp("", "netdelta-limits-chromium-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(home)) }()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.UserDataDir(home), chromedp.Env("HOME="+home))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	defer stop() // waits for the process
	ctx, cancel := chromedp.NewContext(ctx)
	defer cancel()
	address := url.URL{Scheme: "file", Path: page}
	for range 3 {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(address.String())); err != nil {
			return 0, fmt.Errorf("open %s: %w", page, err)
		}
		// Two frames: the first may have begun before the page was whole. The clock started when the page was asked for.
		ms, err := chromedp.Run(ctx, chromedp.Evaluate[float64](
			`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))`, chromedp.EvalAwaitPromise))
		if err != nil {
			return 0, fmt.Errorf("draw %s: %w", page, err)
		}
		if took := time.Duration(ms * float64(time.Millisecond)); best == 0 || took < best {
			best = took
		}
	}
	return best, nil
}
