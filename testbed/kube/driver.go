package kube

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
)

// Name is the name of the driver, and of the testbed in studies.
const Name = "kubernetes"

// Driver opens testbeds whose pods run in a cluster. It is safe for concurrent use.
type Driver struct {
	cluster      *Cluster
	launcher     *Launcher
	lease        *lease
	nodeMonitors *nodeMonitors

	choosing sync.Mutex
	chosen   []string // nodes, in the order in which they are used

	mu       sync.Mutex
	opened   int          // testbeds so far
	nodePods int          // so far
	slots    map[int]bool // ranges of ports on the nodes that are taken
	said     []string     // to be told with every testbed
	asked    map[testbed.Spec]error
	noDNS    bool                    // the cluster has no name service
	sites    map[string]testbed.Site // of endpoints, by host

	idling   sync.Mutex // held while idle pods are made
	idlePods []*stream  // which keep them up
	trying   sync.Mutex // held while it is tried whether policies are enforced
	tried    bool
	policies error // why they are not
	// enforcing says that policies were seen to be enforced.
	enforcing atomic.Bool

	looks agentLooks // at the cluster's own agents

	equipping sync.Mutex
	equipped  map[string]bool // which programs the pods' image has
}

var _ testbed.Provider = (*Driver)(nil)

// NewDriver checks the options. It asks the cluster nothing. Close removes what testbeds have left.
func NewDriver(c *Cluster, o Options) (*Driver, error) {
	l, err := NewLauncher(c, o)
	if err != nil {
		return nil, err
	}
	return &Driver{
		cluster: c, launcher: l, lease: &lease{cluster: c, run: l.Run()}, nodeMonitors: &nodeMonitors{launcher: l},
		slots: map[int]bool{}, asked: map[testbed.Spec]error{}, equipped: map[string]bool{},
	}, nil
}

// Kind implements testbed.Provider.
func (d *Driver) Kind() string { return Name }

// Run is what all objects of the run are labelled with.
func (d *Driver) Run() RunID { return d.launcher.Run() }

// Launcher makes the pods of the driver's testbeds.
func (d *Driver) Launcher() *Launcher { return d.launcher }

// Supports implements testbed.Provider: it has the API server go through the motions of making what the network needs. What it said
// once is taken to hold for the run.
func (d *Driver) Supports(ctx context.Context, spec testbed.Spec) error {
	key := testbed.Spec{Network: spec.Network, Family: spec.Family, PodsOutlive: spec.PodsOutlive, Conditions: spec.Conditions.Plain(), Target: spec.Target, Volume: spec.Volume, Peers: spec.Peers}
	d.mu.Lock()
	err, known := d.asked[key]
	d.mu.Unlock()
	if known {
		return err
	}
	err = d.supports(ctx, key)
	if err == nil || errors.Is(err, testbed.ErrUnsupported) {
		d.mu.Lock()
		d.asked[key] = err
		d.mu.Unlock()
	}
	return err
}

func (d *Driver) supports(ctx context.Context, spec testbed.Spec) error {
	if err := possible(spec); err != nil {
		return err
	}
	if err := d.peersFit(ctx, spec); err != nil {
		return err
	}
	if err := d.claimable(ctx, spec); err != nil {
		return err
	}
	if spec.Conditions.Policy == result.PolicyKubernetes {
		if err := d.enforces(ctx); err != nil {
			return err
		}
	}
	device := ""
	if isSecondary(spec.Network) {
		var err error
		if device, err = d.cluster.attach(ctx, spec.Network); err != nil {
			return err
		}
		if err := d.cluster.offered(ctx, spec.Network, device); err != nil {
			return err
		}
	}
	host := spec.Network == Host || spec.Conditions.From == result.FromNode
	wish := Wish{Name: "trial", Role: RoleServer, HostNetwork: host}
	if device != "" {
		wish.Resources = map[string]int64{device: 1}
	}
	err := dryCreate(ctx, d.cluster.API.Pods(d.cluster.Namespace), "pod", d.launcher.Manifest(wish))
	var guarded *GuardedError
	switch {
	case host && errors.As(err, &guarded):
		return d.unguarded(spec, guarded)
	case err != nil:
		return err
	}
	return d.addressable(ctx, spec)
}

