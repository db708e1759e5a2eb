package experiment

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// cluster is the daemons that serve cells from several pods of a testbed, while networks are swapped beneath them.
type cluster struct {
	of      string // for the ward, and for people
	cell    result.Cell
	cpu     int // that its daemons are pinned to, -1 for any
	ward    *ward
	members []*service
	peers   []netip.Addr
	ports   []uint16 // at which clients reach the first pod, where something may stand in front of it
	apart   bool     // the pods share no file system
	failed  error    // why it did not start
	vain    int      // recoveries in a row that did not help
}

// errLost is matched by the error of a cluster that was given up.
var errLost = errors.New("services were given up")

// clusterPods are the pods that serve as a cluster: one on each node but the client's.
func clusterPods(tb testbed.Testbed, n int) ([]testbed.Pod, error) {
	pods := tb.Pods()
	taken := map[string]bool{pods[0].Node(): true}
	var found []testbed.Pod
	for _, p := range pods {
		if !taken[p.Node()] && len(found) < n {
			taken[p.Node()] = true
			found = append(found, p)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("the testbed has no %d nodes beside the client's, which the cluster needs", n)
	}
	return found, nil
}

// clusterCPU is the processor that a cluster is pinned to: none, unless neighbours compete for it, or are kept away from it.
func (st *stage) clusterCPU(c result.Cell) int {
	if !neighboured(c.Params.Conditions) || len(st.measuring) == 0 {
		return -1
	}
	return st.measuring[0]
}

// startCluster starts the daemons of a cluster, those of the first pod first, then all others at once. A cluster that does
// not start is given up; it says why.
func (st *stage) startCluster(ctx context.Context, c result.Cell, d workload.Demand, agents []*agent.Agent) *cluster {
	k := &cluster{of: charge(c, d), cell: c, ward: st.ward, members: make([]*service, len(agents)), cpu: st.clusterCPU(c), ports: d.Cluster.Ports, apart: !st.able.OwnsNodes}
	for i, a := range agents {
		k.peers = append(k.peers, a.Pod().Address())
		k.members[i] = &service{agent: a}
	}
	if why := st.ward.lost[k.of]; why != "" {
		k.failed = fmt.Errorf("%w: %s", errLost, why)
		return k
	}
	k.failed = k.serve(ctx, 0)
	if k.failed == nil {
		eg, egCtx := errgroup.WithContext(ctx)
		for i := 1; i < len(agents); i++ {
			eg.Go(func() error { return k.serve(egCtx, i) })
		}
		k.failed = eg.Wait()
	}
	if k.failed != nil && ctx.Err() == nil {
		k.ward.lose(k.of, k.failed.Error())
	}
	return k
}

// serve starts the daemons of one pod.
func (k *cluster) serve(ctx context.Context, i int) (err error) {
	m := k.members[i]
	m.session, err = m.agent.ServeCluster(ctx, k.cell.Workload, k.cell.Params, workload.Place{Pod: i, Peers: k.peers, CPU: k.cpu, Apart: k.apart}, clusterWithin)
	if err != nil {
		return fmt.Errorf("starting the services of %s: %w", k.of, err)
	}
	return nil
}

// check asks all members how they are, at once.
func (k *cluster) check(ctx context.Context) (words string, ended bool) {
	var wg sync.WaitGroup
	for _, m := range k.members {
		wg.Go(func() { m.check(ctx) })
	}
	wg.Wait()
	return ailment(k.members)
}

const (
	// recoverWithin is how long services may be unwell before something is done about it, and how long what was done may take to
	// help; recoverPause is how often they are asked meanwhile.
	recoverWithin = 15 * time.Second
	recoverPause  = 250 * time.Millisecond
	// vainMost is how many times in a row a cluster may stay unwell, whatever is done, before it is given up: a single network
	// may be to blame for one.
	vainMost = 3
)

// recover waits until the cluster is well, and mends it where it does not become so by itself. An error that matches errLost
// is of a cluster that was given up; otherwise it may still do well on another network.
func (k *cluster) recover(ctx context.Context) error {
	if k.failed != nil {
		return k.failed
	}
	mended, patience := false, time.Now().Add(recoverWithin)
	for {
		for _, m := range k.members {
			if !m.agent.Alive() {
				return fmt.Errorf("the pod %s of %s was lost", m.agent.Pod().Name(), k.of)
			}
		}
		words, ended := k.check(ctx)
		overdue := time.Now().After(patience)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case words == "":
			k.vain = 0
			return nil
		case mended && overdue:
			return k.stayed(words)
		case ended || overdue:
			if err := k.mend(ctx, words, ended); err != nil {
				return err
			}
			mended, patience = true, time.Now().Add(recoverWithin)
			continue
		}
		select {
		case <-time.After(recoverPause):
		case <-ctx.Done():
		}
	}
}

