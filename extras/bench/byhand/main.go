// Command byhand holds what netdelta finds against what sockperf finds that is run by hand: in the same pods of labs, in the same
// minutes, in turn and in random order. For each network and regime it prints both ratios to host, with their intervals.
//
// The two need not agree to the percent: sockperf's round trips hold what it does itself between two clock readings, which makes
// every ratio smaller. What must agree is the order and the sign.
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
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/unit"
)

// baseline is what all networks are held against.
const baseline = "host"

// regime is where the two ends run.
type regime struct {
	name           string
	client, server int // processors
}

func main() {
	networks := flag.String("networks", "bridge,routed,vxlan", "networks to hold against host, with commas between")
	rounds := flag.Int("rounds", 6, "rounds: in each, both programs measure each network once in each regime, for a second")
	message := flag.Int("message", 300, "bytes of a message, at least 14")
	harness.Main("byhand", func(ctx context.Context) error {
		sockperf, err := exec.LookPath("sockperf")
		if err != nil {
			return fmt.Errorf("find sockperf: %w; install the package sockperf", err)
		}
		return run(ctx, append([]string{baseline}, strings.Split(*networks, ",")...), sockperf, *rounds, *message)
	})
}

// programs are what measures, in the order of the columns.
func programs() []string { return []string{"sockperf", "netdelta"} }

// key names a series of medians.
type key struct{ program, network, regime string }

// regimes are those in which both can be run.
func regimes() []regime { return []regime{{"saturated", 1, 1}, {"waking", 1, 0}} }

func run(ctx context.Context, networks []string, sockperf string, rounds, message int) error {
	medians, err := measured(ctx, networks, sockperf, rounds, message)
	if err == nil {
		write(networks[1:], medians)
	}
	return err
}

// measured are the logarithms of the medians of all turns, in the order of rounds.
func measured(ctx context.Context, networks []string, sockperf string, rounds, message int) (medians map[key][]float64, err error) {
	all := map[string]*ends{}
	defer func() {
		for _, e := range all {
			err = errors.Join(err, e.close())
		}
	}()
	driver := lab.NewDriver(network.Catalogue())
	for _, n := range networks {
		tb, err := driver.Open(ctx, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: n, Link: testbed.Link{MTU: 1500}})
		if err != nil {
			return nil, err
		}
		all[n] = &ends{tb: tb, sockperf: sockperf, message: message, sessions: map[string]int{}}
		if err := all[n].open(ctx, regimes()); err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
	}
	medians = map[key][]float64{}
	type turn struct {
		key
		regime regime
	}
	for range rounds {
		var turns []turn
		for _, r := range regimes() {
			for _, n := range networks {
				for _, p := range programs() {
					turns = append(turns, turn{key{p, n, r.name}, r})
				}
			}
		}
		rand.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, t := range turns {
			ns, err := all[t.network].measure(ctx, t.program, t.regime)
			if err != nil {
				return nil, fmt.Errorf("%s on %s: %w", t.program, t.network, err)
			}
			medians[t.key] = append(medians[t.key], math.Log(ns))
		}
	}
	return medians, nil
}

// write writes a line for each network and regime, of ratios that are paired within rounds.
func write(networks []string, medians map[key][]float64) {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "network\tregime\tsockperf by hand\tnetdelta\tnetdelta's by sockperf's")
	for _, r := range regimes() {
		for _, n := range networks {
			var ratios [2][]float64
			for i, p := range programs() {
				base := medians[key{p, baseline, r.name}]
				for k, v := range medians[key{p, n, r.name}] {
					ratios[i] = append(ratios[i], v-base[k])
				}
			}
			var between []float64
			for k := range ratios[0] {
				between = append(between, ratios[1][k]-ratios[0][k])
			}
			_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", n, r.name, ratio(ratios[0]), ratio(ratios[1]), ratio(between))
		}
	}
	_ = t.Flush() // an error on standard output has no one to go to
}

// ratio is the mean of logarithms of ratios with its 95% interval.
func ratio(logs []float64) string {
	mean, low, high := stats.MeanInterval(logs, 0.95)
	return fmt.Sprintf("%.3f [%.3f, %.3f]", math.Exp(mean), math.Exp(low), math.Exp(high))
}

