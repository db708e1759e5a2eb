// Command builds finds out why two builds of one network differ. Several labs of the same network stand side by side and are
// measured in rounds; between two measurements one part of each lab is made anew: its connections, the ports of its
// connections, its agents, or its network. How much the labs' differences among each other change tells how much of them
// hangs on that part.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

func main() {
	network := flag.String("network", "routed", "network to build again and again")
	labs := flag.Int("labs", 6, "labs side by side")
	rounds := flag.Int("rounds", 100, "rounds of bursts in each measurement")
	times := flag.Int("times", 6, "how often each part is made anew")
	seed := flag.Uint64("seed", 1, "seed of all random orders")
	harness.Main("builds", func(ctx context.Context) error {
		cpu, own, err := harness.Spare()
		if err != nil {
			return err
		}
		s := &survey{rng: rand.New(rand.NewPCG(*seed, 0)), rounds: *rounds, cpu: cpu, agents: own}
		return s.run(ctx, os.Stdout, *network, *labs, *times)
	})
}

// change is a part of a lab that is made anew between two measurements.
type change struct {
	name string
	do   func(*labPair, context.Context) error
}

func changes() []change {
	return []change{
		{"nothing", func(*labPair, context.Context) error { return nil }},
		{"connections", (*labPair).reconnect},
		{"ports", (*labPair).otherPorts},
		{"agents", (*labPair).restartAgents},
		{"network", (*labPair).rebuildNetwork},
	}
}

func (s *survey) run(ctx context.Context, w io.Writer, name string, labs, times int) error {
	defer s.close()
	driver := lab.NewDriver(network.Catalogue())
	for range labs {
		if err := s.open(ctx, driver, name); err != nil {
			return err
		}
	}
	shifts, err := s.observe(ctx, times)
	if err != nil {
		return err
	}
	s.print(w, name, shifts)
	return nil
}

// observe measures, changes a part, measures again, in random order of the parts.
func (s *survey) observe(ctx context.Context, times int) (map[string][]float64, error) {
	var order []change
	for range times {
		order = append(order, changes()...)
	}
	s.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	shifts := map[string][]float64{}
	before, err := s.measure(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range order {
		for _, l := range s.labs {
			if err := c.do(l, ctx); err != nil {
				return nil, fmt.Errorf("making %s anew: %w", c.name, err)
			}
		}
		after, err := s.measure(ctx)
		if err != nil {
			return nil, err
		}
		for i := range after {
			shifts[c.name] = append(shifts[c.name], after[i]-before[i])
		}
		before = after
	}
	return shifts, nil
}

// measure gives each lab's mean log p50 against the mean over all labs of the same round.
func (s *survey) measure(ctx context.Context) ([]float64, error) {
	sums := make([][]float64, len(s.labs))
	for range s.rounds {
		logs := make([]float64, len(s.labs))
		for _, i := range s.rng.Perm(len(s.labs)) {
			b, err := s.labs[i].burst(ctx)
			if err != nil {
				return nil, err
			}
			logs[i] = math.Log(b.P50)
		}
		mean := stats.Mean(logs)
		for i, l := range logs {
			sums[i] = append(sums[i], l-mean)
		}
	}
	effects := gather.Each(sums, func(x []float64) float64 { return stats.TrimmedMean(x, 0.1) })
	return effects, nil
}

// print shows, for each part, the standard deviation between labs that hangs on it: half the variance of the shifts, less
// what shifts when nothing is made anew.
func (s *survey) print(w io.Writer, name string, shifts map[string][]float64) {
	half := func(x []float64) float64 {
		sum := 0.0
		for _, v := range x {
			sum += v * v
		}
		return sum / float64(2*len(x))
	}
	noise := half(shifts["nothing"])
	fmt.Fprintf(w, "network %s, %d labs, %d rounds of %v a measurement\n", name, len(s.labs), s.rounds, burstLength)
	for _, c := range changes() {
		v := half(shifts[c.name])
		fmt.Fprintf(w, "  %-12s made anew: labs shift by %.3f%% (sd); hangs on it: %.3f%%\n", c.name, 100*math.Sqrt(v), 100*math.Sqrt(max(0, v-noise)))
	}
}

// burstLength is the length of a burst in the studies.
const burstLength = 5 * time.Millisecond

// survey is the labs that are compared.
type survey struct {
	rng    *rand.Rand
	rounds int
	cpu    int   // that the workloads are pinned to
	agents []int // processors of the agents' own threads
	labs   []*labPair
}

// labPair is one lab with a client on one node and a server on the other.
type labPair struct {
	harness.Pair
	survey  *survey
	tb      testbed.Testbed
	session int // of the client
	service int // of the server
	port    uint16
}

// A pod's servers may listen from 20000 on; clients use ports below.
const (
	serverPort = 20000
	clientPort = 10000
)

func (s *survey) open(ctx context.Context, driver *lab.Driver, network string) error {
	tb, err := driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Link: testbed.Link{MTU: 1500}, Network: network, PodsOutlive: true})
	if err != nil {
		return err
	}
	l := &labPair{survey: s, tb: tb}
	s.labs = append(s.labs, l)
	return l.start(ctx)
}

func (s *survey) close() {
	for _, l := range s.labs {
		// The labs are going away: an agent that can't be closed in good order is killed with its lab.
		_ = errors.Join(l.Close(), l.tb.Close())
	}
}

// start starts the agents and connects them.
func (l *labPair) start(ctx context.Context) (err error) {
	if l.Pair, err = harness.Start(ctx, l.tb.Pods()[0], l.tb.Pods()[1], l.survey.agents); err != nil {
		return err
	}
	return l.connect(ctx)
}

func (l *labPair) connect(ctx context.Context) (err error) {
	all := netip.IPv4Unspecified()
	l.session, l.service, err = l.Connect(ctx, "tcp-rr", result.Params{Message: 64}, harness.Link{
		Listen: netip.AddrPortFrom(all, serverPort+l.port), From: netip.AddrPortFrom(all, clientPort+l.port),
		To: l.tb.Endpoint(l.tb.Pods()[0], l.tb.Pods()[1], serverPort+l.port),
	}, l.survey.cpu)
	return err
}

func (l *labPair) disconnect(ctx context.Context) error {
	return errors.Join(l.Client.Drop(ctx, l.session), l.Server.Drop(ctx, l.service))
}

func (l *labPair) reconnect(ctx context.Context) error {
	if err := l.disconnect(ctx); err != nil {
		return err
	}
	return l.connect(ctx)
}

func (l *labPair) otherPorts(ctx context.Context) error {
	if err := l.disconnect(ctx); err != nil {
		return err
	}
	l.port = uint16(l.survey.rng.IntN(900))
	return l.connect(ctx)
}

func (l *labPair) restartAgents(ctx context.Context) error {
	if err := l.Close(); err != nil {
		return err
	}
	return l.start(ctx)
}

// rebuildNetwork makes nodes, links and switch anew under the pods; agents and connections stay.
func (l *labPair) rebuildNetwork(ctx context.Context) error {
	return l.tb.Swap(ctx, l.tb.Spec().Network)
}

func (l *labPair) burst(ctx context.Context) (engine.Burst, error) {
	return l.Client.Burst(ctx, l.session, engine.BurstSpec{
		Duration: burstLength, Warmup: burstLength / 5, Deadline: 5 * time.Second,
	})
}