// addressable tries whether the cluster has services of the kind that the network is, with addresses of the family.
func (d *Driver) addressable(ctx context.Context, spec testbed.Spec) error {
	if !serviced(spec.Network) && (spec.Family != result.IPv6 || isSecondary(spec.Network)) {
		return nil
	}
	// Whether the cluster speaks a version of IP shows in the addresses that it gives to services.
	via := spec.Network
	if !serviced(via) {
		via = ClusterIP
	}
	// A Service without a selector may have addresses that no pod of the cluster can have.
	nothing := map[string]string{"netdelta": "none"}
	s := serviceManifest(d.cluster.Namespace, d.Run().Name("trial"), via, spec.Family, d.Run(), nothing, firstPort, firstPort)
	err := dryCreate(ctx, d.cluster.API.Services(d.cluster.Namespace), "service", s)
	if err != nil && spec.Family == result.IPv6 && strings.Contains(err.Error(), "not configured on this cluster") {
		return &testbed.UnsupportedError{Feature: "family ipv6", Need: "a cluster with addresses of IPv6", Fix: "measure family ipv4"}
	}
	return err
}

// unguarded is the answer for pods in their node's namespace where Pod Security does not admit them.
func (d *Driver) unguarded(spec testbed.Spec, err error) error {
	feature := "network " + spec.Network
	if spec.Network != Host {
		feature = "from=node"
	}
	return &testbed.UnsupportedError{
		Feature: feature,
		Need:    fmt.Sprintf("pods in their nodes' namespaces, which namespace %s does not admit (%v)", d.cluster.Namespace, err),
		Fix:     privileged + "; or take --baseline " + Pod,
	}
}

// privileged says how a namespace is had that admits pods in their nodes' namespaces.
const privileged = "run it in a namespace whose Pod Security level is privileged: kubectl create namespace netdelta && kubectl label namespace netdelta pod-security.kubernetes.io/enforce=privileged, then --namespace netdelta"

// possible says what no cluster can do.
func possible(spec testbed.Spec) error {
	if _, err := Named(spec.Network); err != nil {
		return err
	}
	if spec.Family != "" && spec.Family != result.IPv4 && spec.Family != result.IPv6 {
		return fmt.Errorf("family %q: need ipv4 or ipv6", spec.Family)
	}
	for _, other := range []struct{ given, what, fix string }{
		{spec.Target, "target", "compare host and pod, which are where the clients stand, and name the target by a service, a node's port or a pod's address"},
		{spec.Volume.Class, "storage class", "compare storage classes, or host and pod, which are where the client stands"},
	} {
		if other.given == "" {
			continue
		}
		if err := serverless(spec, other.what, other.fix); err != nil {
			return err
		}
	}
	if spec.PodsOutlive && isSecondary(spec.Network) {
		return &testbed.UnsupportedError{
			Feature: "network " + spec.Network + " under live swaps", Need: "pods that move into another namespace",
			Fix: "run it in bursts: without --blocks, and without workloads that are served by a cluster",
		}
	}
	if err := policeable(spec); err != nil {
		return err
	}
	rest := spec.Conditions.Plain()
	rest.From = ""
	if rest.Policy == result.PolicyKubernetes {
		rest.Policy, rest.PolicyRules, rest.PolicyPods = "", 0, 0
	}
	if rest != (result.Conditions{}) {
		return &testbed.UnsupportedError{
			Feature: "a condition of the network or the nodes (" + strings.Join(gather.Each(rest.Levels(), result.Level.String), ", ") + ") on testbed " + Name,
			Need:    "a machine that netdelta may set up", Fix: "measure it with --testbed lab or vm, or change the cluster itself by apply, ready and restore of a network (docs/kubernetes.md)",
		}
	}
	return nil
}

// check is what is wrong with a spec.
func check(spec testbed.Spec) error {
	switch {
	case spec.Nodes < 1:
		return fmt.Errorf("%d nodes: need at least 1", spec.Nodes)
	case spec.PodsPerNode < 1:
		return fmt.Errorf("%d pods on each node: need at least 1", spec.PodsPerNode)
	case spec.Link.Rate != 0:
		return &testbed.UnsupportedError{Feature: "a rate of the links between nodes", Need: "links that netdelta has made", Fix: "measure it with --testbed lab"}
	}
	return possible(spec)
}

