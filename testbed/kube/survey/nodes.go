package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"netdelta/testbed"
	"netdelta/testbed/kube/client"
)

// readNodes lists nodes.
func (l *looker) readNodes(ctx context.Context) {
	ok := l.ask(ctx, "nodes: their versions, processors, zones and addresses, and most of what tells of the network", "list nodes of the cluster", func(ctx context.Context) error {
		return each(ctx, l.cluster.API.Nodes, metav1.ListOptions{}, func(n *corev1.Node) { l.evidence.nodes = append(l.evidence.nodes, *n) })
	})
	if !ok {
		l.evidence.blind, l.evidence.nodes = true, nil
	}
	slices.SortFunc(l.evidence.nodes, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for _, n := range l.evidence.nodes {
		l.survey.Nodes = append(l.survey.Nodes, describe(n, l.launcher.KeptOut))
	}
}

// each calls f for all objects of a listing, page after page.
func each[T any, L interface {
	runtime.Object
	metav1.ListInterface
}](ctx context.Context, r client.Resource[T, L], o metav1.ListOptions, f func(T)) error {
	for o.Limit = page; ; {
		list, err := r.List(ctx, o)
		if err != nil {
			return err
		}
		err = meta.EachListItem(list, func(item runtime.Object) error { f(item.(T)); return nil })
		if o.Continue = list.GetContinue(); err != nil || o.Continue == "" {
			return err
		}
	}
}

// describe takes from a node what matters.
func describe(n corev1.Node, keptOut func(corev1.Taint) bool) Node {
	about := Node{
		Name: n.Name, Kubelet: n.Status.NodeInfo.KubeletVersion, Kernel: n.Status.NodeInfo.KernelVersion, OS: n.Status.NodeInfo.OSImage,
		Runtime: n.Status.NodeInfo.ContainerRuntimeVersion, Zone: n.Labels[corev1.LabelTopologyZone], Unready: "it does not report",
		PodRanges: podRanges(n), MilliCPU: n.Status.Allocatable.Cpu().MilliValue(), FreeMilliCPU: -1, Clock: heartbeat(n),
		Addresses: []string{},
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			if about.Ready = c.Status == corev1.ConditionTrue; about.Ready {
				about.Unready = ""
			} else {
				about.Unready = strings.TrimSpace(c.Reason + ": " + c.Message)
			}
		}
	}
	if n.Spec.Unschedulable {
		about.Shut = "it is cordoned"
	}
	for _, t := range n.Spec.Taints {
		// What a node that is not ready is tainted with is said by its not being ready.
		if keptOut(t) && about.Shut == "" && !strings.HasPrefix(t.Key, "node.kubernetes.io/") {
			about.Shut = "it has the taint " + t.Key
		}
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			about.Addresses = append(about.Addresses, a.Address)
		}
	}
	for name, quantity := range n.Status.Allocatable {
		// Resources of devices have a domain of their own; Kubernetes' own have none, or one of its own.
		if domain, _, found := strings.Cut(string(name), "/"); found && !strings.HasSuffix(domain, "kubernetes.io") && !strings.HasPrefix(string(name), "hugepages") {
			if about.Resources == nil {
				about.Resources = map[string]int64{}
			}
			about.Resources[string(name)] = quantity.Value()
		}
	}
	return about
}

// readPods lists the pods of the whole cluster, for what of the nodes' processors is taken.
func (l *looker) readPods(ctx context.Context) {
	asked := map[string]int64{}
	pods, bestEffort := 0, 0
	ok := l.ask(ctx, "pods of other namespaces: how much of the nodes' processors is free, and how many pods are best-effort", "list pods of the cluster", func(ctx context.Context) error {
		living := metav1.ListOptions{FieldSelector: "status.phase!=Succeeded,status.phase!=Failed"}
		return each(ctx, l.cluster.API.Pods(metav1.NamespaceAll), living, func(p *corev1.Pod) {
			asked[p.Spec.NodeName] += requested(*p)
			if p.Namespace == systemNamespace {
				return
			}
			pods++
			if p.Status.QOSClass == corev1.PodQOSBestEffort {
				bestEffort++
			}
		})
	})
	if ok {
		l.survey.Pods, l.survey.BestEffort = pods, bestEffort
		for i := range l.survey.Nodes {
			n := &l.survey.Nodes[i]
			n.FreeMilliCPU = max(0, n.MilliCPU-asked[n.Name])
		}
	}
	ok = l.ask(ctx, "the number of services", "list services of the cluster", func(ctx context.Context) error {
		// One is enough: the answer says how many more there are.
		list, err := l.cluster.API.Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		l.survey.Services.Count = len(list.Items)
		if list.RemainingItemCount != nil {
			l.survey.Services.Count += int(*list.RemainingItemCount)
		}
		return nil
	})
	if !ok {
		l.survey.Services.Count = -1
	}
}

