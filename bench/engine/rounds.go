package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"netdelta/result"
)

// turns is how many bursts of each armed contender a round holds.
const turns = 20

// latencies runs the rounds of a request-response workload: bursts of the engine and of the reference loop, both armed all
// the time, in pairs of random order; then sockperf between two spells of the engine.
func latencies(ctx context.Context, o options, p *programs, ends *pair, protocol string, s *sheet) (err error) {
	ours, err := openEngine(ctx, p, ends, protocol+"-rr", paramsOf(protocol, o.size), o.cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	plain, err := openLoop(p, ends, protocol, o.size, o.cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plain.close()) }()
	for range o.rounds {
		for range turns {
			pairs := [2]func(context.Context, time.Duration) (float64, error){ours.p50, plain.p50}
			var got [2]float64
			first := rand.IntN(2)
			for _, i := range []int{first, 1 - first} {
				if got[i], err = pairs[i](ctx, o.burst); err != nil {
					return err
				}
			}
			s.add(protocol+"-rr p50 / C loop", got[0], got[1])
		}
		if p.sockperf == "" {
			continue
		}
		before, err := ours.p50(ctx, spell)
		if err != nil {
			return err
		}
		other, err := sockperfP50(p, ends, protocol, o)
		if err != nil {
			return err
		}
		after, err := ours.p50(ctx, spell)
		if err != nil {
			return err
		}
		s.add(protocol+"-rr p50 / sockperf", (before+after)/2, other)
	}
	return nil
}

// spell is how long the engine runs before and after a program that can't be interleaved more finely.
const spell = 500 * time.Millisecond

// streams runs the rounds of a stream: iperf3 between two spells of the engine.
func streams(ctx context.Context, o options, p *programs, ends *pair, flows int, s *sheet) (err error) {
	if p.iperf3 == "" {
		return nil
	}
	ours, err := openEngine(ctx, p, ends, "tcp-stream", result.Params{Connections: flows, CongestionControl: congestion}, o.cpu)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.close()) }()
	for range o.rounds {
		before, err := ours.burst(ctx, spell)
		if err != nil {
			return err
		}
		other, err := iperf3Rate(p, ends, flows, 1, o)
		if err != nil {
			return err
		}
		after, err := ours.burst(ctx, spell)
		if err != nil {
			return err
		}
		s.add(streamName(flows), (before.Throughput+after.Throughput)/2, other)
	}
	return nil
}
