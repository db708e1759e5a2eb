package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/experiment/endpoint"
	"netdelta/result"
	"netdelta/testbed"
)

// Beds are the testbeds of a run whose pods, agents and clusters stay while networks are swapped under them.
type Beds struct {
	context *Context
	beds    map[bedKey]*bed
	spent   time.Duration
}

// bedKey is what networks share that are swapped under the same pods.
type bedKey struct {
	Underlay
	network string // the only one of these pods, "" where they take all others
}

// bed is one testbed.
type bed struct {
	tb       testbed.Testbed
	agents   agents
	opened   Build                        // what is closed with it
	clusters map[string]*endpoint.Cluster // by key
}

// NewBeds returns the beds of a run; each is opened when it is first needed.
func NewBeds(m *Context) *Beds { return &Beds{context: m, beds: map[bedKey]*bed{}} }

func (b *Beds) key(g GroupKey) bedKey {
	if b.context.ownPods[g.Network] {
		return bedKey{g.Underlay, g.Network}
	}
	return bedKey{Underlay: g.Underlay}
}

// Spent is how long opening beds and starting clusters took since the last call.
func (b *Beds) Spent() time.Duration {
	spent := b.spent
	b.spent = 0
	return spent
}

// StartClusters opens the bed of a group and starts the clusters that the cells of its underlay need.
func (b *Beds) StartClusters(ctx context.Context, g Group, cells []result.Cell) error {
	bed, _, err := b.open(ctx, g, cells)
	if err == nil {
		err = b.serve(ctx, bed, g.Underlay, cells)
	}
	return err
}

// SwapIn puts the group's network under the pods and connects its cells. The bed has agents and clusters for all cells of the build.
func (b *Beds) SwapIn(ctx context.Context, g Group, cells []result.Cell) []*Session {
	sessions := b.context.newSessions(g.Cells)
	bed, opened, err := b.open(ctx, g, cells)
	if err == nil && !opened {
		err = bed.tb.Swap(ctx, g.Network)
	}
	if err == nil {
		err = b.context.Observed.Look(ctx, bed.tb, g.Network)
	}
	if err == nil {
		err = b.serve(ctx, bed, g.Underlay, cells)
	}
	if err != nil {
		b.context.Observed.Fail(err)
		return failAll(sessions, fmt.Errorf("swapping in network %s: %w", g.Network, err))
	}
	select {
	case <-time.After(Settle):
	case <-ctx.Done():
	}
	for _, s := range sessions {
		if s.demand.Cluster == nil {
			continue
		}
		if err := bed.clusters[s.demand.Cluster.Key].Recover(ctx); err != nil {
			s.Failed = fmt.Errorf("%s on network %s: %w", s.Cell.ID, g.Network, err)
		}
	}
	b.context.openSessions(ctx, sessions, bed.agents, bed.tb, bed.clusters)
	for _, s := range sessions {
		if s.Failed != nil && s.demand.Cluster != nil && bed.clusters[s.demand.Cluster.Key].Usable() {
			s.Failed = b.retry(ctx, s)
		}
	}
	return sessions
}

// retry opens a connection after all whose services were unwell when it was opened.
func (b *Beds) retry(ctx context.Context, s *Session) error {
	ailment, _ := s.Check(ctx)
	if ailment == "" {
		return s.Failed
	}
	b.context.Health.NoteAilment("the services of %s were unwell when %s was to be measured, which waited for them: %s", ailment, s.ServiceKey(), s.Cell.ID)
	if err := s.endpoint.Recover(ctx); err != nil {
		return errors.Join(s.Failed, err)
	}
	return s.dial(ctx)
}

// Usable leaves out the cells of a group whose cluster was given up after it had started: the run's notes say so. Cells of
// clusters that never started fail and say why.
func (b *Beds) Usable(g Group) []result.Cell {
	bed := b.beds[b.key(g.GroupKey)]
	return slices.DeleteFunc(slices.Clone(g.Cells), func(c result.Cell) bool {
		d := b.context.demand(c)
		if bed == nil || d.Cluster == nil {
			return false
		}
		k := bed.clusters[d.Cluster.Key]
		return k != nil && k.GivenUp()
	})
}

// serve starts the clusters that the cells of an underlay need and that are not there yet.
func (b *Beds) serve(ctx context.Context, bed *bed, u Underlay, cells []result.Cell) error {
	start := time.Now()
	defer func() { b.spent += time.Since(start) }()
	own := slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool { return GroupOf(c).Underlay != u })
	return b.context.startClusters(ctx, &bed.opened, bed.tb, own, bed.clusters)
}

// open is the bed of a group. It is opened, with the group's network, when it is first needed; one whose agents were lost is replaced.
func (b *Beds) open(ctx context.Context, g Group, cells []result.Cell) (found *bed, opened bool, err error) {
	key := b.key(g.GroupKey)
	if old := b.beds[key]; old != nil {
		if !slices.ContainsFunc(old.opened.agents, func(a *agent.Agent) bool { return !a.Alive() }) {
			return old, false, nil
		}
		delete(b.beds, key)
		for _, k := range old.clusters {
			k.Lost()
		}
		if err := old.opened.Close(); err != nil {
			return nil, false, err
		}
	}
	start := time.Now()
	defer func() { b.spent += time.Since(start) }()
	spec := b.context.spec(g)
	spec.PodsOutlive = true
	tb, err := b.context.Driver.Open(ctx, spec)
	if err != nil {
		return nil, false, err
	}
	found = &bed{tb: tb, clusters: map[string]*endpoint.Cluster{}}
	found.opened.hold(tb.Close)
	if found.agents, err = b.context.startAgents(ctx, &found.opened, tb, cells); err != nil {
		return nil, false, errors.Join(err, found.opened.Close())
	}
	b.beds[key] = found
	return found, true, nil
}

