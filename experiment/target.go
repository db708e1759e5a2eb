package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/plan"
	"netdelta/internal/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// How long a target may take to be made ready for clients, and a client to open.
const (
	holdWithin   = 3 * time.Minute
	targetWithin = 30 * time.Second
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
func (p *Plan) refuseUnreached(ctx context.Context, driver testbed.Driver) error {
	for i, c := range p.Cells {
		host := targetHost(c.Params)
		if host == "" || c.Unsupported != "" {
			continue
		}
		reacher, ok := driver.(testbed.Reacher)
		if !ok {
			p.Cells[i].Unsupported = fmt.Sprintf("target %s is unsupported on testbed %s: needs a way out of it to the endpoint; run it with --testbed kubernetes, or leave the target out", c.Params.Target, driver.Name())
			continue
		}
		site, err := reacher.Locate(ctx, host)
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
	agent   *agent.Agent
	session int
}

// targets are the endpoints of the user's own that a run measures.
type targets struct {
	password workload.Secret
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
		g, err := t.reach(ctx, st, c, a)
		if err != nil {
			return fmt.Errorf("before anything was measured: %w", err)
		}
		if t.held == nil {
			t.held = map[aim]*grasp{}
		}
		t.held[a] = g
	}
	return nil
}

// reach opens a pod in the network of the cluster's pods, and has an agent there hold a target.
func (t *targets) reach(ctx context.Context, st *stage, c result.Cell, a aim) (*grasp, error) {
	reacher, ok := st.driver.(testbed.Reacher)
	if !ok {
		return nil, fmt.Errorf("%s: testbed %s has no way to a target", c.ID, st.driver.Name())
	}
	target, err := workload.ParseTarget(a.url)
	if err != nil {
		return nil, err
	}
	target.Password = t.password
	if _, err = reacher.Locate(ctx, target.Host); err != nil {
		return nil, fmt.Errorf("target %s: %w", a.url, err)
	}
	tb, err := st.driver.Open(ctx, testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: reacher.Inner(), Family: a.family, Target: target.Host})
	if err != nil {
		return nil, fmt.Errorf("a pod from which target %s is looked up: %w", a.url, err)
	}
	t.build.keep(tb)
	g := &grasp{target: target}
	if g.agent, err = st.startAgent(ctx, &t.build, tb.Pods()[0]); err != nil {
		return nil, err
	}
	held, err := g.agent.Hold(ctx, a.workload, target, a.family, holdWithin)
	if err != nil {
		return nil, err
	}
	g.target.Address, g.target.Length, g.session = held.Addresses[0], held.Found.Length, held.Session
	t.notes = append(t.notes, aimed(g.target, held))
	return g, nil
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
	var errs []error
	for _, g := range t.held {
		if !g.agent.Alive() {
			continue // it has let go of its target when it ended
		}
		if err := g.agent.Release(ctx, g.session); err != nil {
			errs = append(errs, fmt.Errorf("let go of target %s: %w", g.target, err))
		}
	}
	t.held = nil
	return errors.Join(append(errs, t.build.close())...)
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
