package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/rpc"
)

// patience is how long an answer may take. It takes milliseconds.
const patience = 20 * time.Second

// Agent is the controller's end of an agent in a pod. It is safe for concurrent use.
type Agent struct {
	*rpc.Client
	pod testbed.Pod
}

// Start starts the program as an agent in a pod, where it has this path, and waits until it has introduced itself.
func Start(ctx context.Context, pod testbed.Pod, program string) (*Agent, error) {
	proc, err := pod.Start(ctx, testbed.Command{Path: program, Args: []string{Verb}})
	if err != nil {
		return nil, fmt.Errorf("start an agent that looks at %s: %w", pod.Name(), err)
	}
	a := &Agent{rpc.NewClient("node agent "+pod.Name(), proc), pod}
	if _, err := rpc.Meet[rpc.Greeting](ctx, a.Client, pod, testbed.Command{Path: program, Args: []string{"--version"}}, patience); err != nil {
		return nil, errors.Join(fmt.Errorf("greet the agent that looks at %s: %w", pod.Name(), err), a.Close())
	}
	return a, nil
}

// Pod is the pod that the agent runs in: one in its node's own namespace has the node's address.
func (a *Agent) Pod() testbed.Pod { return a.pod }

// Describe lists the devices of the agent's namespace.
func (a *Agent) Describe(ctx context.Context) ([]testbed.Interface, error) {
	answer, err := a.ask(ctx, opDescribe, request{})
	return answer.Interfaces, err
}

// Count reads the counters of all devices by their names, and the counters of the IP stack.
func (a *Agent) Count(ctx context.Context) (map[string]testbed.Counters, testbed.Stack, error) {
	answer, err := a.ask(ctx, opCount, request{})
	return answer.Counters, answer.Stack, err
}

// Standing names what stands in the agent's namespace and belongs to no pod, as nsmonitor.Standing does.
func (a *Agent) Standing(ctx context.Context) ([]string, error) {
	answer, err := a.ask(ctx, opStanding, request{})
	return answer.Standing, err
}

func (a *Agent) ask(ctx context.Context, op string, r request) (answer, error) {
	return rpc.Do[answer](ctx, a.Client, op, r, patience)
}

// Verb is the argument with which the program serves.
const Verb = "look"

// The operations.
const (
	opDescribe = "describe"
	opCount    = "count"
	opStanding = "standing"
	opBegin    = "begin"
	opEnd      = "end"
	opDrop     = "drop"
)

// request is what an operation is about. What it does not need is zero.
type request struct {
	Watch int `json:"watch,omitempty"`
	// Addresses: each sampled packet must have two of them.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// To are addresses whose routes are asked for, and Port is the server's whose peers are asked for.
	To   []netip.Addr `json:"to,omitempty"`
	Port uint16       `json:"port,omitempty"`
}

// answer is what comes of it.
type answer struct {
	Watch      int                         `json:"watch,omitempty"`
	Interfaces []testbed.Interface         `json:"interfaces,omitempty"`
	Counters   map[string]testbed.Counters `json:"counters,omitempty"`
	Stack      testbed.Stack               `json:"stack"`
	Standing   []string                    `json:"standing,omitempty"`
	Packets    []testbed.Packet            `json:"packets,omitempty"`
	Missed     int                         `json:"missed,omitempty"`
	Lacks      string                      `json:"lacks,omitempty"`
	Routes     []testbed.Route             `json:"routes,omitempty"`
	Peers      []netip.AddrPort            `json:"peers,omitempty"`
}
