// Package harness is what the programs of extras/bench share: how they start and end, and a pair of agents to measure with.
package harness

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/signal"

	"netdelta/agent"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/udptun"
	"netdelta/workload/catalogue"
)

// UsageError is the error of wrong arguments.
type UsageError string

// Error implements error.
func (u UsageError) Error() string { return string(u) }

// Main parses the flags, runs a program of a name until it is interrupted, and exits. In the processes that the program starts of itself
// it serves as agent or tunnel instead.
func Main(name string, run func(context.Context) error) {
	Children()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err == nil {
		os.Exit(0)
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	if _, wrong := errors.AsType[UsageError](err); wrong {
		os.Exit(2)
	}
	os.Exit(1)
}

// Children never returns in the processes that a program starts of itself.
func Children() {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	if udptun.Asked() {
		os.Exit(udptun.Become())
	}
}

// Spare leaves the last processor to workloads: it moves this program to the others, and with it all that it starts, unless that pins
// itself. With one processor there is nowhere to go.
func Spare() (cpu int, others []int, err error) {
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		return 0, nil, err
	}
	others = cpus[:max(1, len(cpus)-1)]
	return cpus[len(cpus)-1], others, machine.Confine(others)
}

// Pair is the agents of a client and of a server, each in a pod.
type Pair struct{ Client, Server *agent.Agent }

// Start starts the agents. They run on the given processors; none lets them run on all.
func Start(ctx context.Context, client, server testbed.Pod, cpus []int) (p Pair, err error) {
	self, err := os.Executable()
	if err != nil {
		return p, err
	}
	program := agent.Program{Path: self, CPUs: cpus}
	if p.Server, err = agent.Start(ctx, server, program); err == nil {
		p.Client, err = agent.Start(ctx, client, program)
	}
	if err != nil {
		return Pair{}, errors.Join(err, p.Close())
	}
	return p, nil
}

// Close ends the agents.
func (p Pair) Close() error {
	var err error
	for _, a := range []*agent.Agent{p.Client, p.Server} {
		if a != nil {
			err = errors.Join(err, a.Close())
		}
	}
	return err
}

// Link is where a workload runs: where the server listens, and the client's address and the one that it connects to.
type Link struct{ Listen, From, To netip.AddrPort }

// Connect has the server serve a workload and the client dial it, both pinned to a processor. It returns their sessions.
func (p Pair) Connect(ctx context.Context, workload string, params result.Params, l Link, cpu int) (client, server int, err error) {
	if server, err = p.Server.Serve(ctx, workload, params, l.Listen, cpu); err == nil {
		client, err = p.Client.Dial(ctx, workload, params, l.From, l.To, cpu)
	}
	return client, server, err
}
