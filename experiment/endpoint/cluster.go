package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// Cluster is the daemons that serve cells from several pods of a testbed, while networks are swapped under them.
type Cluster struct {
	// Further are the agents of its clients besides the first; who starts them sets it.
	Further []*agent.Agent

	key     string
	cell    result.Cell
	cpu     int // that its daemons are pinned to; -1 is any
	health  *Health
	members []*Service
	peers   []netip.Addr
	ports   []uint16 // at which clients reach the first pod, where a service stands in front of it
	remote  bool     // the pods are on nodes of others and share no file system
	failed  error    // why it did not start, or was given up
	vain    int      // recoveries in a row that did not help
}

// errGivenUp is matched by the error of a cluster that was given up.
var errGivenUp = errors.New("services were given up")

// ClusterPods are the pods that serve as a cluster: one on each node after the first client's.
func ClusterPods(tb testbed.Testbed, n int) ([]testbed.Pod, error) { return firstOfNodes(tb, 1, n) }

// FurtherClients are the pods of n clients of clusters besides the testbed's first pod: one on each node after the clusters'.
func FurtherClients(tb testbed.Testbed, n int) ([]testbed.Pod, error) {
	return firstOfNodes(tb, 1+tb.Spec().Peers.Count, n)
}

// firstOfNodes are the first pods of n nodes, which come after so many others.
func firstOfNodes(tb testbed.Testbed, after, n int) ([]testbed.Pod, error) {
	taken := map[string]bool{}
	var found []testbed.Pod
	for _, p := range tb.Pods() {
		if taken[p.Node()] {
			continue
		}
		taken[p.Node()] = true
		if len(taken) > after && len(found) < n {
			found = append(found, p)
		}
	}
	if len(found) < n {
		return nil, fmt.Errorf("the testbed has %d nodes, of %d that a cluster and its clients need", len(taken), after+n)
	}
	return found, nil
}

// StartCluster starts the daemons of a cluster that serves cells like the client's: in the first pod, then in all others at once. A
// cluster that does not start is given up, unless it has lost a pod; Recover says why.
func StartCluster(ctx context.Context, c Client, agents []*agent.Agent, health *Health) *Cluster {
	k := &Cluster{key: Key(c.Cell, c.Demand), cell: c.Cell, health: health, cpu: c.CPU, ports: c.Demand.Cluster.Ports, remote: c.Remote}
	for _, a := range agents {
		k.peers = append(k.peers, a.Pod().Address())
		k.members = append(k.members, &Service{Agent: a})
	}
	if why := health.whyGivenUp(k.key); why != "" {
		k.failed = fmt.Errorf("%w: %s", errGivenUp, why)
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
	if k.failed == nil || ctx.Err() != nil {
		return k
	}
	if lost := k.lost(); lost != nil {
		k.failed = lost
	} else {
		health.giveUp(k.key, k.failed.Error())
	}
	return k
}

// serve starts the daemons of one pod.
func (k *Cluster) serve(ctx context.Context, i int) (err error) {
	m := k.members[i]
	m.Session, err = m.Agent.ServeCluster(ctx, k.cell.Workload, k.cell.Params, workload.Member{Pod: i, Peers: k.peers, CPU: k.cpu, Separate: k.remote}, clusterWithin)
	if err != nil {
		return fmt.Errorf("starting the services of %s: %w", k.key, err)
	}
	return nil
}

const (
	// recoverWithin is how long services may be unwell before they are restarted, and how long a restart may take to help;
	// recoverPause is how often they are asked meanwhile.
	recoverWithin = 15 * time.Second
	recoverPause  = 250 * time.Millisecond
	// maxVain is how many recoveries in a row may fail before a cluster is given up: a single network may be the cause of one.
	maxVain = 3
)

// Recover waits until the cluster is well, and restarts what does not recover by itself. After an error the cluster may still be well
// on another network, unless it was given up.
func (k *Cluster) Recover(ctx context.Context) error {
	if k.failed != nil {
		return k.failed
	}
	fixed, patience := false, time.Now().Add(recoverWithin)
	for {
		if err := k.lost(); err != nil {
			return err
		}
		ailment, ended := check(ctx, k.members)
		overdue := time.Now().After(patience)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ailment == "":
			k.vain = 0
			return nil
		case fixed && overdue:
			return k.notRecovered(ailment)
		case ended || overdue:
			if err := k.fix(ctx, ailment, ended); err != nil {
				return err
			}
			fixed, patience = true, time.Now().Add(recoverWithin)
			continue
		}
		select {
		case <-time.After(recoverPause):
		case <-ctx.Done():
		}
	}
}