// Open implements testbed.Provider. Pods are made when something is started in them. The links between nodes are what they are: the
// MTU of the spec is not looked at.
func (d *Driver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	fail := func(err error) (testbed.Testbed, error) {
		return nil, fmt.Errorf("open a testbed on cluster %s: %w", d.cluster.Name, err)
	}
	if err := check(spec); err != nil {
		return fail(err)
	}
	var nodes []string
	var found located
	var err error
	if spec.Target == "" {
		nodes, err = d.Choose(ctx, spec.Nodes)
	} else {
		nodes, found, err = d.chooseFor(ctx, spec.Nodes, spec.Target)
	}
	if err != nil {
		return fail(err)
	}
	if err := d.lease.hold(ctx); err != nil {
		return fail(err)
	}
	device := ""
	if isSecondary(spec.Network) {
		if device, err = d.cluster.attach(ctx, spec.Network); err != nil {
			return fail(err)
		}
	}
	d.mu.Lock()
	index := d.opened
	d.opened++
	d.mu.Unlock()
	t := &Testbed{driver: d, index: index, spec: spec, device: device, found: found, slot: -1}
	if spec.Network == Host || spec.Conditions.From == result.FromNode {
		if t.slot, err = d.takeSlot(ctx); err != nil {
			return fail(err)
		}
	}
	for j := range spec.Nodes * spec.PodsPerNode {
		host := spec.Network == Host || t.sends(j) && spec.Conditions.From == result.FromNode
		p := &pod{bed: t, index: j, node: nodes[j/spec.PodsPerNode], host: host, proven: map[way]bool{}}
		p.claim = newClaim(p)
		t.pods = append(t.pods, p)
	}
	t.peers = newPeers(t)
	return t, nil
}

// note keeps a sentence that readers of the run must know.
func (d *Driver) note(sentence string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.said = gather.Once(d.said, sentence)
}

// unlessLingers makes a note of an object that does not go: a lost node keeps its pods, and an API server may be away. That is no
// reason to end a run, and who closes the driver is told if it is still so then.
func (d *Driver) unlessLingers(err error) error {
	if errors.Is(err, errLingers) {
		d.note(err.Error())
		return nil
	}
	return err
}

// slotCount is how many ranges of ports there are on the nodes. Each has one port more than servers can listen on, for trials.
func (d *Driver) slotCount() int {
	return (lastHostPort - firstHostPort + 1) / (d.launcher.options.Ports + 1)
}

// takeSlot takes a range of ports that no testbed has which shares the nodes' namespaces: testbeds of this run, and of other runs as
// far as they show. Ranges are taken in turn, so that none is taken again while connections of it may linger.
func (d *Driver) takeSlot(ctx context.Context) (int, error) {
	others, err := d.podsOfOthers(ctx)
	if err != nil {
		return 0, fmt.Errorf("look which ports other runs use: %w", withFix(err))
	}
	taken := map[int]bool{}
	width := d.launcher.options.Ports + 1
	for _, p := range others.Items {
		first, last, ok := portRange(p.Annotations[annotationPorts])
		for port := first; ok && port <= last; port++ {
			taken[(port-firstHostPort)/width] = true
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	start := d.opened
	if n, err := strconv.ParseUint(string(d.Run()), 16, 32); err == nil {
		start += int(n % uint64(d.slotCount())) // two runs that begin at once begin at different ports
	}
	for i := range d.slotCount() {
		slot := (start + i) % d.slotCount()
		if !taken[slot] && !d.slots[slot] {
			d.slots[slot] = true
			return slot, nil
		}
	}
	return 0, errors.New("all ranges of ports on the nodes are taken: measure fewer networks at once, or end other runs")
}

// podsOfOthers are the pods of other runs: of those in all namespaces where this user may look into them, else of those in the run's own.
func (d *Driver) podsOfOthers(ctx context.Context) (pods *corev1.PodList, err error) {
	others := metav1.ListOptions{LabelSelector: SelectAll + "," + LabelRun + "!=" + string(d.Run())}
	for _, namespace := range []string{metav1.NamespaceAll, d.cluster.Namespace} {
		pods, err = fetch(ctx, func() (*corev1.PodList, error) { return d.cluster.API.Pods(namespace).List(ctx, others) })
		if !apierrors.IsForbidden(err) {
			break
		}
	}
	return pods, err
}

// giveBack frees a range of ports.
func (d *Driver) giveBack(slot int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.slots, slot)
}

// hostPorts are the ports on the nodes of a range that was taken.
func (l *Launcher) hostPorts(slot int) (first, last uint16) {
	ports := uint16(l.options.Ports)
	first = firstHostPort + uint16(slot)*(ports+1)
	return first, first + ports - 1
}

// portsText is an annotation of ports.
func portsText(first, last uint16) string { return fmt.Sprintf("%d-%d", first, last) }

// portRange reads an annotation of ports.
func portRange(text string) (first, last int, ok bool) {
	a, b, found := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	ok = found && err1 == nil && err2 == nil && first >= firstHostPort && last <= lastHostPort && first <= last
	return first, last, ok
}

// Close removes what is left of the run in the cluster. Testbeds should be closed before. It is idempotent, and asks nothing of a
// cluster in which nothing was made.
func (d *Driver) Close(ctx context.Context) error {
	d.nodeMonitors.close()
	d.endIdle()
	if !d.lease.began() && !d.launcher.made.Load() {
		return nil
	}
	_, err := d.cluster.removeObjects(ctx, d.Run())
	return errors.Join(err, d.lease.release(ctx))
}