// Close removes all beds.
func (b *Beds) Close() error {
	var all []func() error
	for _, bed := range b.beds {
		all = append(all, bed.opened.Close)
	}
	clear(b.beds)
	return together(all)
}

// buildsOfPods is how many builds in a row use the same pods on nodes of others, where pods take seconds to come up. Each build has
// new processes and connections, from which most of what builds differ by comes (docs/adr/0047-pods-serve-six-builds.md).
const buildsOfPods = 6

// keptTestbeds are testbeds that no build uses at the moment and that the next ones take over. It is safe for concurrent use.
type keptTestbeds struct {
	mu     sync.Mutex
	free   map[GroupKey][]*heldTestbed
	spent  time.Duration // on making pods, since it was last asked
	cost   time.Duration // of making all pods anew, as they took last
	served int           // builds that the pods of the present one have served, it included
}

// heldTestbed is a testbed that a build uses, or that waits for the next one.
type heldTestbed struct {
	testbed.Testbed
	served int // builds, the present one included
}

// keeps says whether the testbed of a group goes on to the next build. It does not where nodes are made for it, where the cluster is
// changed under it, and where something else than processes and connections belongs to a build: programs with their data, volumes.
func (m *Context) keeps(g Group) bool {
	return !m.able.OwnsNodes && len(m.Changes) == 0 && g.target == "" && g.class == "" && !m.StartsPrograms(g.Cells)
}

// openAgents gives a build the testbed of a group with new agents in it. If they can't be started in pods that served a build before,
// these are replaced: they may have been lost since.
func (m *Context) openAgents(ctx context.Context, b *Build, g Group, sessions []*Session) (testbed.Testbed, agents, error) {
	if held := m.kept.take(g.GroupKey); held != nil {
		m.Observed.Say(fmt.Sprintf("each build had new processes and connections; its pods served up to %d builds in a row", buildsOfPods))
		b.hold(m.release(g, held, sessions))
		if all, err := m.startAgents(ctx, b, held, g.Cells); err == nil || ctx.Err() != nil {
			return held.Testbed, all, err
		}
		held.served = buildsOfPods // so that it is closed with the build
	}
	began := time.Now()
	tb, err := m.Open(ctx, g)
	if err != nil {
		return nil, agents{}, err
	}
	keeps := b.keeps && m.keeps(g)
	if keeps {
		b.hold(m.release(g, &heldTestbed{tb, 1}, sessions))
	} else {
		b.hold(tb.Close)
	}
	all, err := m.startAgents(ctx, b, tb, g.Cells)
	if keeps {
		m.kept.took(time.Since(began))
	}
	if err != nil {
		err = fmt.Errorf("network %s: %w", g.Network, err)
	}
	return tb, all, err
}

// release gives back a testbed at the end of a build: to the next one, unless it has served its builds or something failed in it.
func (m *Context) release(g Group, held *heldTestbed, sessions []*Session) func() error {
	return func() error {
		if held.served >= buildsOfPods || slices.ContainsFunc(sessions, func(s *Session) bool { return s.Failed != nil }) {
			return held.Close()
		}
		m.kept.put(g.GroupKey, held)
		return nil
	}
}

func (k *keptTestbeds) take(key GroupKey) *heldTestbed {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.free[key])
	if n == 0 {
		return nil
	}
	held := k.free[key][n-1]
	k.free[key] = k.free[key][:n-1]
	held.served++
	k.served = held.served
	return held
}

func (k *keptTestbeds) put(key GroupKey, held *heldTestbed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.free == nil {
		k.free = map[GroupKey][]*heldTestbed{}
	}
	k.free[key] = append(k.free[key], held)
}

// took counts how long pods took to come up. All networks' pods start at once, so the slowest counts.
func (k *keptTestbeds) took(d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spent, k.served = max(k.spent, d), 1
}

// SpentOnPods is how long pods that serve several builds took to come up since the last call.
func (m *Context) SpentOnPods() time.Duration {
	m.kept.mu.Lock()
	defer m.kept.mu.Unlock()
	spent := m.kept.spent
	m.kept.spent = 0
	if spent > 0 {
		m.kept.cost = spent
	}
	return spent
}

// PodsDue is how long the next build will wait for new pods: nothing while the present pods serve it too.
func (m *Context) PodsDue() time.Duration {
	m.kept.mu.Lock()
	defer m.kept.mu.Unlock()
	if m.kept.served < buildsOfPods {
		return 0
	}
	return m.kept.cost
}

// CloseKept removes the testbeds that wait for a further build. It is idempotent.
func (m *Context) CloseKept() error {
	m.kept.mu.Lock()
	free := m.kept.free
	m.kept.free = nil
	m.kept.mu.Unlock()
	var all []func() error
	for _, group := range free {
		for _, held := range group {
			all = append(all, held.Close)
		}
	}
	return together(all)
}
