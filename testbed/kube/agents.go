package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/result"
	"netdelta/testbed"
)

// What an agent of a node is said to do.
const (
	agentRuns = "running"
	agentGone = "gone"
)

// nodeAgents are a node's agents at one time: the containers of pods that are on every node and in its network, as network plugins and kube-proxy
// are, and when the network's agent last said that it is up.
type nodeAgents struct {
	containers map[agentKey]agentState
	reported   time.Time
	reason     string // the agent's word: "CiliumIsUp"
}

// agentKey names an agent so that the pod that takes another's place is the same: by the namespace and the DaemonSet.
type agentKey struct{ namespace, owner, container string }

// agentState is one agent.
type agentState struct {
	pod, uid string
	made     time.Time
	restarts int32
	now      corev1.ContainerState
	last     corev1.ContainerState
}

// agentLooks are the driver's looks at agents: testbeds that begin and end together share one.
type agentLooks struct {
	mu    sync.Mutex
	at    map[string]time.Time // by node
	known map[string]nodeAgents
}

// sharedFor is how long a look at a node's agents is good for.
const sharedFor = time.Second

// agentsOn looks at the agents of nodes. Where this user may not list the cluster's pods, only what agents say of themselves is known.
func (d *Driver) agentsOn(ctx context.Context, nodes []string) (map[string]nodeAgents, error) {
	l := &d.looks
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.at, l.known = map[string]time.Time{}, map[string]nodeAgents{}
	}
	all := map[string]nodeAgents{}
	for _, name := range nodes {
		if time.Since(l.at[name]) > sharedFor {
			found, err := d.agentsOf(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("look at the agents of node %s: %w", name, withFix(err))
			}
			l.at[name], l.known[name] = time.Now(), found
		}
		all[name] = l.known[name]
	}
	return all, nil
}

func (d *Driver) agentsOf(ctx context.Context, name string) (nodeAgents, error) {
	found := nodeAgents{containers: map[agentKey]agentState{}}
	node, err := d.cluster.API.Nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return found, err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeNetworkUnavailable {
			found.reported, found.reason = c.LastHeartbeatTime.Time, c.Reason
		}
	}
	pods, err := d.cluster.API.Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
	if apierrors.IsForbidden(err) {
		d.note("the pods of the cluster's own agents are not watched while it is measured: it takes the right to list pods of the cluster")
		return found, nil
	}
	if err != nil {
		return found, err
	}
	for _, p := range pods.Items {
		owner := metav1.GetControllerOf(&p)
		if !p.Spec.HostNetwork || owner == nil || owner.Kind != "DaemonSet" && owner.Kind != "Node" || p.Labels[LabelManagedBy] == ManagedBy {
			continue
		}
		by := owner.Name
		if owner.Kind == "Node" { // which starts it by a file
			by = p.Name
		}
		for _, s := range p.Status.ContainerStatuses {
			key, state := agentKey{p.Namespace, by, s.Name}, agentState{p.Name, string(p.UID), p.CreationTimestamp.Time, s.RestartCount, s.State, s.LastTerminationState}
			if other, there := found.containers[key]; !there || other.made.Before(state.made) {
				found.containers[key] = state // while one takes another's place both may be there
			}
		}
	}
	return found, nil
}

// changed says what happened to a node's agents between two looks, for the record: when each was lost, and when it was there again.
func (was nodeAgents) changed(node string, is nodeAgents) []result.ConfigChange {
	var all []result.ConfigChange
	at := "node " + node
	note := func(setting, reason string, lost, back time.Time) {
		all = append(all, result.ConfigChange{Device: at, Setting: setting, Was: agentRuns, Is: reason, At: lost})
		if !back.IsZero() {
			all = append(all, result.ConfigChange{Device: at, Setting: setting, Was: reason, Is: agentRuns, At: back})
		}
	}
	keys := slices.SortedFunc(maps.Keys(was.containers), func(a, b agentKey) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.owner, b.owner), cmp.Compare(a.container, b.container))
	})
	for _, key := range keys {
		before := was.containers[key]
		after, there := is.containers[key]
		setting := fmt.Sprintf("agent %s of pod %s", key.container, before.pod)
		switch {
		case !there:
			note(setting, agentGone, time.Time{}, time.Time{})
		case after.uid != before.uid:
			note(setting, "replaced by pod "+after.pod, after.made, after.runsSince())
		case after.restarts > before.restarts || after.now.Terminated != nil && before.now.Terminated == nil:
			end := cmp.Or(after.now.Terminated, after.last.Terminated)
			if end == nil {
				note(setting, "started again", after.runsSince(), after.runsSince())
				continue
			}
			note(setting, "ended ("+cmp.Or(end.Reason, "status "+strconv.Itoa(int(end.ExitCode)))+")", end.FinishedAt.Time, after.runsSince())
		}
	}
	if len(all) == 0 && !was.reported.IsZero() && is.reported.After(was.reported) {
		note("agent of the network", "started again ("+is.reason+")", is.reported, is.reported.Add(clockStep))
	}
	return all
}

// clockStep is what the times of Kubernetes' objects are cut to.
const clockStep = time.Second

// runsSince is when an agent certainly ran again, zero while it does not.
func (s agentState) runsSince() time.Time {
	if s.now.Running == nil {
		return time.Time{}
	}
	return s.now.Running.StartedAt.Add(clockStep)
}

// agentsWatch notices what happens to the agents of a testbed's nodes.
type agentsWatch struct {
	driver *Driver
	nodes  []string
	began  map[string]nodeAgents
}

// WatchConfig implements testbed.Instruments.WatchConfig: what may change here is that an agent of the cluster ends.
func (t *Testbed) WatchConfig(ctx context.Context) (testbed.ConfigWatch, error) {
	var nodes []string
	for _, p := range t.pods {
		if !slices.Contains(nodes, p.node) {
			nodes = append(nodes, p.node)
		}
	}
	began, err := t.driver.agentsOn(ctx, nodes)
	if err != nil {
		return nil, err
	}
	return &agentsWatch{t.driver, nodes, began}, nil
}

// lookWithin bounds the last look at agents.
const lookWithin = 5 * time.Second

// End implements testbed.ConfigWatch.
func (w *agentsWatch) End() ([]result.ConfigChange, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookWithin)
	defer cancel()
	now, err := w.driver.agentsOn(ctx, w.nodes)
	if err != nil {
		return nil, err
	}
	var all []result.ConfigChange
	for _, node := range w.nodes {
		all = append(all, w.began[node].changed(node, now[node])...)
	}
	return all, nil
}

// Close implements testbed.ConfigWatch.
func (w *agentsWatch) Close() error { return nil }
