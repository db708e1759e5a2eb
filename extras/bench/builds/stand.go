package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"os"
	"time"

	"netdelta/agent"
	"netdelta/engine"
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
	stands []*stand
}

// stand is one lab with a client on one node and a server on the other.
type stand struct {
	survey         *survey
	tb             testbed.Testbed
	client, server *agent.Agent
	session        int // of the client
	service        int // of the server
	port           uint16
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
	st := &stand{survey: s, tb: tb}
	s.stands = append(s.stands, st)
	if err := st.startAgents(ctx); err != nil {
		return err
	}
	return st.connect(ctx)
}

func (s *survey) close() {
	for _, st := range s.stands {
		// The labs are going away: an agent that can't be closed in good order is killed with its lab.
		_ = errors.Join(st.stopAgents(), st.tb.Close())
	}
}

func (st *stand) startAgents(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program := agent.Program{Path: self, CPUs: st.survey.agents}
	if st.client, err = agent.Start(ctx, st.tb.Pods()[0], program); err != nil {
		return err
	}
	st.server, err = agent.Start(ctx, st.tb.Pods()[1], program)
	return err
}

func (st *stand) stopAgents() error {
	var errs []error
	for _, a := range []*agent.Agent{st.client, st.server} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

func (st *stand) connect(ctx context.Context) error {
	params := result.Params{Message: 64}
	from, to := st.tb.Pods()[0], st.tb.Pods()[1]
	all := netip.IPv4Unspecified()
	var err error
	if st.service, err = st.server.Serve(ctx, "tcp-rr", params, netip.AddrPortFrom(all, serverPort+st.port), st.survey.cpu); err != nil {
		return err
	}
	st.session, err = st.client.Dial(ctx, "tcp-rr", params, netip.AddrPortFrom(all, clientPort+st.port), st.tb.Endpoint(from, to, serverPort+st.port), st.survey.cpu)
	return err
}

func (st *stand) disconnect(ctx context.Context) error {
	return errors.Join(st.client.Drop(ctx, st.session), st.server.Drop(ctx, st.service))
}

func (st *stand) reconnect(ctx context.Context) error {
	if err := st.disconnect(ctx); err != nil {
		return err
	}
	return st.connect(ctx)
}

func (st *stand) otherPorts(ctx context.Context) error {
	if err := st.disconnect(ctx); err != nil {
		return err
	}
	st.port = uint16(st.survey.rng.IntN(900))
	return st.connect(ctx)
}

func (st *stand) restartAgents(ctx context.Context) error {
	if err := st.stopAgents(); err != nil {
		return err
	}
	if err := st.startAgents(ctx); err != nil {
		return err
	}
	return st.connect(ctx)
}

// rebuildNetwork makes nodes, links and switch anew under the pods; agents and connections stay.
func (st *stand) rebuildNetwork(ctx context.Context) error {
	return st.tb.Swap(ctx, st.tb.Spec().Network)
}

func (st *stand) burst(ctx context.Context) (engine.Burst, error) {
	return st.client.Burst(ctx, st.session, engine.BurstSpec{
		Duration: burstLength, Warmup: burstLength / 5, Deadline: 5 * time.Second,
	})
}
