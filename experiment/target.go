package experiment

import (
	"cmp"
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

// How long a target may take to be made ready for clients, a client to open, the agent that holds a target to let go of it, and all of
// that together at the end of a run, with another agent in place of one that was lost.
const (
	holdWithin    = 3 * time.Minute
	targetWithin  = 30 * time.Second
	releaseWithin = 25 * time.Second
	leaveWithin   = 90 * time.Second
)

// targetHost is the host of a cell's target, "" without one.
func targetHost(p result.Params) string {
	if p.Target == "" {
		return ""
	}
	t, err := workload.ParseTarget(p.Target)
	if err != nil {
		return "" // it has been checked with the study
	}
	return t.Host
}

// refuseUnreached takes out cells whose clients can't stand where their placement says, or that have a target on a testbed from
// which there is no way to it.
func (p *Plan) refuseUnreached(ctx context.Context, driver testbed.Provider) error {
	for i, c := range p.Cells {
		host := targetHost(c.Params)
		if host == "" || c.Unsupported != "" {
			continue
		}
		targets := driver.Capabilities().Targets
		if targets == nil {
			p.Cells[i].Unsupported = fmt.Sprintf("target %s is unsupported on testbed %s: needs a way out of it to the endpoint; run it with --testbed kubernetes, or leave the target out", c.Params.Target, driver.Kind())
			continue
		}
		site, err := targets.Locate(ctx, host)
		if err != nil {
			return fmt.Errorf("target %s: %w", c.Params.Target, err)
		}
		if c.Placement == result.SameNode && site.Apart != "" {
			p.Cells[i].Unsupported = fmt.Sprintf("clients on the node of target %s are unsupported: %s; measure placement %s", c.Params.Target, site.Apart, result.CrossNode)
		}
		if c.Placement == result.CrossNode && site.Mixed != "" {
			p.note(fmt.Sprintf("clients of target %s that are to stand on another node than it may stand on its own: %s", c.Params.Target, site.Mixed))
		}
		if c.Placement == result.SameNode && site.Apart == "" {
			p.note(fmt.Sprintf("target %s stands on node %s: clients on the same node are there", c.Params.Target, site.Nodes[0]))
		}
	}
	return nil
}

// note says something once.
func (p *Plan) note(sentence string) {
	if !slices.Contains(p.Notes, sentence) {
		p.Notes = append(p.Notes, sentence)
	}
}

// aim is a target as cells have it.
type aim struct {
	workload, url string
	family        result.Family
}

func aimOf(c result.Cell) aim { return aim{c.Workload, c.Params.Target, c.Params.Family} }

// grasp is a target that is held for the whole of a run, by an agent in a pod of its own.
type grasp struct {
	target  workload.Target // with its address
	found   workload.Found
	agent   *agent.Agent
	session int
}

// targets are the endpoints of the user's own that a run measures.
type targets struct {
	password workload.Secret
	stage    *stage // that they are held for
	held     map[aim]*grasp
	build    build // the testbeds and agents by which they are held
	notes    []string
}

// hold makes the targets of cells ready. All clients will connect to the address that was found here.
func (t *targets) hold(ctx context.Context, st *stage, cells []result.Cell) error {
	for _, c := range plan.Measured(cells) {
		a := aimOf(c)
		if a.url == "" || t.held[a] != nil {
			continue
		}
		g, err := t.reach(ctx, st, a)
		if err != nil {
			return fmt.Errorf("before anything was measured: %w", err)
		}
		if t.held == nil {
			t.stage, t.held = st, map[aim]*grasp{}
		}
		t.held[a] = g
	}
	return nil
}

// reach has an agent in a pod of its own hold a target.
func (t *targets) reach(ctx context.Context, st *stage, a aim) (*grasp, error) {
	target, err := workload.ParseTarget(a.url)
	if err != nil {
		return nil, err
	}
	target.Password = t.password
	g := &grasp{target: target}
	if g.agent, err = t.lend(ctx, st, a, target.Host); err != nil {
		return nil, err
	}
	held, err := g.agent.Hold(ctx, a.workload, target, a.family, holdWithin)
	if err != nil {
		return nil, err
	}
	g.target.Address, g.target.Length, g.session, g.found = held.Addresses[0], held.Found.Length, held.Session, held.Found
	t.notes = append(t.notes, aimed(g.target, held))
	return g, nil
}

// lend starts an agent for a target in a pod of its own, in the network of the cluster's pods.
func (t *targets) lend(ctx context.Context, st *stage, a aim, host string) (*agent.Agent, error) {
	able := st.able.Targets
	if able == nil {
		return nil, fmt.Errorf("testbed %s has no way to target %s", st.driver.Kind(), a.url)
	}
	if _, err := able.Locate(ctx, host); err != nil {
		return nil, fmt.Errorf("target %s: %w", a.url, err)
	}
	tb, err := st.driver.Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: able.From, Family: a.family, Target: host})
	if err != nil {
		return nil, fmt.Errorf("a pod from which target %s is looked up: %w", a.url, err)
	}
	t.build.keep(tb)
	return st.startAgent(ctx, &t.build, tb.Pods()[0])
}

