package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"text/tabwriter"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// burst is what wrk takes at least; patience is how long anything may take.
const (
	burst    = time.Second
	patience = 30 * time.Second
)

func main() {
	pairs := flag.Int("pairs", 10, "bursts of a second of each of the two, for each setting")
	cpu := flag.Int("cpu", 1, "processor that both ends are pinned to")
	harness.Main("http", func(ctx context.Context) error { return run(ctx, *pairs, *cpu) })
}

// settings are what is asked for, one after another.
func settings() []result.Params {
	return []result.Params{
		{File: 600, Connections: 1},
		{File: 600, Connections: 8},
		{File: 600, Connections: 1, Reconnect: true},
		{File: 100_000, Connections: 1},
		{File: 10_000_000, Connections: 1},
	}
}

func run(ctx context.Context, pairs, cpu int) (err error) {
	tb, err := lab.NewDriver(network.Catalogue()).Open(ctx, testbed.Spec{
		Nodes: 2, PodsPerNode: 1, Network: "host", Link: testbed.Link{MTU: 1500},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tb.Close()) }()
	agents, err := harness.Start(ctx, tb.Pods()[0], tb.Pods()[1], nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agents.Close()) }()
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "netdelta / wrk, %d pairs of bursts\trequests/s\tmedian latency\tclient's CPU per request\tnetdelta\twrk\t\n", pairs)
	missed := 0
	for i, p := range settings() {
		s := ends{Pair: agents, tb: tb, cpu: cpu, port: uint16(i)}
		row, bad, err := s.compare(ctx, p, pairs)
		if err != nil {
			return err
		}
		if bad {
			missed++
		}
		_, _ = fmt.Fprintln(t, row)
	}
	_ = t.Flush() // an error on standard output has no one to go to
	if missed > 0 {
		return fmt.Errorf("netdelta gets less answered than wrk in %d settings", missed)
	}
	return nil
}

// ends are two pods, and where in them one setting is measured.
type ends struct {
	harness.Pair
	tb   testbed.Testbed
	cpu  int
	port uint16 // of the pod's, counted from its first
}

// open serves and dials, and returns the client's session.
func (e ends) open(ctx context.Context, p result.Params) (int, error) {
	first, _ := e.Server.Pod().Ports()
	port := first + e.port
	all := netip.IPv4Unspecified()
	if p.Engine == "" {
		// The other one shares the server.
		if _, err := e.Server.Serve(ctx, "http", p, netip.AddrPortFrom(all, port), e.cpu); err != nil {
			return 0, err
		}
	}
	to := e.tb.Endpoint(e.Client.Pod(), e.Server.Pod(), port)
	return e.Client.Dial(ctx, "http", p, netip.AddrPortFrom(all, 0), to, e.cpu)
}

// compare has both ask in turn, and says whether netdelta's own surely got less answered.
func (e ends) compare(ctx context.Context, p result.Params, pairs int) (row string, missed bool, err error) {
	var sessions [2]int
	for i, engine := range []string{"", "wrk"} {
		p.Engine = engine
		if sessions[i], err = e.open(ctx, p); err != nil {
			return "", false, err
		}
	}
	var rates, medians, costs, own, foreign []float64
	for n := range pairs {
		var both [2]engine.Burst
		for i := range both {
			which := (i + n) % 2
			both[which], err = e.Client.Burst(ctx, sessions[which], engine.BurstSpec{Duration: burst, Deadline: patience})
			if err != nil {
				return "", false, err
			}
		}
		a, b := both[0], both[1]
		rates = append(rates, math.Log(rate(a)/rate(b)))
		medians = append(medians, math.Log(a.P50/b.P50))
		costs = append(costs, math.Log(float64(a.CPU)/float64(a.Work)/(float64(b.CPU)/float64(b.Work))))
		own, foreign = append(own, rate(a)), append(foreign, rate(b))
	}
	form := "kept"
	if p.Reconnect {
		form = "new for each request"
	}
	_, _, high := stats.MeanInterval(rates, 0.95)
	return fmt.Sprintf("%v, %d connections, %s\t%s\t%s\t%s\t%.0f/s\t%.0f/s\t", p.File, p.Connections, form,
		ratio(rates), ratio(medians), ratio(costs), stats.Median(own), stats.Median(foreign)), high < 0, nil
}

func rate(b engine.Burst) float64 { return float64(b.Transactions) / b.Duration.Seconds() }

// ratio is the mean of logarithms of ratios with its 95% interval.
func ratio(logs []float64) string {
	mean, low, high := stats.MeanInterval(logs, 0.95)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", math.Exp(mean), math.Exp(low), math.Exp(high))
}
