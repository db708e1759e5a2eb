// Package whatif makes nodes of testbeds on the nodes of a Kubernetes cluster, by a privileged pod on each: the lab's networks over the
// nodes' real cards, measured with the network that joins the cluster's pods. Nothing of the nodes' own network
// or of the cluster's is changed.
package whatif

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"netdelta/internal/tail"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	kubernetes "netdelta/testbed/kube/provider"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
)

// Kind is the name of the kind of testbed: its networks are not a cluster's networks of the same names.
const Kind = "what-if"

// Options say which nodes are used, and how.
type Options struct {
	kube.Options
	// Survey is what is known of the cluster.
	Survey func(context.Context) (survey.Survey, error)
	// Count is how many nodes are used, of the ones that take pods; 0 is all.
	Count int
	// NIC says over which card of the nodes the lab's networks are built, which stays with its node.
	NIC servers.NIC
	// Log is told what the pods on the nodes may do before they are made, and which nodes have one.
	Log io.Writer
}

// Nodes is the provider of testbeds on the nodes of a cluster. It is safe for concurrent use.
type Nodes struct {
	*servers.Servers
	cluster  *kubernetes.Cluster
	machines []servers.Carrier
}

var _ testbed.Provider = (*Nodes)(nil)

// May says what the pods on nodes may do, and what becomes of them.
func May(namespace string, nodes []string) string {
	return fmt.Sprintf(`--what-if puts a privileged pod in the network namespace of each of the nodes %s, in namespace %s.
It is root there, over the kernel and its devices; the node's files and processes are not in the pod.
It makes a network namespace of its own with macvlan or ipvlan devices over the node's card, and the lab's networks in it; metal listens at ports 20000 to 29999 of the node.
It changes no device, address, route, rule or setting of the node or of the cluster's network.
The namespaces end with the pod's program, which ends with this run; then the pods are deleted. After a kill the program ends by itself,
and netdelta cleanup --testbed kubernetes deletes the pods.
`, strings.Join(nodes, ", "), namespace)
}

// prepare chooses the nodes, and says what is about to be made there.
func prepare(ctx context.Context, c *kube.Cluster, config kube.Config, o Options) (*Nodes, error) {
	p, err := kubernetes.New(c, config, o.Options, o.Survey, o.Log)
	if err != nil {
		return nil, err
	}
	choose := p.Able
	if o.Count > 0 {
		choose = func(ctx context.Context) ([]string, error) { return p.Choose(ctx, o.Count) }
	}
	names, err := choose(ctx)
	if err != nil {
		return nil, err
	}
	if o.Options.Nodes = names; len(names) > servers.NodesMost {
		return nil, fmt.Errorf("%d nodes: there can be %d; name some with --nodes", len(names), servers.NodesMost)
	}
	// The pods of the cluster's own network are to be on the same nodes, in the same order.
	if p, err = kubernetes.New(c, config, o.Options, o.Survey, o.Log); err != nil {
		return nil, err
	}
	if err := p.AdmitsNodePods(ctx); err != nil {
		return nil, err
	}
	n := &Nodes{cluster: p}
	for _, name := range names {
		n.machines = append(n.machines, &machine{driver: p.Driver, node: name})
	}
	_, err = io.WriteString(o.Log, May(c.Namespace, names))
	return n, err
}

// Open makes a pod on each node, and nodes of testbeds there. On an error nothing is left.
func Open(ctx context.Context, c *kube.Cluster, config kube.Config, o Options) (*Nodes, error) {
	n, err := prepare(ctx, c, config, o)
	if err != nil {
		return nil, err
	}
	n.Servers, err = servers.Open(ctx, servers.Options{
		Kind: Kind, Machines: n.machines, NIC: o.NIC, Program: n.cluster.Launcher().Program(),
	})
	if err != nil {
		return nil, errors.Join(err, n.cluster.Close(context.WithoutCancel(ctx)))
	}
	return n, nil
}

// Look looks at nodes by a pod on each, changes nothing there, and takes the pods away again.
func Look(ctx context.Context, c *kube.Cluster, config kube.Config, o Options) ([]servers.Seen, error) {
	n, err := prepare(ctx, c, config, o)
	if err != nil {
		return nil, err
	}
	seen := servers.Look(ctx, n.machines, o.NIC)
	return seen, n.cluster.Close(context.WithoutCancel(ctx))
}

// Networks are the cluster's own that can be measured with the lab's. The nodes' own network is metal: host is the lab's.
func Networks() []network.Network {
	return slices.DeleteFunc(kube.Networks(), func(n network.Network) bool { return n.Name == kube.Host })
}

// Own says whether a network of this name is the cluster's.
func Own(name string) bool {
	_, err := kube.Named(name)
	return err == nil && name != kube.Host
}

