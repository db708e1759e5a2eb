package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/plan"
	"netdelta/internal/gather"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
)

// Build is one set-up of the networks of some cells, side by side, every cell with an open connection.
type Build struct {
	Index    int
	Sessions []*Session

	dropped   []*Session // of cells that the build was opened for and does not measure
	leftOut   []string   // IDs of cells that it measures no more
	keeps     bool       // pods may go on to the next build
	sweeps    bool       // sessions that can be are measured in sweeps
	sweeping  sync.Mutex
	sweeper   *agent.Agent // nil until it is needed
	sweepless bool         // there can't be one

	mu       sync.Mutex
	releases []func() error // of the testbeds
	agents   []*agent.Agent
}

// parallelOpens is how many testbeds are set up at once, unless the provider says otherwise: on this machine more would queue for the
// kernel's one lock on links.
const parallelOpens = 4

// OpenBuild sets a build up, with its sessions in the order of the cells. Pods that serve several builds stay until CloseKept. A cell whose network or connection fails gets a session
// that says so; only the end of ctx fails the build as a whole, and then nothing of it is left.
func (m *Context) OpenBuild(ctx context.Context, index int, cells []result.Cell) (*Build, error) {
	return m.openBuild(ctx, &Build{Index: index, sweeps: true, keeps: true}, cells)
}

func (m *Context) openBuild(ctx context.Context, b *Build, cells []result.Cell) (*Build, error) {
	groups := m.Groups(b.Index, cells)
	b.sweeps = b.sweeps && fitSweeps(cells)
	eg, egCtx := errgroup.WithContext(ctx)
	eg.SetLimit(parallelOpens)
	if costs := m.able.Costs; costs != nil {
		eg.SetLimit(costs.Opens)
	}
	sessions := make([][]*Session, len(groups))
	for i, g := range groups {
		eg.Go(func() error {
			sessions[i] = m.openGroup(egCtx, b, g)
			return egCtx.Err()
		})
	}
	err := eg.Wait()
	all := slices.Concat(sessions...)
	if err != nil {
		if s, failed := gather.First(all, func(s *Session) bool { return s.Failed != nil }); failed { // what was waited for
			err = fmt.Errorf("%w: %w", err, s.Failed)
		}
		return nil, errors.Join(fmt.Errorf("setting up build %d: %w", b.Index+1, err), b.Close())
	}
	b.Sessions = all
	b.Pick(cells)
	return b, nil
}

// OpenProven is OpenBuild for profilers and others that observe cells: it proves all paths, and a cell that fails is an error. The
// bursts of its sessions are not recorded as trials.
func (m *Context) OpenProven(ctx context.Context, index int, cells []result.Cell) (*Build, error) {
	b, err := m.openBuild(ctx, &Build{Index: index}, plan.Measured(cells))
	if err != nil {
		return nil, err
	}
	for _, s := range b.Sessions {
		if s.Failed == nil {
			s.Failed = s.prove(ctx)
		}
		if s.Failed != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.Cell.ID, s.Failed), b.Close())
		}
	}
	return b, nil
}

// FailedBuild is a build of cells of which none can be measured.
func (m *Context) FailedBuild(index int, cells []result.Cell, err error) *Build {
	m.Observed.Fail(err)
	return &Build{Index: index, Sessions: failAll(m.newSessions(cells), err)}
}

// openGroup opens one testbed and connects its cells.
func (m *Context) openGroup(ctx context.Context, b *Build, g Group) []*Session {
	sessions := m.newSessions(g.Cells)
	for _, s := range sessions {
		if s.demand.Cluster != nil && len(m.Changes) == 0 {
			return failAll(sessions, fmt.Errorf("%s is served by a cluster, which takes live swaps: it can only be measured in blocks, by netdelta run", s.Cell.ID))
		}
	}
	tb, agents, err := m.openAgents(ctx, b, g, sessions)
	if err != nil {
		m.Observed.Fail(err)
		return failAll(sessions, err)
	}
	if b.sweeps && m.able.OwnsNodes {
		agents.sweeper, err = m.sweeperOf(ctx, b, agents.client.Pod())
	}
	if err == nil {
		err = m.Observed.Look(ctx, tb, g.Network)
	}
	if err != nil {
		return failAll(sessions, fmt.Errorf("looking at network %s: %w", g.Network, err))
	}
	clusters := map[string]*endpoint.Cluster{}
	if err := m.startClusters(ctx, b, tb, g.Cells, clusters); err != nil {
		return failAll(sessions, fmt.Errorf("network %s: %w", g.Network, err))
	}
	for _, s := range sessions {
		if s.demand.Cluster != nil {
			s.Failed = clusters[s.demand.Cluster.Key].Recover(ctx)
		}
	}
	m.openSessions(ctx, sessions, agents, tb, clusters)
	return sessions
}

