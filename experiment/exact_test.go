package experiment_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload/catalogue"
)

// exactly is a configuration for this machine, where the clock counts no instructions but all else is as in a guest.
func exactly(t *testing.T, cells []result.Cell, networks []network.Network) experiment.ExactConfig {
	t.Helper()
	require.Namespaces(t)
	return experiment.ExactConfig{
		ExactJob: experiment.ExactJob{
			Cells: cells, Build: 3, Seed: 17, Warmup: 5, Transactions: 50, PerInstruction: 2,
			Testbed: testbed.Spec{Nodes: 2, PodsPerNode: 2, Link: testbed.Link{MTU: 1500}},
		},
		Settle: time.Millisecond, Driver: lab.NewDriver(networks), Workloads: catalogue.Workloads(), CPU: -1,
	}
}

func measureExact(t *testing.T, c experiment.ExactConfig) []result.Trial {
	t.Helper()
	var trials []result.Trial
	seen, err := experiment.MeasureExact(t.Context(), c, func(tr result.Trial) error {
		trials = append(trials, tr)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(seen.Links) == 0 || len(seen.Sysctls) == 0 {
		t.Error("nothing was seen of the testbeds")
	}
	return trials
}

// TestExactTrialsAreWhole: each cell has one trial, of TCP and UDP, on one node and across, with its path proved and its
// instructions parted.
func TestExactTrialsAreWhole(t *testing.T) {
	t.Parallel()
	s := small([]string{"host", "bridge", "vxlan"})
	s.Workloads[0].Name = "tcp-rr"
	s.Workloads = append(s.Workloads, s.Workloads[0])
	s.Workloads[1].Name = "udp-rr"
	cells := plan.Expand(s)
	trials := measureExact(t, exactly(t, cells, network.Catalogue()))
	if len(trials) != len(cells) {
		t.Fatalf("%d cells gave %d trials", len(cells), len(trials))
	}
	for _, c := range cells {
		i := slices.IndexFunc(trials, func(tr result.Trial) bool { return tr.Cell == c.ID })
		if i < 0 {
			t.Errorf("%s has no trial", c.ID)
			continue
		}
		tr := trials[i]
		if tr.Failed != "" || tr.Role != c.Role || tr.Build != 3 || tr.Transactions != 50 || tr.Bytes != 2*50*64 {
			t.Errorf("%s: %+v", c.ID, tr)
			continue
		}
		if tr.Path == nil || !tr.Path.OK {
			t.Errorf("%s: its path is not proved: %+v", c.ID, tr.Path)
		}
		e := tr.Exact
		if e.Seed != 17 || e.Request <= 0 || e.Response <= 0 || math.Abs(e.RoundTrip-tr.Bursts.P50[0]/2) > 1 {
			t.Errorf("%s: %+v with a p50 of %v ns", c.ID, *e, tr.Bursts.P50)
		}
	}
}

// TestExactFailuresAreNamed: what can't be built or has no exact meaning fails by itself, and the rest is measured.
func TestExactFailuresAreNamed(t *testing.T) {
	cells := []result.Cell{
		{ID: "a", Network: "host", Placement: result.CrossNode, Workload: "tcp-rr", Role: result.RoleBaseline},
		{ID: "b", Network: "no-such", Placement: result.CrossNode, Workload: "tcp-rr", Role: result.RoleCell},
		{ID: "c", Network: "host", Placement: result.CrossNode, Workload: "tcp-stream", Role: result.RoleBaseline},
	}
	failures := map[string]string{}
	for _, tr := range measureExact(t, exactly(t, cells, network.Catalogue())) {
		failures[tr.Cell] = tr.Failed
	}
	if failures["a"] != "" || !strings.Contains(failures["b"], "no-such") || !strings.Contains(failures["c"], "no exact meaning") {
		t.Errorf("%v", failures)
	}
}

// TestExactEndsWithItsReader: when the trials are no longer read, measuring ends.
func TestExactEndsWithItsReader(t *testing.T) {
	full, calls := errors.New("the disk is full"), 0
	_, err := experiment.MeasureExact(t.Context(), exactly(t, plan.Expand(small([]string{"host", "bridge"})), network.Catalogue()), func(result.Trial) error {
		calls++
		return full
	})
	if !errors.Is(err, full) || calls != 1 {
		t.Errorf("%d trials were handed over; %v", calls, err)
	}
}
