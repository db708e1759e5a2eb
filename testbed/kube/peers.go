package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/testbed"
)

// peers are the pods of a testbed that serve as one: pods of a StatefulSet, each on a node without the client. Which of them is
// which pod of the testbed is by the node that it was scheduled to, so that in all testbeds of a run the same nodes have the same parts.
type peers struct {
	bed *Testbed

	mu     sync.Mutex
	made   bool
	byNode map[string]string // the names of the pods, by node
}

// newPeers are the peers that the testbed's spec asks for, nil for none.
func newPeers(t *Testbed) *peers {
	if t.spec.Peers.Count == 0 {
		return nil
	}
	return &peers{bed: t}
}

// has says whether a pod is among the peers: the first of each node but the first.
func (r *peers) has(p *pod) bool {
	if r == nil {
		return false
	}
	each := r.bed.spec.PodsPerNode
	return p.index > 0 && p.index%each == 0 && p.index/each <= r.bed.spec.Peers.Count
}

// name is what follows the run in the StatefulSet's name.
func (r *peers) name() string { return fmt.Sprintf("t%d-peers", r.bed.index) }

// nodes are those that the peers stand on.
func (r *peers) nodes() []string {
	var names []string
	for _, p := range r.bed.pods {
		if r.has(p) {
			names = append(names, p.node)
		}
	}
	return names
}

// adopt waits until the peer on a pod's node is up, and brings the program there. The first one that is asked for makes all.
func (r *peers) adopt(ctx context.Context, p *pod) (*LivePod, error) {
	names, err := r.ensure(ctx)
	if err != nil {
		return nil, err
	}
	l := r.bed.driver.launcher
	live, err := l.Adopt(ctx, l.cluster.Namespace, names[p.node])
	if err != nil {
		return nil, err
	}
	live.first, live.last = p.Ports()
	l.options.Log("pod %s is up on %s, of a StatefulSet", live.Name(), live.Node())
	return live, nil
}

// ensure makes the StatefulSet unless it is there, and says which of its pods is on which node.
func (r *peers) ensure(ctx context.Context) (map[string]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byNode != nil {
		return r.byNode, nil
	}
	l := r.bed.driver.launcher
	sets, set := l.cluster.API.StatefulSets(l.cluster.Namespace), r.manifest()
	r.made = true
	_, err := create(ctx, sets, "StatefulSet", set)
	if err != nil {
		return nil, err
	}
	r.byNode, err = r.scheduled(ctx, set.Name)
	if err != nil {
		return nil, fmt.Errorf("wait for the pods of StatefulSet %s: %w", set.Name, err)
	}
	return r.byNode, nil
}

// manifest is the StatefulSet.
func (r *peers) manifest() *appsv1.StatefulSet {
	first := r.bed.pods[slices.IndexFunc(r.bed.pods, r.has)]
	w := first.wish()
	w.Name, w.Role, w.Labels, w.Memory, w.Node = r.name(), RoleServer, r.bed.labels("peers"), r.bed.spec.Peers.Memory, ""
	return r.bed.driver.launcher.StatefulSet(w, r.nodes())
}

// StatefulSet has as many pods of a wish as there are nodes: one on each of them, and none on the node of another pod of their testbed.
// A pod that is lost is made anew by the cluster, under the same name: its users find out by its UID.
func (l *Launcher) StatefulSet(w Wish, nodes []string) *appsv1.StatefulSet {
	pod := l.Manifest(w)
	pod.Spec.RestartPolicy = corev1.RestartPolicyAlways // no other is allowed
	pod.Spec.Affinity = onNodes(nodes...)
	testbed := metav1.LabelSelector{MatchLabels: map[string]string{LabelRun: w.Labels[LabelRun], LabelTestbed: w.Labels[LabelTestbed]}}
	pod.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: &testbed, TopologyKey: corev1.LabelHostname}},
	}
	labels := maps.Clone(pod.Labels)
	delete(labels, LabelPod)
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, Labels: labels},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(len(nodes))), ServiceName: pod.Name, PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector: &metav1.LabelSelector{MatchLabels: w.Labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec,
			},
		},
	}
}