// startClusters starts the clusters that cells need on a testbed and that are not there yet, and the agents of their clients, all of which
// end with the build.
func (m *Context) startClusters(ctx context.Context, b *Build, tb testbed.Testbed, cells []result.Cell, started map[string]*endpoint.Cluster) error {
	for _, c := range cells {
		d := m.demand(c)
		if d.Cluster == nil {
			continue
		}
		k := started[d.Cluster.Key]
		if k == nil {
			var err error
			if k, err = m.startCluster(ctx, b, tb, c); err != nil {
				return err
			}
			started[d.Cluster.Key] = k
		}
		if err := m.startFurther(ctx, b, tb, k, d.Clients); err != nil {
			return err
		}
	}
	return nil
}

// startCluster starts the cluster that a cell needs. One that can't be started says why when it is used.
func (m *Context) startCluster(ctx context.Context, b *Build, tb testbed.Testbed, c result.Cell) (*endpoint.Cluster, error) {
	d := m.demand(c)
	pods, err := endpoint.ClusterPods(tb, d.Cluster.Pods)
	if err != nil {
		return nil, err
	}
	agents := make([]*agent.Agent, len(pods))
	for i, p := range pods {
		if agents[i], err = m.agentIn(ctx, b, p); err != nil {
			return nil, err
		}
	}
	at := endpoint.Client{Cell: c, Demand: d, CPU: m.clusterCPU(c), Remote: !m.able.OwnsNodes}
	return endpoint.StartCluster(ctx, at, agents, m.Health), ctx.Err()
}

// failAll marks all sessions as failed for one reason.
func failAll(sessions []*Session, err error) []*Session {
	for _, s := range sessions {
		s.Failed = err
	}
	return sessions
}

// openSessions gives the sessions their agents and opens their connections, on a testbed with clusters by their demand's key.
func (m *Context) openSessions(ctx context.Context, sessions []*Session, a agents, tb testbed.Testbed, clusters map[string]*endpoint.Cluster) {
	prover := path.NewProver(tb)
	if prover != nil {
		prover.Background(background(a.client, clusters))
	}
	config := m.beginConfigAudit(ctx, tb)
	patience := time.Now().Add(firstConnectWithin)
	for _, s := range sessions {
		m.connect(s, a, tb, clusters)
		m.addProbes(s, a, prover)
		s.config = config
		s.patience = patience
		if s.Failed == nil {
			s.Failed = s.open(ctx)
		}
	}
}

// background are the pods between which clusters and their clients talk in addition to what is measured.
func background(client *agent.Agent, clusters map[string]*endpoint.Cluster) []testbed.Pod {
	if len(clusters) == 0 {
		return nil
	}
	all := []testbed.Pod{client.Pod()}
	for _, k := range clusters {
		pods := k.Pods()
		for _, a := range k.Further {
			pods = append(pods, a.Pod())
		}
		for _, p := range pods {
			all = gather.Once(all, p)
		}
	}
	return all
}

// Pick puts the sessions in the order of the cells and drops the sessions of other cells. It says whether all were there.
func (b *Build) Pick(cells []result.Cell) bool {
	sessions := make([]*Session, len(cells))
	for i, c := range cells {
		at := slices.IndexFunc(b.Sessions, func(s *Session) bool { return s.Cell.ID == c.ID })
		if at < 0 {
			return false
		}
		sessions[i] = b.Sessions[at]
	}
	for _, s := range b.Sessions {
		if !slices.Contains(sessions, s) {
			b.dropped = append(b.dropped, s)
		}
	}
	b.Sessions = sessions
	return true
}

// LeaveOut takes cells out of the build: they are not measured any more, and give no trial. Their sessions stay, since the devices that they
// share with others have counted what they moved.
func (b *Build) LeaveOut(cells []string) { b.leftOut = cells }

// Active are the sessions that are measured.
func (b *Build) Active() []*Session {
	if len(b.leftOut) == 0 {
		return b.Sessions
	}
	return slices.DeleteFunc(slices.Clone(b.Sessions), func(s *Session) bool { return slices.Contains(b.leftOut, s.Cell.ID) })
}

// Collect closes the accounts of the build's sessions: what each measured, or why it failed.
func (b *Build) Collect(ctx context.Context) []result.Trial {
	return slices.DeleteFunc(Collect(ctx, b.Index, b.Sessions), func(t result.Trial) bool { return slices.Contains(b.leftOut, t.Cell) })
}