// length is how long a turn measures, patience how long it may take.
const (
	length   = time.Second
	patience = 30 * time.Second
)

// ends are the first pod and the last one of a lab, with netdelta's agents in them, a session in each regime, and sockperf.
type ends struct {
	harness.Pair
	tb       testbed.Testbed
	sockperf string
	message  int
	sessions map[string]int // of the client, by regime
}

// pods are the client's and the server's.
func (e *ends) pods() (client, server testbed.Pod) {
	all := e.tb.Pods()
	return all[0], all[len(all)-1]
}

// open connects netdelta's own ends in all regimes.
func (e *ends) open(ctx context.Context, regimes []regime) (err error) {
	client, server := e.pods()
	if e.Pair, err = harness.Start(ctx, client, server, nil); err != nil {
		return err
	}
	params := result.Params{Message: unit.Bytes(e.message)}
	first, _ := server.Ports()
	for i, r := range regimes {
		port := first + uint16(i)
		if _, err := e.Server.Serve(ctx, "tcp-rr", params, netip.AddrPortFrom(netip.IPv4Unspecified(), port), r.server); err != nil {
			return err
		}
		to := e.tb.Endpoint(client, server, port)
		if e.sessions[r.name], err = e.Client.Dial(ctx, "tcp-rr", params, netip.AddrPortFrom(netip.IPv4Unspecified(), 0), to, r.client); err != nil {
			return err
		}
	}
	return nil
}

func (e *ends) close() error { return errors.Join(e.Pair.Close(), e.tb.Close()) }

// measure is the median round trip of a turn, in nanoseconds.
func (e *ends) measure(ctx context.Context, program string, r regime) (float64, error) {
	if program == "sockperf" {
		return e.byHand(ctx, r)
	}
	b, err := e.Client.Burst(ctx, e.sessions[r.name], engine.BurstSpec{Warmup: length / 5, Duration: length, Deadline: patience})
	return b.P50, err
}

// median is where sockperf says it: in microseconds.
var median = regexp.MustCompile(`percentile 50\.000 =\s+([0-9.]+)`)

// byHand runs sockperf's server and its client once, as one would by netdelta lab exec.
func (e *ends) byHand(ctx context.Context, r regime) (ns float64, err error) {
	client, server := e.pods()
	const place = 7 // a port of the server's pod that netdelta's ends leave
	first, _ := server.Ports()
	port := first + place
	s, err := server.Start(ctx, testbed.Command{Path: e.sockperf, Args: []string{"server", "--tcp", "-p", strconv.Itoa(int(port))}, CPUs: []int{r.server}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = errors.Join(s.Kill(), s.Close()) }() // it serves until it is killed
	if err := ready(s); err != nil {
		return 0, err
	}
	to := e.tb.Endpoint(client, server, port)
	c, err := client.Start(ctx, testbed.Command{Path: e.sockperf, CPUs: []int{r.client}, Args: []string{
		"ping-pong", "--tcp", "--full-rtt", "-i", to.Addr().String(), "-p", strconv.Itoa(int(to.Port())),
		"-m", strconv.Itoa(e.message), "-t", strconv.Itoa(int(length.Seconds())),
	}})
	if err != nil {
		return 0, err
	}
	said, err := io.ReadAll(c)
	if err = errors.Join(err, c.Wait()); err != nil {
		return 0, fmt.Errorf("sockperf: %w", err)
	}
	found := median.FindSubmatch(said)
	if found == nil {
		return 0, fmt.Errorf("sockperf gives no median: %s", said)
	}
	micro, err := strconv.ParseFloat(string(found[1]), 64)
	return 1000 * micro, err
}

// ready waits until sockperf's server says that it listens, and lets it say the rest.
func ready(s testbed.Process) error {
	buffer, said := make([]byte, 4096), ""
	for !listening.MatchString(said) {
		n, err := s.Read(buffer)
		if err != nil {
			return fmt.Errorf("sockperf's server said %q: %w", said, err)
		}
		said += string(buffer[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, s) }()
	return nil
}

// listening is what the server says last before it waits.
var listening = regexp.MustCompile(`to block on socket`)