// aimed is a note on a target that was found.
func aimed(t workload.Target, held agent.Holding) string {
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

// release lets go of all targets: what was put there is taken away.
func (t *targets) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveWithin)
	defer cancel()
	var errs []error
	for a, g := range t.held {
		if err := t.letGo(ctx, a, g); err != nil {
			errs = append(errs, fmt.Errorf("let go of target %s: %w", g.target, err))
		}
	}
	t.held = nil
	return errors.Join(append(errs, t.build.close())...)
}

// letGo lets go of one target. Where the agent that held it can't do so, since its pod or node was lost, another one does.
func (t *targets) letGo(ctx context.Context, a aim, g *grasp) error {
	var failed error
	if g.agent.Alive() {
		within, cancel := context.WithTimeout(ctx, releaseWithin)
		failed = g.agent.Release(within, g.session)
		cancel()
		if failed == nil {
			return nil
		}
	}
	if g.found.Mark == "" {
		return failed // nothing was put there
	}
	pod := g.agent.Pod().Name()
	other, err := t.lend(ctx, t.stage, a, g.target.Host)
	if err == nil {
		err = other.Clear(ctx, a.workload, g.target, g.found.Mark)
	}
	if err != nil {
		return fmt.Errorf("pod %s, from which it was held, was lost, and what was put there may be there still: %w; do it by hand: %s", pod, errors.Join(failed, err), g.found.Undo)
	}
	t.stage.ward.note("pod %s, from which target %s was held, was lost; what had been put there was taken away by another one", pod, g.target)
	return nil
}

// of is the target of a cell, nil where it has none, or one that is not held.
func (t *targets) of(c result.Cell) *grasp { return t.held[aimOf(c)] }

// startClients starts an agent for each placement, in the pod whose node it asks for: the first one is on the target's own.
func (st *stage) startClients(ctx context.Context, b *build, tb testbed.Testbed, cells []result.Cell) (crew, error) {
	c := crew{servers: map[result.Placement]*agent.Agent{}, others: map[string]*agent.Agent{}}
	for _, cell := range cells {
		if c.servers[cell.Placement] != nil {
			continue
		}
		pod := tb.Pods()[0]
		if cell.Placement == result.CrossNode {
			var err error
			if pod, err = serverPod(tb, result.CrossNode); err != nil {
				return c, err
			}
		}
		a, err := st.startAgent(ctx, b, pod)
		if err != nil {
			return c, err
		}
		c.servers[cell.Placement] = a
		c.client = cmp.Or(c.client, a)
	}
	return c, nil
}

// dialTarget opens the client's connection to an endpoint that is none of netdelta's.
func (s *seat) dialTarget(ctx context.Context) (int, error) {
	if s.grasp == nil {
		return 0, fmt.Errorf("target %s is not held", s.cell.Params.Target)
	}
	return s.client.DialTarget(ctx, s.cell.Workload, s.cell.Params, s.grasp.target, s.cpus.client, targetWithin)
}

// aimAt makes a seat that of a client alone. Where both ends are asked for, the client's stands in for the one that is not ours.
func (s *seat) aimAt(g *grasp) {
	s.grasp, s.server, s.prober = g, s.client, nil
	if g != nil {
		s.remote = g.target.At()
	}
}