// scheduled waits until all peers have a node.
func (r *peers) scheduled(ctx context.Context, name string) (map[string]string, error) {
	l := r.bed.driver.launcher
	for waited := range Polling(ctx, apiPause) {
		selector := metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: r.bed.labels("peers")})
		list, err := l.cluster.API.Pods(l.cluster.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		switch {
		case transient(err):
			list = &corev1.PodList{}
		case err != nil:
			return nil, withFix(err)
		}
		found, last := map[string]string{}, err
		for i := range list.Items {
			pod := &list.Items[i]
			if pod.Spec.NodeName != "" {
				found[pod.Spec.NodeName] = pod.Name
				continue
			}
			var hopeless bool
			if hopeless, last = l.obstacle(ctx, pod, waited); hopeless {
				return nil, fmt.Errorf("pod %s: %w", pod.Name, last)
			}
		}
		if len(found) == r.bed.spec.Peers.Count {
			return found, nil
		}
		if waited > l.options.Within {
			words, _ := l.cluster.lastWarning(ctx, l.cluster.Namespace, "StatefulSet", name)
			return nil, fmt.Errorf("%d of %d have a node after %s: %w%s", len(found), r.bed.spec.Peers.Count, l.options.Within, last, sentence("", words))
		}
	}
	return nil, context.Cause(ctx)
}

// remove takes the StatefulSet out of the cluster; its pods are the testbed's to wait for. It is idempotent, and has nothing to do
// where there are no peers.
func (r *peers) remove() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.made {
		return nil
	}
	c := r.bed.driver.cluster
	return remove(c.API.StatefulSets(c.Namespace), "StatefulSet", r.bed.driver.Run().Name(r.name()))
}

// addPorts has a Service lead to further ports, by TCP.
func addPorts(s *corev1.Service, ports [4]uint16) {
	for _, port := range ports {
		if port == 0 || s.Spec.ClusterIP == corev1.ClusterIPNone {
			continue
		}
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: serviceName(corev1.ProtocolTCP, int32(port)), Protocol: corev1.ProtocolTCP, Port: int32(port), TargetPort: intstr.FromInt32(int32(port)),
		})
	}
}

// peersPossible says what no cluster can do for peers.
func peersPossible(spec testbed.Spec) error {
	unsupported := func(need string) error {
		return &testbed.UnsupportedError{
			Feature: "network " + spec.Network + " to services in several pods", Need: need, Fix: "measure networks host, pod and headless, and clusterip and nodeport where the services take them",
		}
	}
	switch {
	case spec.Peers.Count == 0:
		return nil
	case (spec.Network == ClusterIP || spec.Network == NodePort) && spec.Peers.Ports[0] == 0:
		return unsupported("daemons that don't tell their clients themselves where they are")
	}
	return nil
}

// peersFit says whether a network takes peers, whether there are nodes enough for peers, and the right to make them.
func (d *Driver) peersFit(ctx context.Context, spec testbed.Spec) error {
	if spec.Peers.Count == 0 {
		return nil
	}
	if err := peersPossible(spec); err != nil {
		return err
	}
	nodes, err := d.Choose(ctx, spec.Peers.Nodes())
	if tooFew := (*nodesError)(nil); errors.As(err, &tooFew) {
		clients, fewer := "a client on one more", "workloads that have one server"
		if n := spec.Peers.Clients; n > 1 {
			clients, fewer = fmt.Sprintf("clients on %d others", n), "with fewer servers or clients (osds, client_pods)"
		}
		return tooFew.unsupported(fmt.Sprintf("a service of %d pods on a node each, and %s", spec.Peers.Count, clients), fewer)
	}
	if err != nil {
		return err
	}
	trial := &Testbed{driver: d, index: trialIndex, spec: spec, slot: 0}
	trial.spec.PodsPerNode = 1
	for j, n := range nodes {
		trial.pods = append(trial.pods, &pod{bed: trial, index: j, node: n, host: spec.Network == Host})
	}
	trial.peers = newPeers(trial)
	return dryCreate(ctx, d.cluster.API.StatefulSets(d.cluster.Namespace), "StatefulSet", trial.peers.manifest())
}

// trialIndex is the number of a testbed that is never made.
const trialIndex = 0
