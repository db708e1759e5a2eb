package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"regexp"
	"strconv"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
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
