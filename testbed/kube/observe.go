package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/kube/nodeagent"
)

// nodeMonitors are the agents on nodes. All testbeds of a run share them: they look at namespaces that all of them use.
type nodeMonitors struct {
	launcher *Launcher

	mu     sync.Mutex
	posted map[string]*nodeMonitor // by the node's name
	pods   int                     // made so far
}

// nodeMonitor is a pod with an agent.
type nodeMonitor struct {
	making sync.Mutex // held while it is made
	agent  *nodeagent.Agent
	pod    *LivePod
	failed error
	// again is the first testbed for which one that was lost is made anew: the first that was opened after the agent was last known to be
	// there. So it is not made during a build that is being measured.
	again int
}

// at is the agent on a node for a testbed, made at its first use; nil where none is wanted. One that could not be made is not tried
// again. One that was lost is started anew in its pod, or with another pod when the next build asks for it.
func (l *nodeMonitors) at(ctx context.Context, node string, d *Driver, bed int) (*nodeagent.Agent, error) {
	if !l.launcher.options.NodeAgent {
		return nil, nil
	}
	opened := d.count()
	l.mu.Lock()
	if l.posted == nil {
		l.posted = map[string]*nodeMonitor{}
	}
	one := l.posted[node]
	if one == nil {
		one = &nodeMonitor{}
		l.posted[node] = one
	}
	l.mu.Unlock()
	one.making.Lock()
	defer one.making.Unlock()
	if one.agent != nil && one.agent.Alive() {
		one.again = opened
		return one.agent, nil
	}
	if one.failed != nil && (one.agent == nil || bed < one.again) {
		return nil, one.failed
	}
	err := l.post(ctx, one, node)
	if err != nil && one.agent != nil && one.pod != nil && ctx.Err() == nil {
		d.note(fmt.Sprintf("the agent on node %s was lost (%v): trials have no proof from that node until a build has another", node, err))
		if one.pod = nil; bed >= one.again {
			err = l.post(ctx, one, node)
		}
	}
	if err == nil {
		one.again, one.failed = opened, nil
		return one.agent, nil
	}
	if ctx.Err() == nil {
		if one.failed = err; bed >= one.again {
			one.again = opened
		}
	}
	return nil, err
}

// post starts an agent, in a pod made for it unless that is there.
func (l *nodeMonitors) post(ctx context.Context, o *nodeMonitor, node string) (err error) {
	if o.pod == nil {
		l.mu.Lock()
		number := l.pods
		l.pods++
		l.mu.Unlock()
		o.pod, err = l.launcher.Launch(ctx, Wish{
			Name: fmt.Sprintf("look-%d", number), Role: RoleNodeAgent, HostNetwork: true, Node: node, Security: NodeAgentSecurity(),
		})
		if err != nil {
			return fmt.Errorf("put an agent on node %s: %w", node, err)
		}
	}
	agent, err := nodeagent.Start(ctx, o.pod, o.pod.Program())
	if err != nil {
		return fmt.Errorf("put an agent on node %s: %w", node, err)
	}
	o.agent = agent
	return nil
}

// close ends the agents. Their pods go with the run.
func (l *nodeMonitors) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.posted {
		one.making.Lock()
		if one.agent != nil {
			_ = one.agent.Close() // its pod is about to go
		}
		one.making.Unlock()
	}
	clear(l.posted)
}

// NodeAgent is the agent on a node, nil unless Options.NodeAgent allows one. It ends with the driver.
func (d *Driver) NodeAgent(ctx context.Context, node string) (*nodeagent.Agent, error) {
	return d.nodeMonitors.at(ctx, node, d, d.count())
}

// mostStanding bounds how many nodes are looked at, each by a pod: a testbed has pods on few.
const mostStanding = 4

// Standing names what stands on the nodes that testbeds use first and belongs to no pod, by node: see nsmonitor.Standing. It is nil
// without node agents. What was read of some nodes is returned even where others could not be read.
func (d *Driver) Standing(ctx context.Context) (map[string][]string, error) {
	if !d.launcher.options.NodeAgent {
		return nil, nil
	}
	nodes, err := d.usable(ctx, 1)
	if err != nil {
		return nil, err
	}
	var group sync.WaitGroup
	nodes = nodes[:min(len(nodes), mostStanding)]
	found, errs := make([][]string, len(nodes)), make([]error, len(nodes))
	for i, node := range nodes {
		group.Go(func() {
			agent, err := d.NodeAgent(ctx, node)
			if err == nil {
				found[i], err = agent.Standing(ctx)
			}
			errs[i] = err
		})
	}
	group.Wait()
	all := map[string][]string{}
	for i, node := range nodes {
		if errs[i] == nil {
			all[node] = found[i]
		}
	}
	return all, errors.Join(errs...)
}

// count is how many testbeds were opened so far.
func (d *Driver) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.opened
}

// watcher is the testbed's path observer, made at its first use.
func (t *Testbed) watcher() *nodeagent.Observer {
	t.keeping.Lock()
	defer t.keeping.Unlock()
	if t.observer == nil {
		t.observer = nodeagent.NewObserver(t, nodeagent.Config{
			Program: t.driver.launcher.Program(), Reach: func() testbed.Reach { return reachOf(t.Spec().Network) },
			Address: func(p testbed.Pod) netip.Addr {
				if own := t.own(p); own != nil {
					return own.addressIn(t.Spec().Network)
				}
				return p.Address()
			},
			HostNetwork: func(p testbed.Pod) bool {
				own := t.own(p)
				return own != nil && own.host
			},
			NodeAddress: func(p testbed.Pod) netip.Addr {
				if own := t.own(p); own != nil && own.alive() != nil {
					return own.alive().HostAddress(t.family())
				}
				return netip.Addr{}
			},
			Node: func(ctx context.Context, node string) (*nodeagent.Agent, error) {
				return t.driver.nodeMonitors.at(ctx, node, t.driver, t.index)
			},
		})
	}
	return t.observer
}

// dismiss ends the path observer. The testbed must not be held meanwhile, for agents that are being started hold it.
func (t *Testbed) dismiss() {
	t.keeping.Lock()
	w := t.observer
	t.keeping.Unlock()
	if w != nil {
		_ = w.Close() // it never fails
	}
}

// reachOf is how servers are reached in a network.
func reachOf(networkName string) testbed.Reach {
	if isSecondary(networkName) {
		return testbed.ReachSecondary
	}
	reach := map[string]testbed.Reach{Host: testbed.ReachHost, ClusterIP: testbed.ReachService, NodePort: testbed.ReachNodePort}
	return cmp.Or(reach[networkName], testbed.ReachPod)
}

var _ testbed.PathObserver = (*Testbed)(nil)

// Instruments implements testbed.Testbed.
func (t *Testbed) Instruments() testbed.Instruments {
	return testbed.Instruments{PathObserver: t, WatchConfig: t.WatchConfig, Notes: t.Notes, Moved: t.Moved}
}

// Watch implements testbed.PathObserver.
func (t *Testbed) Watch(ctx context.Context, from, to testbed.Pod) (testbed.Watch, error) {
	return t.watcher().Watch(ctx, from, to)
}

// Count implements testbed.PathObserver.
func (t *Testbed) Count(ctx context.Context, from, to testbed.Pod) (map[network.Device]testbed.Counters, error) {
	return t.watcher().Count(ctx, from, to)
}
