package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"netdelta/testbed"
)

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
	var all sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for _, group := range free {
		for _, held := range group {
			all.Go(func() {
				err := held.Close()
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}
