package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"netdelta/engine"
	"netdelta/extras/bench/harness"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

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
