package experiment_test

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// twoProcessors skips a test where the workload can't have a processor of its own.
func twoProcessors(t *testing.T) {
	t.Helper()
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	require.Need(t, "two processors", len(cpus) > 1)
}

// Neighbours that compete for the processor show in how much a workload gets done, and bursts with neighbours count.
func TestBestEffortIsWorse(t *testing.T) {
	twoProcessors(t)
	s := small([]string{"host"}, result.CrossNode)
	s.Factors = study.Levels{"qos": {result.Guaranteed, result.BestEffort}}
	s.Design.Burst, s.Design.Rounds = 10*time.Millisecond, 30
	require.Need(t, "the right to raise priorities (root)", os.Geteuid() == 0)
	c := assembled(t, network.Catalogue(), s, 2, nil)
	c.Program = probetest.Ahead(c.Program) // other work would compete for the processor as neighbours do
	mustRun(t, c)
	done, took := map[string]int64{}, map[string]int64{}
	counted, all := 0, 0
	for _, tr := range journal(t, c) {
		if tr.Failed != "" {
			t.Fatalf("%s failed: %s", tr.ID(), tr.Failed)
		}
		qos := qosOf(t, c.Run.Cells, tr.Cell)
		for k, reason := range tr.Bursts.Disturbed {
			done[qos] += tr.Bursts.Transactions[k]
			took[qos] += tr.Bursts.Duration[k]
			if qos == result.BestEffort {
				all++
				if reason == "" {
					counted++
				}
			}
		}
	}
	rate := func(qos string) float64 { return float64(done[qos]) / float64(took[qos]) * 1e9 }
	t.Logf("%.0f transactions a second guaranteed, %.0f best-effort; %d of %d bursts count", rate(result.Guaranteed), rate(result.BestEffort), counted, all)
	if ratio := rate(result.BestEffort) / rate(result.Guaranteed); ratio > 0.85 {
		t.Errorf("best-effort gets %.2f times as much done as guaranteed, want clearly less", ratio)
	}
	if counted < all/2 {
		t.Errorf("only %d of %d bursts with neighbours count", counted, all)
	}
}

func qosOf(t *testing.T, cells []result.Cell, id string) string {
	t.Helper()
	i := slices.IndexFunc(cells, func(c result.Cell) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("no cell %s", id)
	}
	return cells[i].Params.Conditions.QoS
}

// Neighbours work in blocks too, and leave other cells alone: the processor time of the neighbour's agent grows only with its
// own cells.
func TestNeighboursInBlocks(t *testing.T) {
	twoProcessors(t)
	s := small([]string{"host", "bridge"}, result.CrossNode)
	s.Factors = study.Levels{"qos": {result.BestEffort}}
	s.Design.Blocks, s.Design.Rounds = 2, 8
	var without []string
	for range 3 { // what else runs on this machine may disturb any burst; neighbours of the run's own would disturb them in all runs
		c := assembled(t, network.Catalogue(), s, 2, nil)
		mustRun(t, c)
		without = nil
		for _, tr := range journal(t, c) {
			if tr.Failed != "" {
				t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
			}
			if !slices.Contains(tr.Bursts.Disturbed, "") {
				without = append(without, fmt.Sprintf("%s %q", tr.ID(), tr.Bursts.Disturbed))
			}
		}
		if len(without) == 0 {
			return
		}
	}
	t.Errorf("these have no burst that counts, nor others in two runs before: %q", without)
}

// A class of service is about the processor that a workload is pinned to: without one it is refused by name.
func TestQoSNeedsProcessor(t *testing.T) {
	require.Namespaces(t)
	s := small([]string{"host"}, result.CrossNode)
	s.Factors = study.Levels{"cpu": {"same", "any"}, "qos": {result.BestEffort}}
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), catalogue.Workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		if refused := c.Unsupported != ""; refused != (c.Params.CPU == "any") {
			t.Errorf("%s: %q", c.ID, c.Unsupported)
		}
	}
}
