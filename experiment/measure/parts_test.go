package measure

import (
	"slices"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/probe/pressure"
	"netdelta/probe/stalls"
	"netdelta/result"
	"netdelta/workload"
)

func TestPlaceCPUs(t *testing.T) {
	for _, c := range []struct {
		placement string
		measuring []int
		pins      *result.Pins
		want      cpuPlacement
	}{
		{"", []int{3}, nil, cpuPlacement{3, 3}},
		{"same", []int{3, 2}, nil, cpuPlacement{3, 3}},
		{"two", []int{3, 2}, nil, cpuPlacement{client: 2, server: 3}},
		{"two", []int{0}, nil, cpuPlacement{0, 0}}, // a machine with one processor
		{"any", []int{3}, nil, cpuPlacement{-1, -1}},
		{"", nil, nil, cpuPlacement{-1, -1}}, // on other machines
		{"", nil, &result.Pins{Client: 5, Server: 0}, cpuPlacement{client: 5, server: 0}},
	} {
		if got := (&Context{Config: Config{Measuring: c.measuring, Pins: c.pins}}).placeCPUs(c.placement); got != c.want {
			t.Errorf("placement %q on %v: got %+v, want %+v", c.placement, c.measuring, got, c.want)
		}
	}
}

func TestPortsAreTheSameInEveryNetworkAndDoNotOverlap(t *testing.T) {
	var cells []result.Cell
	for _, network := range []string{"host", "bridge"} {
		for _, w := range []string{"one", "many"} {
			for _, p := range []result.Placement{result.SameNode, result.CrossNode} {
				cells = append(cells, result.Cell{Network: network, Workload: w, Placement: p})
			}
		}
	}
	workloads := []workload.Workload{
		{Name: "one", SourcePorts: func(result.Params) int { return 1 }},
		{Name: "many", SourcePorts: func(result.Params) int { return 500 }},
	}
	got := assignPorts(cells, workloads)
	if len(got) != 4 {
		t.Fatalf("%d settings have ports, want 4", len(got))
	}
	var servers []int
	taken := map[int]bool{}
	for s, p := range got {
		servers = append(servers, p.Server)
		uses := 1
		if s.Workload == "many" {
			uses = 500
		}
		for port := p.Client; port < p.Client+uses; port++ {
			if taken[port] || port < firstClientPort || port > lastClientPort {
				t.Fatalf("client port %d of %v is taken or out of range", port, s)
			}
			taken[port] = true
		}
	}
	workloads[1].SourcePorts = func(result.Params) int { return lastClientPort }
	for s, p := range assignPorts(cells, workloads) {
		if (p.Client == 0) != (s.Workload == "many") {
			t.Errorf("%v, of which many has more ports than there are, got %+v", s, p)
		}
	}
	slices.Sort(servers)
	if !slices.Equal(servers, []int{0, 1, 2, 3}) {
		t.Errorf("server ports %v", servers)
	}
}

func TestRecordKeepsColumnsEvenAndMarksEmptyBursts(t *testing.T) {
	s := &recorder{latencies: true}
	s.record(engine.Burst{P50: 10, Transactions: 5}, 0, time.Second, "")
	s.record(engine.Burst{}, 1, 2*time.Second, "") // nothing came back
	s.record(engine.Burst{P50: 12, Transactions: 5}, 2, 3*time.Second, pressure.ReasonPreempted)
	b := s.bursts
	for name, n := range map[string]int{
		"round": len(b.Round), "p50": len(b.P50), "min": len(b.Min), "split": len(b.Split), "disturbed": len(b.Disturbed), "lost": len(b.Lost),
	} {
		if n != 3 {
			t.Errorf("column %s has %d entries, want 3", name, n)
		}
	}
	if len(b.Throughput) != 0 {
		t.Error("a workload of round trips has a throughput column")
	}
	if want := []string{"", stalls.NothingArrived, pressure.ReasonPreempted}; !slices.Equal(b.Disturbed, want) {
		t.Errorf("disturbed: %q, want %q", b.Disturbed, want)
	}
}

func TestMarkRoundKeepsTheFirstReason(t *testing.T) {
	quiet, preempted, older := &recorder{}, &recorder{}, &recorder{}
	quiet.record(engine.Burst{}, 4, 0, "")
	preempted.record(engine.Burst{}, 4, 0, pressure.ReasonPreempted)
	older.record(engine.Burst{}, 3, 0, "")
	for _, s := range []*recorder{quiet, preempted, older, {}} {
		s.markRound(4, pressure.ReasonSteal)
	}
	for i, want := range []string{pressure.ReasonSteal, pressure.ReasonPreempted, ""} {
		if got := []*recorder{quiet, preempted, older}[i].bursts.Disturbed[0]; got != want {
			t.Errorf("session %d: %q, want %q", i, got, want)
		}
	}
	if !quiet.disturbed || older.disturbed {
		t.Error("the agent would keep the wrong burst")
	}
}

// A round measures the cells of a setting one after the other, and these in the random order that was drawn for the round.
func TestRoundsGoBySetting(t *testing.T) {
	cell := func(network, workload string) []*Session {
		return []*Session{{Cell: result.Cell{Network: network, Workload: workload}}}
	}
	all := [][]*Session{cell("host", "http"), cell("host", "tcp-crr"), cell("pod", "http"), cell("pod", "tcp-crr"), cell("vxlan", "http")}
	drawn := []int{3, 4, 0, 1, 2}
	if got, want := bySetting(drawn, all), []int{3, 1, 4, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("units in the order %v, want %v", got, want)
	}
	if !slices.Equal(drawn, []int{3, 4, 0, 1, 2}) {
		t.Error("the order that was drawn has changed")
	}
}