// Capabilities implements testbed.Provider. The nodes are others', and so pods of all networks serve several builds, as the cluster's do.
func (n *Nodes) Capabilities() testbed.Capabilities {
	all, own := n.Servers.Capabilities(), n.cluster.Capabilities()
	all.Networks, all.Usual = append(Networks(), all.Networks...), []string{network.Metal, kube.Pod, kube.Host}
	all.OwnsNodes, all.Lacking, all.Targets = false, nil, nil // programs are not looked for in the nodes' pods
	all.Costs.Start, all.Costs.Build = max(all.Costs.Start, own.Costs.Start), max(all.Costs.Build, own.Costs.Build)
	all.Costs.Ground = own.Costs.Ground
	describe := all.Describe
	all.Describe = func(ctx context.Context, e result.Environment) (result.Environment, []string, error) {
		e, notes, err := own.Describe(ctx, e)
		if err != nil {
			return e, nil, err
		}
		e, more, err := describe(ctx, e)
		return e, append(notes, more...), err
	}
	return all
}

// possible says what the cluster's own networks can't do here.
func (n *Nodes) possible(spec testbed.Spec) error {
	switch mtu := n.MTU(); {
	case spec.PodsOutlive:
		return &testbed.UnsupportedError{
			Feature: "network " + spec.Network + " under live swaps", Need: "pods that move to another network",
			Fix: "run it without --blocks, and without workloads that a cluster serves",
		}
	case spec.Link.MTU != 0 && spec.Link.MTU != mtu:
		return &network.NotPossibleError{
			Network: spec.Network, Condition: fmt.Sprintf("mtu=%d", spec.Link.MTU), Why: fmt.Sprintf("the nodes' cards have an MTU of %d, and stay as they are", mtu),
		}
	}
	return nil
}

// Supports implements testbed.Provider.
func (n *Nodes) Supports(ctx context.Context, spec testbed.Spec) error {
	if !Own(spec.Network) {
		return n.Servers.Supports(ctx, spec)
	}
	if err := n.possible(spec); err != nil {
		return err
	}
	return n.cluster.Supports(ctx, spec)
}

// Open implements testbed.Provider.
func (n *Nodes) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if !Own(spec.Network) {
		return n.Servers.Open(ctx, spec)
	}
	if err := n.possible(spec); err != nil {
		return nil, err
	}
	return n.cluster.Open(ctx, spec)
}

// Close ends what runs on the nodes and removes all pods of the run.
func (n *Nodes) Close(ctx context.Context) error {
	return errors.Join(n.Servers.Close(), n.cluster.Close(ctx))
}

// machine is a node of the cluster, reached by exec streams of a privileged pod on it.
type machine struct {
	driver *kube.Driver
	node   string

	mu  sync.Mutex
	pod *kube.LivePod // nil until it is needed
}

var _ servers.Carrier = (*machine)(nil)

// String implements servers.Carrier.
func (m *machine) String() string { return m.node }

// Address implements servers.Carrier.
func (m *machine) Address() string { return m.node }

// up is the node's pod.
func (m *machine) up(ctx context.Context) (_ *kube.LivePod, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pod == nil {
		m.pod, err = m.driver.LaunchNodePod(ctx, m.node)
	}
	return m.pod, err
}

// replace has the next conversation be with another pod: this one may have been deleted, or its node started again.
func (m *machine) replace(pod *kube.LivePod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pod == pod {
		m.pod = nil
	}
}

// Begin implements servers.Carrier.
func (m *machine) Begin(ctx context.Context, order server.Order) (servers.Link, error) {
	pod, err := m.up(ctx)
	if err != nil {
		return nil, err
	}
	if at := pod.HostAddress(result.IPv4); at.IsValid() {
		order.Address = at.String()
	} else {
		order.Address = pod.HostAddress(result.IPv6).String()
	}
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	c, err := pod.Converse(ctx, server.Verb, string(text))
	if err != nil {
		m.replace(pod)
		return nil, fmt.Errorf("set up node %s: %w", m.node, err)
	}
	return &link{Conversation: c, node: m.node, leave: servers.Leave(order)}, nil
}

// link is the exec stream to a supervisor.
type link struct {
	*kube.Conversation
	node  string
	leave time.Duration

	close sync.Once
	err   error // how it closed
}

// Read implements io.Reader. Where the stream ends although it was to go on, its error says why.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conversation.Read(b)
	if errors.Is(err, io.EOF) && !l.Closing() {
		err = fmt.Errorf("node %s: %w", l.node, l.Lost())
	}
	return n, err
}

// Close implements servers.Link.
func (l *link) Close() error {
	l.close.Do(func() {
		_ = l.CloseWrite() // it never fails
		go func() {
			if n, _ := io.CopyN(io.Discard, l.Conversation, servers.LastWords); n == servers.LastWords {
				_ = l.Kill() // it goes on talking
			}
		}()
		select {
		case <-l.Ended():
			l.err = l.Wait()
		case <-time.After(l.leave):
			l.err = errors.Join(fmt.Errorf("it did not end within %s of the end of its input: killed", l.leave), l.Kill())
		}
	})
	return l.err
}

// Fail implements servers.Link.
func (l *link) Fail(doing string, err error) error {
	if errors.Is(err, tail.ErrEndless) {
		err = errors.Join(err, l.Kill()) // it would not end by the end of its input
	}
	if closed := l.Close(); closed != nil && !errors.Is(err, closed) {
		err = fmt.Errorf("%w: %w", err, closed)
	}
	return fmt.Errorf("%s node %s: %w", doing, l.node, err)
}