// requested is the processor time that a pod asks for, in thousandths: its containers together, or its greediest start.
func requested(p corev1.Pod) int64 {
	var sum, start int64
	for _, c := range p.Spec.Containers {
		sum += c.Resources.Requests.Cpu().MilliValue()
	}
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sum += c.Resources.Requests.Cpu().MilliValue()
			continue
		}
		start = max(start, c.Resources.Requests.Cpu().MilliValue())
	}
	return max(sum, start) + p.Spec.Overhead.Cpu().MilliValue()
}

// hardware is the kind of a device that the kernel did not make.
const hardware = "device"

// inspect looks at the devices of the nodes on which pods are scheduled.
func (l *looker) inspect(ctx context.Context) {
	if l.options.Inspect == nil {
		return
	}
	var names []string
	for _, n := range l.survey.Nodes {
		if n.open() {
			names = append(names, n.Name)
		}
	}
	devices, err := l.options.Inspect(ctx, names)
	if err != nil {
		l.gap("the devices of nodes", "", err.Error())
	}
	l.survey.Devices = len(devices) > 0
	for i := range l.survey.Nodes {
		n := &l.survey.Nodes[i]
		n.Devices = devices[n.Name]
	}
	if unseen := slices.DeleteFunc(names, func(name string) bool { _, seen := devices[name]; return seen }); len(unseen) > 0 && err == nil {
		l.gap("the devices of "+some(unseen), "", "only so many nodes are looked at")
	}
	confirm(&l.survey)
}

// try has pods on nodes send each other packets, where they are to.
func (l *looker) try(ctx context.Context) {
	if l.options.Try == nil {
		return
	}
	var names []string
	for _, n := range l.survey.Nodes {
		if n.open() {
			names = append(names, n.Name)
		}
	}
	found, err := l.options.Try(ctx, names)
	if err != nil {
		l.gap("whether packets get from pod to pod", "", err.Error())
	}
	l.survey.Tried = found.Tried
	for _, b := range found.Broken {
		l.survey.Broken = append(l.survey.Broken, Broken{b.Says + ", over network " + b.Network, b.Fix})
	}
	for i := range l.survey.Nodes {
		n := &l.survey.Nodes[i]
		n.PodMTU = found.MTU[n.Name]
		if l.survey.Network.MTU == 0 {
			l.survey.Network.MTU = n.PodMTU
		}
	}
}

// open says that pods of a run can be scheduled there.
func (n Node) open() bool { return n.Ready && n.Shut == "" }

// confirm holds what the cluster's objects say of the network against the devices of its nodes.
func confirm(s *Survey) {
	if !s.Devices {
		return
	}
	network := &s.Network
	if network.MTU == 0 {
		for _, n := range s.Nodes {
			network.MTU = max(network.MTU, s.podMTU(n))
		}
	}
	if s.Services.Mode == "" && s.hasDevice(func(d testbed.Interface) bool { return d.Name == "kube-ipvs0" }) {
		s.Services.Mode, s.Services.By = "ipvs", "the device kube-ipvs0 of nodes"
	}
	if network.Plugin != "flannel" || network.Mode != "vxlan" {
		return
	}
	if s.hasDevice(func(d testbed.Interface) bool { return d.Kind == "vxlan" }) {
		network.Doubt = ""
		network.By = append(network.By, "the devices of nodes")
		return
	}
	network.Plugin, network.Mode, network.Encapsulation, network.OnlyAcross = "bridge", "routes", "none", false
	network.By = []string{"no node has a VXLAN device, though annotations of flannel are there"}
	network.Doubt = "flannel's annotations stayed behind; routes between nodes can't be told from a plugin that leaves no trace"
}

func (s Survey) hasDevice(is func(testbed.Interface) bool) bool {
	return slices.ContainsFunc(s.Nodes, func(n Node) bool { return slices.ContainsFunc(n.Devices, is) })
}

// podMTU is the MTU of a node's pods: as pods that were tried there say, else the largest of the devices that lead to pods, whose other ends
// are the pods' own, else that of the tunnel to other nodes, else what the plugin is told to give all pods. It is 0 where none is known.
func (s Survey) podMTU(n Node) int {
	if n.PodMTU != 0 {
		return n.PodMTU
	}
	card, _ := n.Card() // it is one of them where nodes are namespaces themselves
	largest := func(kinds ...string) (mtu int) {
		for _, d := range n.Devices {
			if slices.Contains(kinds, d.Kind) && d.Name != card.Name {
				mtu = max(mtu, d.MTU)
			}
		}
		return mtu
	}
	return cmp.Or(largest("veth", "netkit"), largest("vxlan", "geneve", "ipip", "wireguard"), s.Network.MTU)
}

// Card is the device that has the node's own address; false where it wasn't seen.
func (n Node) Card() (testbed.Interface, bool) {
	for _, a := range n.Addresses {
		address, err := netip.ParseAddr(a)
		if err != nil {
			continue
		}
		for _, d := range n.Devices {
			if slices.ContainsFunc(d.Addresses, func(p netip.Prefix) bool { return p.Addr() == address }) {
				return d, true
			}
		}
	}
	return testbed.Interface{}, false
}