// mend restarts what has ended. Where nothing has, those that are unwell are made whole, one after another until all are well.
func (k *cluster) mend(ctx context.Context, words string, ended bool) error {
	if ended && !k.ward.died(k.of, words) {
		k.failed = fmt.Errorf("%w: %s", errLost, k.ward.lost[k.of])
		return k.failed
	}
	if !ended {
		k.ward.note("the services of %s were unwell and were made whole: %s", k.of, brief(words))
	}
	for _, m := range k.members {
		if m.health.Unwell == "" || ended && !m.health.Ended {
			continue
		}
		err := m.restart(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && ended:
			k.failed = fmt.Errorf("%w: starting the services of %s again: %w", errLost, k.of, err)
			k.ward.lose(k.of, k.failed.Error())
			return k.failed
		}
		if now, _ := k.check(ctx); now == "" {
			break
		}
	}
	return nil
}

// stayed counts that nothing helped.
func (k *cluster) stayed(words string) error {
	if k.vain++; k.vain < vainMost {
		return fmt.Errorf("the services of %s stay unwell: %s", k.of, words)
	}
	k.failed = fmt.Errorf("%w: the services of %s stay unwell, whatever is done: %s", errLost, k.of, words)
	k.ward.lose(k.of, k.failed.Error())
	return k.failed
}

// pods are those of the cluster.
func (k *cluster) pods() []testbed.Pod {
	var all []testbed.Pod
	for _, m := range k.members {
		all = append(all, m.agent.Pod())
	}
	return all
}

// aside are the pods between which clusters, and a client of theirs, talk beside what is measured.
func aside(client *agent.Agent, clusters map[string]*cluster) []testbed.Pod {
	if len(clusters) == 0 {
		return nil
	}
	all := []testbed.Pod{client.Pod()}
	for _, k := range clusters {
		for _, p := range k.pods() {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// dial opens a client of the cluster.
func (k *cluster) dial(ctx context.Context, tb testbed.Testbed, a *agent.Agent, c result.Cell, cpu int) (int, error) {
	return a.DialCluster(ctx, c.Workload, c.Params, workload.Place{Pod: -1, Peers: k.reached(tb, a), CPU: cpu, Apart: k.apart}, dialWithin)
}

// reached is where a client reaches the pods: at what stands in front of them in the present network, where something does.
func (k *cluster) reached(tb testbed.Testbed, client *agent.Agent) []netip.Addr {
	all := slices.Clone(k.peers)
	for i, m := range k.members {
		if !k.apart || len(k.ports) == 0 {
			break
		}
		if at := tb.Endpoint(client.Pod(), m.agent.Pod(), k.ports[0]); at.IsValid() {
			all[i] = at.Addr()
		}
	}
	return all
}

// called is where a client reaches the first pod, at port 0 where the client finds its own way to all pods.
func (k *cluster) called(tb testbed.Testbed, client *agent.Agent) netip.AddrPort {
	port := uint16(0)
	if len(k.ports) > 0 {
		port = k.ports[0]
	}
	return netip.AddrPortFrom(k.reached(tb, client)[0], port)
}
