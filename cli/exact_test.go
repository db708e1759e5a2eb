package cli_test

import (
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/session"
	"netdelta/internal/require"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/provider"
	"netdelta/workload/catalogue"
)

// guestPatience is how long a run in guests may take on a machine that is busy with other work.
const guestPatience = 30 * time.Minute

// exactStudy takes a guest a few seconds more than booting.
const exactStudy = `study: small
question: What do they cost?
baseline: host
networks: [host, routed]
placement: [cross-node]
workloads: [{tcp-rr: {message: 300}}, {tcp-stream: {message: 1000}}]
design: {burst: 2ms, builds: 6, time_budget: 60s}
claims:
  - {id: costs, says: routing costs something, expect: p50 of routed above host}
`

// guestImage is the guest that runs in the tests' virtual machines.
func guestImage(t *testing.T) image.Image {
	t.Helper()
	require.Guests(t)
	img, err := image.Build(t.Context(), image.Options{})
	require.Need(t, "a guest (netdelta vm build)", err == nil)
	return img
}

// longCommand is command with time enough for guests.
func longCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), guestPatience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Getenv(tested), args...)
	cmd.Dir = dir
	return cmd
}

// keepBusy has twice as many threads compute as there are processors, until the test stops it.
func keepBusy() (stop func()) {
	done := make(chan struct{})
	for range 2 * runtime.NumCPU() {
		go func() {
			for x := 1.0; ; x = math.Sqrt(x + 1) {
				select {
				case <-done:
					return
				default:
				}
			}
		}()
	}
	return func() { close(done) }
}

// lines returns the journal's lines of one build, in alphabetical order.
func lines(t *testing.T, dir, build string) []string {
	t.Helper()
	var all []string
	for line := range strings.Lines(read(t, filepath.Join(dir, result.TrialsFile))) {
		if strings.Contains(line, `"build":`+build+`,`) {
			all = append(all, line)
		}
	}
	slices.Sort(all)
	return all
}

// TestExactInGuest counts instructions in guests of three seeds. It counts again with the first seed while all processors are busy,
// which must give the same to the last byte, and once more with a firewall rule on the path of one network, which compare must find.
func TestExactInGuest(t *testing.T) {
	img := guestImage(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "small.yaml"), exactStudy)
	t.Cleanup(func() { nothingRuns(t) })

	first := finish(t, longCommand(t, dir, "run", "small.yaml", "--exact", "--out", "first")).want(t, statusDone)
	first.shows(t, "routed", "slower", "has no exact meaning", "confirmed")
	run, err := result.Load(filepath.Join(dir, "first"))
	if err != nil {
		t.Fatal(err)
	}
	if run.Testbed != "vm" || run.Exact == nil || len(run.Exact.Seeds) != 3 || run.Exact.PerInstruction != 2 || !strings.Contains(run.Environment.Virtual, "QEMU") {
		t.Errorf("testbed %q, exact %+v, virtual %q", run.Testbed, run.Exact, run.Environment.Virtual)
	}

	stop := keepBusy()
	finish(t, longCommand(t, dir, "run", "small.yaml", "--exact", "--builds", "1", "--out", "again")).want(t, statusDone)
	stop()
	before, after := lines(t, filepath.Join(dir, "first"), "0"), lines(t, filepath.Join(dir, "again"), "0")
	if len(before) != 3 || !slices.Equal(before, after) {
		t.Errorf("%d trials, and again %d, which are not the same:\n%s\n%s", len(before), len(after), strings.Join(before, ""), strings.Join(after, ""))
	}

	oneRuleMore(t, img, run, filepath.Join(dir, "ruled"))
	compared := call(t, dir, statusRegressed, "compare", "first", "ruled").shows(t, "routed", "regressed", "range over seeds")
	t.Log(compared.stdout)
	call(t, dir, statusUsage, "compare", "first", "first")
}

// oneRuleMore repeats a run with a rule in the firewall of the network routed.
func oneRuleMore(t *testing.T, img image.Image, run result.Run, dir string) {
	t.Helper()
	var cells []result.Cell
	for _, c := range run.Cells {
		if c.Unsupported == "" {
			cells = append(cells, c)
		}
	}
	folder, err := result.Create(dir, []byte(exactStudy))
	if err != nil {
		t.Fatal(err)
	}
	run.Run, run.Started = "ruled", time.Time{}
	counter := provider.NewCounter(img, os.Getenv(tested))
	_, err = guest.Seeds{
		Run: run, Folder: folder, Judge: words.NewJudge(catalogue.Workloads()), Parallel: 2, Progress: func(int, int) {},
		Job: guest.Job{
			ExactJob: experiment.ExactJob{
				Cells: cells, Warmup: 50, Transactions: 400, PerInstruction: counter.PerInstruction,
				Testbed: testbed.Spec{Nodes: 2, PodsPerNode: 2, Link: testbed.Link{MTU: 1500}},
			},
			Clock: counter.Clock, Filtered: map[string]int{"routed": 1},
		},
		Guest: session.InGuests(counter, testbed.GuestSpec{}),
	}.Count(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestExactFlags: what has no meaning where instructions are counted is refused before anything is built.
func TestExactFlags(t *testing.T) {
	dir := t.TempDir()
	for _, flags := range [][]string{
		{"--time-budget", "10s"}, {"--burst", "5ms"}, {"--rounds", "3"}, {"--blocks", "2"}, {"--testbed", "lab"}, {"--builds", "0"},
	} {
		call(t, dir, statusUsage, append([]string{"run", "--exact"}, flags...)...).says(t, flags[0])
	}
	write(t, filepath.Join(dir, "streams.yaml"), "study: s\nbaseline: host\nnetworks: [host, bridge]\nplacement: [cross-node]\nworkloads: [tcp-stream]\n")
	call(t, dir, statusNothing, "run", "streams.yaml", "--exact").says(t, "no exact meaning")
	if left := entries(t, dir); len(left) != 1 {
		t.Errorf("what was refused has left %v", left)
	}
}
