package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"

	"netdelta/result"
)

// turns is how many bursts of each contender a round holds.
const turns = 16

// latencies runs the rounds of a request-response workload. All contenders are ready; each has a burst in every turn, in
// random order.
func latencies(ctx context.Context, o options, p *programs, ends *namespaces, protocol string, s *sheet) (err error) {
	ours, err := openEngine(ctx, ends, protocol+"-rr", paramsOf(protocol, o.size), o.cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	plain, err := openLoop(p, ends, protocol, o.size, o.cpu)
	if err != nil {
		return err
	}
	defer plain.close()
	for range o.rounds {
		if err := latencyRound(ctx, o, p, ends, protocol, ours, plain, s); err != nil {
			return err
		}
	}
	return nil
}

func latencyRound(ctx context.Context, o options, p *programs, ends *namespaces, protocol string, ours *own, plain *loop, s *sheet) (err error) {
	contenders := []func() error{}
	var engines, loops []float64
	contenders = append(contenders,
		func() error { return appendValue(&engines)(ours.p50(ctx, o.burst)) },
		func() error { return appendValue(&loops)(plain.p50(ctx, o.burst)) })
	var other *sockperfRun
	if p.sockperf != "" {
		if other, err = openSockperf(p, ends, protocol, o); err != nil {
			return err
		}
		defer other.close()
		contenders = append(contenders, func() error { return other.play(o.burst) })
	}
	for range turns {
		if err := shuffled(contenders); err != nil {
			return err
		}
	}
	for i := range engines {
		s.add(protocol+"-rr p50 / C loop", engines[i], loops[i])
	}
	if other == nil {
		return nil
	}
	medians, err := other.medians()
	if errors.Is(err, errNotFound) {
		fmt.Fprintln(os.Stderr, "a round is left out:", err)
		return nil
	}
	for i, m := range medians {
		if m > 0 {
			s.add(protocol+"-rr p50 / sockperf", engines[i], m)
		}
	}
	return err
}

// streams runs the rounds of a stream against iperf3.
func streams(ctx context.Context, o options, p *programs, ends *namespaces, flows int, s *sheet) (err error) {
	if p.iperf3 == "" {
		return nil
	}
	m, err := openMeter(ends)
	if err != nil {
		return err
	}
	defer m.close()
	ours, err := openEngine(ctx, ends, "tcp-stream", result.Params{Connections: flows, CongestionControl: congestion}, o.cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Close()) }()
	other, err := openIperf3(p, ends, flows, o)
	if err != nil {
		return err
	}
	defer other.close()
	var engines, others []float64
	contenders := []func() error{
		func() error { return appendValue(&engines)(meterEngine(ctx, ours, m)) },
		func() error {
			return other.turn(func() error { return appendValue(&others)(m.rate(streamTurn)) })
		},
	}
	for range o.rounds * turns / 2 {
		if err := shuffled(contenders); err != nil {
			return err
		}
	}
	for i := range engines {
		s.add(streamName(flows), engines[i], others[i])
	}
	return nil
}

// shuffled calls all functions in random order.
func shuffled(functions []func() error) error {
	for _, i := range rand.Perm(len(functions)) {
		if err := functions[i](); err != nil {
			return err
		}
	}
	return nil
}

// appendValue takes a value unless there is an error.
func appendValue(to *[]float64) func(float64, error) error {
	return func(v float64, err error) error {
		if err == nil {
			*to = append(*to, v)
		}
		return err
	}
}