// The API server's clock is read from the Date of its answers, which is cut to a second. Samples spread over a second narrow it to
// about the distance between two of them.
const (
	clockSamples  = 8
	clockDistance = time.Second / clockSamples
)

// readClock compares the API server's clock with this machine's.
func (l *looker) readClock(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	offset, err := l.compareClocks(ctx)
	if err != nil {
		l.gap("the API server's clock", "", err.Error())
		return
	}
	l.survey.Clock = &offset
}

func (l *looker) compareClocks(ctx context.Context) (Offset, error) {
	client, err := rest.HTTPClientFor(l.cluster.REST)
	if err != nil {
		return Offset{}, fmt.Errorf("prepare a request: %w", err)
	}
	url := l.cluster.API.REST.Get().AbsPath("/version").URL().String()
	var bounds span
	for i := range clockSamples {
		if i > 0 {
			select {
			case <-ctx.Done():
				return Offset{}, ctx.Err()
			case <-time.After(clockDistance):
			}
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return Offset{}, err
		}
		sent := time.Now()
		answer, err := client.Do(request)
		if err != nil {
			return Offset{}, err
		}
		received := time.Now()
		_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
		if err := errors.Join(err, answer.Body.Close()); err != nil {
			return Offset{}, err
		}
		date, err := http.ParseTime(answer.Header.Get("Date"))
		if err != nil {
			return Offset{}, fmt.Errorf("its answers have no date: %w", err)
		}
		// Some time between sending and receiving, its clock stood within the second that it wrote.
		bounds.narrow(date.Sub(received), date.Add(time.Second).Sub(sent))
	}
	return bounds.offset("the dates of its answers")
}

// span is where an offset can be: narrowed by each sample.
type span struct {
	low, high time.Duration
	any       bool
}

func (s *span) narrow(low, high time.Duration) {
	if !s.any {
		*s = span{low, high, true}
		return
	}
	s.low, s.high = max(s.low, low), min(s.high, high)
}

// offset is the span as an answer. Samples that contradict each other are no answer: a clock was set between them.
func (s *span) offset(by string) (Offset, error) {
	if !s.any || s.low > s.high {
		return Offset{}, errors.New("its dates contradict each other: a clock was set meanwhile, or several servers with different clocks answer")
	}
	return Offset{Low: s.low, High: s.high, By: by}, nil
}

// writeDelay is how long it takes, at most, from when a kubelet reads its clock to when the API server notes the time of its
// request, where neither is in trouble.
const writeDelay = time.Second

// heartbeat compares a node's clock with the API server's: what the kubelet wrote as the time of its report with when the API server
// says that it was written. Both are cut to seconds.
func heartbeat(n corev1.Node) *Offset {
	var wrote metav1.Time
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.LastHeartbeatTime.After(wrote.Time) {
			wrote = c.LastHeartbeatTime
		}
	}
	noted := noted(n.ManagedFields, "kubelet")
	if wrote.IsZero() || noted.IsZero() {
		return nil
	}
	ahead := wrote.Sub(noted.Time)
	return &Offset{Low: ahead - time.Second, High: ahead + time.Second + writeDelay, By: "the time of its last report"}
}

// noted is when the API server last noted a change by a manager of fields.
func noted(fields []metav1.ManagedFieldsEntry, manager string) metav1.Time {
	var last metav1.Time
	for _, f := range fields {
		if f.Manager == manager && f.Time != nil && f.Time.After(last.Time) {
			last = *f.Time
		}
	}
	return last
}

// renewal compares a node's clock with the API server's by the lease that its kubelet renews every ten seconds. The kubelet's time is
// to the microsecond, the API server's cut to a second.
func renewal(lease coordinationv1.Lease) *Offset {
	noted := noted(lease.ManagedFields, "kubelet")
	if lease.Spec.RenewTime.IsZero() || noted.IsZero() {
		return nil
	}
	ahead := lease.Spec.RenewTime.Sub(noted.Time)
	return &Offset{Low: ahead - time.Second, High: ahead + writeDelay, By: "its lease"}
}

// readLeases compares the clocks of nodes with the API server's. Where leases can't be listed, the nodes' reports, which are older,
// have to do.
func (l *looker) readLeases(ctx context.Context) {
	if len(l.survey.Nodes) == 0 {
		return
	}
	l.ask(ctx, "the leases of nodes: their clocks are known from their last reports only", "list leases.coordination.k8s.io in "+leaseNamespace, func(ctx context.Context) error {
		return each(ctx, l.cluster.API.Leases(leaseNamespace), metav1.ListOptions{}, func(lease *coordinationv1.Lease) {
			for i := range l.survey.Nodes {
				if offset := renewal(*lease); l.survey.Nodes[i].Name == lease.Name && offset != nil {
					l.survey.Nodes[i].Clock = offset
				}
			}
		})
	})
}