// hold has the build release a testbed when it is closed.
func (b *Build) hold(release func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.releases = append(b.releases, release)
}

// Close closes what is open of sessions' probes, ends the build's agents and releases its testbeds. A hanging agent is killed and no
// error: the trials that it spoiled have failed by name. Close is idempotent.
func (b *Build) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := gather.Each(slices.Concat(b.Sessions, b.dropped), func(s *Session) error { return s.closeProbes() })
	atOnce(b.agents, func(_ int, a *agent.Agent) { _ = a.Close() }) // it is gone in any case
	errs = append(errs, together(b.releases))
	b.agents, b.releases = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing build %d: %w", b.Index+1, err)
	}
	return nil
}

// together releases testbeds, all at the same time.
func together(releases []func() error) error {
	errs := make([]error, len(releases))
	atOnce(releases, func(i int, release func() error) { errs[i] = release() })
	return errors.Join(errs...)
}

// agents are the ones of a testbed that cells use. With an external target or a volume, servers holds clients.
type agents struct {
	client    *agent.Agent
	further   []*agent.Agent // of clients with volumes on other nodes
	servers   map[result.Placement]*agent.Agent
	neighbour *agent.Agent // nil where no cell needs one
	sweeper   *agent.Agent // the build's; nil where there are no sweeps
}

// startAgents starts the agents of the client and of the servers that the cells need, all at once: a pod of a cluster takes seconds.
func (m *Context) startAgents(ctx context.Context, b *Build, tb testbed.Testbed, cells []result.Cell) (agents, error) {
	all := agents{servers: map[result.Placement]*agent.Agent{}}
	var mu sync.Mutex
	eg, ctx := errgroup.WithContext(ctx)
	start := func(pod testbed.Pod, keep func(*agent.Agent)) {
		eg.Go(func() error {
			a, err := m.startAgent(ctx, b, pod)
			mu.Lock()
			defer mu.Unlock()
			keep(a)
			return err
		})
	}
	spec := tb.Spec()
	external := spec.Target != "" || spec.Volume.Class != ""
	if !external {
		start(tb.Pods()[0], func(a *agent.Agent) { all.client = a })
	}
	if spec.Volume.Class != "" {
		all.further = make([]*agent.Agent, spec.Nodes-1)
		for i := range all.further {
			start(tb.Pods()[i+1], func(a *agent.Agent) { all.further[i] = a })
		}
	}
	if m.able.PinsCPUs && hasNeighbour(spec.Conditions) {
		start(neighbourPod(tb), func(a *agent.Agent) { all.neighbour = a })
	}
	started := map[result.Placement]bool{}
	for _, cell := range cells {
		if started[cell.Placement] || m.Clustered(cell) {
			continue
		}
		started[cell.Placement] = true
		pod, err := serverPod(tb, cell.Placement)
		if external && cell.Placement == result.SameNode { // the first pod is on the target's own node
			pod, err = tb.Pods()[0], nil
		}
		if err != nil {
			return all, errors.Join(err, eg.Wait())
		}
		start(pod, func(a *agent.Agent) { all.servers[cell.Placement] = a })
	}
	err := eg.Wait()
	if external {
		all.client = all.servers[cells[0].Placement]
	}
	return all, err
}

// agentIn is the build's agent in a pod, started if there is none.
func (m *Context) agentIn(ctx context.Context, b *Build, pod testbed.Pod) (*agent.Agent, error) {
	for _, a := range b.agents {
		if a.Pod().Name() == pod.Name() {
			return a, nil
		}
	}
	return m.startAgent(ctx, b, pod)
}

func (m *Context) startAgent(ctx context.Context, b *Build, pod testbed.Pod) (*agent.Agent, error) {
	a, err := agent.Start(ctx, pod, m.Program)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	b.agents = append(b.agents, a)
	b.mu.Unlock()
	if !m.able.SharesMachine {
		if err := m.Observed.meet(ctx, a); err != nil {
			return nil, fmt.Errorf("looking at node %s: %w", pod.Node(), err)
		}
	}
	return a, nil
}

// serverPod is the pod that serves the first pod in the given placement.
func serverPod(tb testbed.Testbed, placement result.Placement) (testbed.Pod, error) {
	client := tb.Pods()[0]
	for _, p := range tb.Pods()[1:] {
		if same := p.Node() == client.Node(); same == (placement == result.SameNode) {
			return p, nil
		}
	}
	return nil, fmt.Errorf("the testbed has no pod for a server %s: it needs two pods on the first node, or a second node", placement)
}
