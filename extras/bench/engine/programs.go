package main

import (
	"context"
	"fmt"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// contest is a workload whose load netdelta's own loop and another program make in turn.
type contest struct {
	name, workload string
	params         result.Params
	program        string // as result.Params.Engine names it
	figures        []figure
}

// figure is what is compared of bursts.
type figure struct {
	name, unit string
	of         func(engine.Burst) float64
	target     float64 // of netdelta's by the other program's; 0 for none
	atLeast    bool    // the target is a lower bound
}

// contests are all comparisons with other programs.
func contests(size int) []contest {
	median := figure{name: "p50", unit: "us", of: func(b engine.Burst) float64 { return b.P50 }}
	trip, throughput := median, figure{"throughput", "Gbit/s", func(b engine.Burst) float64 { return b.Throughput }, 1, true}
	trip.target = 1
	answered := []figure{
		{"requests/s", "k/s", func(b engine.Burst) float64 { return float64(b.Transactions) / b.Duration.Seconds() }, 1, true},
		median,
		{name: "client's CPU per request", unit: "us", of: func(b engine.Burst) float64 { return float64(b.CPU) / float64(b.Work) }},
	}
	var all []contest
	for _, name := range []string{"tcp-rr", "udp-rr"} {
		all = append(all, contest{name, name, result.Params{Message: unit.Bytes(size)}, "sockperf", []figure{trip}})
	}
	// Reno is the congestion control that every kernel lets any pod choose: the system's own may pace what one of the two sends.
	for _, flows := range []int{1, 4} {
		all = append(all, contest{fmt.Sprintf("tcp-stream of %d", flows), "tcp-stream", result.Params{Connections: flows, CongestionControl: "reno"}, "iperf3", []figure{throughput}})
	}
	for _, p := range []result.Params{
		{File: 600, Connections: 1}, {File: 600, Connections: 8}, {File: 600, Connections: 1, Reconnect: true},
		{File: 100_000, Connections: 1}, {File: 10_000_000, Connections: 1},
	} {
		name := fmt.Sprintf("http, %v on %d", p.File, p.Connections)
		if p.Reconnect {
			name += " new each time"
		}
		all = append(all, contest{name, "http", p, "wrk", answered})
	}
	return all
}

// lineName is the name of a comparison in the table.
func (c contest) lineName(f figure) string {
	return fmt.Sprintf("%s %s / %s", c.name, f.name, c.program)
}

// againstProgram compares bursts of a second. Nothing is compared where a program is missing.
func (e *ends) againstProgram(ctx context.Context, c contest, pairs int, s *sheet) error {
	theirs := c.params
	theirs.Engine = c.program
	needs := workload.Find(catalogue.Workloads(), c.workload).Demands(theirs)
	if missing, _, err := workload.Missing(needs.Programs); len(missing) > 0 || err != nil {
		return err
	}
	var sessions [2]int
	for i, p := range []result.Params{c.params, theirs} {
		var err error
		if sessions[i], err = e.connect(ctx, c.workload, p); err != nil {
			return err
		}
	}
	for n := range pairs {
		var bursts [2]engine.Burst
		for i := range bursts {
			which := (i + n) % 2
			var err error
			if bursts[which], err = e.burst(ctx, sessions[which], time.Second); err != nil {
				return err
			}
		}
		for _, f := range c.figures {
			s.add(c.lineName(f), f.of(bursts[0]), f.of(bursts[1]))
		}
	}
	return nil
}
