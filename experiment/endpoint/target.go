package endpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// How long a target may take to be made ready for clients, a client to connect, the agent that holds a target to release it, and the
// release of all targets at the end of a run, by other agents where some were lost.
const (
	holdWithin       = 3 * time.Minute
	targetWithin     = 30 * time.Second
	releaseWithin    = 25 * time.Second
	releaseAllWithin = 90 * time.Second
)

// targetKey identifies a target among the cells of a run.
type targetKey struct {
	workload, url string
	family        result.Family
}

func keyOf(c result.Cell) targetKey {
	return targetKey{c.Workload, c.Params.Target, c.Params.Family}
}

// heldTarget is held for the whole of a run, by an agent in a pod of its own.
type heldTarget struct {
	target  workload.Target // with its address
	found   workload.Found
	agent   *agent.Agent
	session int
}

// Targets are the external endpoints that a run measures.
type Targets struct {
	Driver   testbed.Provider
	Program  agent.Program
	Password workload.Secret // for targets that take one
	Health   *Health
	// Within is how long what is put into a cell's target may take, where that is longer than usual.
	Within func(result.Cell) time.Duration

	held     map[targetKey]*heldTarget
	testbeds []testbed.Testbed
	agents   []*agent.Agent
	notes    []string
}

// Notes are sentences on the targets that are held.
func (t *Targets) Notes() []string { return t.notes }

// Hold makes the targets of cells ready. All clients will connect to the address that was found here.
func (t *Targets) Hold(ctx context.Context, cells []result.Cell) error {
	t.held = map[targetKey]*heldTarget{}
	for _, c := range plan.Measured(cells) {
		key := keyOf(c)
		if key.url == "" || t.held[key] != nil {
			continue
		}
		h, err := t.hold(ctx, key, c)
		if err != nil {
			return fmt.Errorf("before anything was measured: %w", err)
		}
		t.held[key] = h
	}
	return nil
}

// hold has an agent in a pod of its own hold a cell's target.
func (t *Targets) hold(ctx context.Context, key targetKey, c result.Cell) (*heldTarget, error) {
	target, err := workload.ParseTarget(key.url)
	if err != nil {
		return nil, err
	}
	target.Password = t.Password
	h := &heldTarget{target: target}
	if h.agent, err = t.startAgent(ctx, key, target.Host); err != nil {
		return nil, err
	}
	held, err := h.agent.Hold(ctx, key.workload, c.Params, target, max(holdWithin, t.Within(c)))
	if err != nil {
		return nil, err
	}
	if at := held.Addresses[0]; at.IsLoopback() {
		return nil, fmt.Errorf("target %s: its name stands for %s there, which is another place on each node; name it by an address that clients on all nodes reach", target, at)
	}
	h.target.Address, h.target.Length, h.session, h.found = held.Addresses[0], held.Found.Length, held.Session, held.Found
	t.notes = append(t.notes, describe(h.target, held))
	return h, nil
}

// startAgent starts an agent for a target in a pod of its own, in the network of the cluster's pods.
func (t *Targets) startAgent(ctx context.Context, key targetKey, host string) (*agent.Agent, error) {
	able := t.Driver.Capabilities().Targets
	if able == nil {
		return nil, fmt.Errorf("testbed %s has no way to target %s", t.Driver.Kind(), key.url)
	}
	if _, err := able.Locate(ctx, host); err != nil {
		return nil, fmt.Errorf("target %s: %w", key.url, err)
	}
	tb, err := t.Driver.Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: able.From, Family: key.family, Target: host})
	if err != nil {
		return nil, fmt.Errorf("a pod from which target %s is looked up: %w", key.url, err)
	}
	t.testbeds = append(t.testbeds, tb)
	a, err := agent.Start(ctx, tb.Pods()[0], t.Program)
	if err == nil {
		t.agents = append(t.agents, a)
	}
	return a, err
}

// describe is a note on a target that was found.
func describe(t workload.Target, held agent.Holding) string {
	text := fmt.Sprintf("target %s: %s", t, held.Found.Says)
	if t.Address.String() == t.Host {
		return text
	}
	text += fmt.Sprintf(". Its name was looked up once, in a pod; all clients, those in their nodes' network too, connect to %s", t.At())
	if len(held.Addresses) > 1 {
		var others []string
		for _, at := range held.Addresses[1:] {
			others = append(others, at.String())
		}
		text += ", and to none of its other addresses (" + strings.Join(others, ", ") + ")"
	}
	return text
}

// Release removes what was put into the targets, also when ctx has ended.
func (t *Targets) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseAllWithin)
	defer cancel()
	var errs []error
	for key, h := range t.held {
		if err := t.release(ctx, key, h); err != nil {
			errs = append(errs, fmt.Errorf("let go of target %s: %w", h.target, err))
		}
	}
	for _, a := range t.agents {
		_ = a.Close() // a hanging agent is killed
	}
	for _, tb := range slices.Backward(t.testbeds) {
		errs = append(errs, tb.Close())
	}
	t.held, t.agents, t.testbeds = nil, nil, nil
	return errors.Join(errs...)
}

// release removes what was put into one target. If the agent that held it was lost with its pod or node, another one does it.
func (t *Targets) release(ctx context.Context, key targetKey, h *heldTarget) error {
	var failed error
	if h.agent.Alive() {
		within, cancel := context.WithTimeout(ctx, releaseWithin)
		failed = h.agent.Release(within, h.session)
		cancel()
		if failed == nil {
			return nil
		}
	}
	if h.found.Mark == "" {
		return failed // nothing was put there
	}
	pod := h.agent.Pod().Name()
	other, err := t.startAgent(ctx, key, h.target.Host)
	if err == nil {
		err = other.Clear(ctx, key.workload, h.target, h.found.Mark)
	}
	if err != nil {
		return fmt.Errorf("pod %s, from which it was held, was lost, and what was put there may be there still: %w; do it by hand: %s", pod, errors.Join(failed, err), h.found.Undo)
	}
	t.Health.Note("pod %s, from which target %s was held, was lost; what had been put there was taken away by another one", pod, h.target)
	return nil
}

// For returns the endpoint of a client of its cell's target.
func (t *Targets) For(c Client) *Target { return &Target{client: c, held: t.held[keyOf(c.Cell)]} }

// Target is an external endpoint. The client's agent also stands for the server's end.
type Target struct {
	private
	client Client
	held   *heldTarget // nil unless it is held
}

// Info implements Endpoint.
func (t *Target) Info() Info {
	i := Info{Agent: t.client.Agent, External: true, Retry: true}
	if t.held != nil {
		i.Address = t.held.target.At()
	}
	i.Name = i.Address.String()
	return i
}

// Dial implements Endpoint.
func (t *Target) Dial(ctx context.Context) (int, error) {
	c := t.client
	if t.held == nil {
		return 0, fmt.Errorf("target %s is not held", c.Cell.Params.Target)
	}
	return c.Agent.DialTarget(ctx, c.Cell.Workload, c.Cell.Params, t.held.target, c.CPU, targetWithin)
}