// lost says which pod of the cluster was lost, and why; nil while all are there.
func (k *Cluster) lost() error {
	for _, m := range k.members {
		if err := Lost(m.Agent); err != nil {
			return fmt.Errorf("%s: %w", k.key, err)
		}
	}
	return nil
}

// fix restarts what has ended. Where nothing has, it repairs unwell members one after another until all are well.
func (k *Cluster) fix(ctx context.Context, ailment string, ended bool) error {
	if ended && !k.health.Ended(k.key, ailment) {
		k.failed = fmt.Errorf("%w: %s", errGivenUp, k.health.whyGivenUp(k.key))
		return k.failed
	}
	if !ended {
		k.health.NoteAilment("the services of %s were unwell and were repaired: %s", ailment, k.key)
	}
	for _, m := range k.members {
		if m.health.Unwell == "" || ended && !m.health.Ended {
			continue
		}
		err := m.Restart(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && ended:
			return k.giveUp("starting the services of %s again: %w", k.key, err)
		}
		if now, _ := check(ctx, k.members); now == "" {
			break
		}
	}
	return nil
}

// notRecovered counts a recovery that did not help.
func (k *Cluster) notRecovered(ailment string) error {
	if k.vain++; k.vain < maxVain {
		return fmt.Errorf("the services of %s stay unwell: %s", k.key, ailment)
	}
	return k.giveUp("the services of %s stay unwell, whatever is done: %s", k.key, ailment)
}

// giveUp excludes the cluster from the rest of the run, unless it has lost a pod, which says little of its daemons.
func (k *Cluster) giveUp(format string, args ...any) error {
	if lost := k.lost(); lost != nil {
		return lost
	}
	k.failed = fmt.Errorf("%w: %w", errGivenUp, fmt.Errorf(format, args...))
	k.health.giveUp(k.key, k.failed.Error())
	return k.failed
}

// GivenUp says whether the cluster was given up after it had started. One that never started is not: its cells fail and say why.
func (k *Cluster) GivenUp() bool { return errors.Is(k.failed, errGivenUp) }

// Usable says whether the cluster has started and was not given up.
func (k *Cluster) Usable() bool { return k.failed == nil }

// Lost notes that a pod of the cluster, or of its clients, was lost, and that all are made anew. That is no reason to give the cluster up: what
// befalls a pod says little of its daemons, and cells that fail again and again are given up for that.
func (k *Cluster) Lost() {
	why := "a client's pod was lost"
	if err := k.lost(); err != nil {
		why = err.Error()
	}
	k.health.NoteAilment("the pods of %s were made anew: %s", why, k.key)
}

// Check asks all members at once how they are.
func (k *Cluster) Check(ctx context.Context) (ailment string, ended bool) {
	return check(ctx, k.members)
}

// Pods are the cluster's, in order.
func (k *Cluster) Pods() []testbed.Pod {
	return gather.Each(k.members, func(m *Service) testbed.Pod { return m.Agent.Pod() })
}

// For returns the endpoint of a client of the cluster.
func (k *Cluster) For(c Client) Endpoint { return &clusterEndpoint{k, c} }

// clusterEndpoint is a cluster as one client sees it.
type clusterEndpoint struct {
	*Cluster
	client Client
}

// Info implements Endpoint. On this machine the address stays unknown: the client finds its own way to all pods.
func (e *clusterEndpoint) Info() Info {
	i := Info{Name: "its cluster", Agent: e.members[0].Agent, Services: e.members, Peers: e.Pods()[1:], Shared: true}
	if e.remote {
		all, port := e.addresses()
		i.Address = netip.AddrPortFrom(all[0], port)
	}
	return i
}

// addresses are where the client reaches the pods, or the services in front of them in the present network, and the port at which it
// reaches the first; 0 where it is told of none.
func (e *clusterEndpoint) addresses() (all []netip.Addr, port uint16) {
	all = slices.Clone(e.peers)
	if !e.remote || len(e.ports) == 0 {
		return all, 0
	}
	port = e.ports[0]
	for i, m := range e.members {
		at := e.client.Testbed.Endpoint(e.client.Agent.Pod(), m.Agent.Pod(), e.ports[0])
		if !at.IsValid() {
			continue
		}
		if all[i] = at.Addr(); i == 0 {
			port = at.Port()
		}
	}
	return all, port
}

func (e *clusterEndpoint) Open(context.Context) error  { return nil }
func (e *clusterEndpoint) Close(context.Context) error { return nil }

func (e *clusterEndpoint) Dial(ctx context.Context) (int, error) {
	c := e.client
	peers, port := e.addresses()
	return c.Agent.DialCluster(ctx, c.Cell.Workload, c.Cell.Params, workload.Member{Pod: -1, Peers: peers, Port: port, CPU: c.CPU, Separate: e.remote}, dialWithin)
}
