package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/result"
	"netdelta/testbed/kube/inside"
)

const (
	// endpointWithin is how long the cluster may take to find the endpoint of a Service, and openWithin how long until a way is open:
	// until kube-proxy has programmed its rules, and the network knows a new pod.
	endpointWithin = 30 * time.Second
	openWithin     = 30 * time.Second
	// deniedWithin takes the place of openWithin where NetworkPolicies keep the pods from each other, if anything enforces these.
	deniedWithin = 10 * time.Second
	// namedWithin is how long the cluster's name service may take to know a new Service.
	namedWithin = 15 * time.Second
)

// way is how a server is reached: over a network, by a client, which is known by its index.
type way struct {
	network string
	client  int
}

// join makes what the present network puts in front of a pod that is up, and proves that the clients reach all others that are, as far
// as they are up themselves. The testbed must be kept open meanwhile. An error names the pod that can't be reached.
func (t *Testbed) join(ctx context.Context, p *pod) error {
	if at := p.Address(); !at.IsValid() && !isSecondary(t.spec.Network) {
		return p.failed(fmt.Errorf("it has no address of %s", t.family()))
	}
	if t.spec.Target != "" {
		return nil // whether it is reached, each client finds out
	}
	if err := t.front(ctx, p); err != nil {
		return p.failed(err)
	}
	t.joining.Lock()
	defer t.joining.Unlock()
	p.ready = true
	for _, client := range t.pods {
		for _, server := range t.pods {
			by := way{t.spec.Network, client.index}
			if !t.sends(client.index) || t.sends(server.index) || !client.ready || !server.ready || server.proven[by] || p != client && p != server {
				continue
			}
			if err := t.prove(ctx, client, server); err != nil {
				p.ready = false
				return server.failed(err)
			}
			if err := t.enforced(ctx, client, server); err != nil {
				p.ready = false
				return server.failed(err)
			}
			server.proven[by] = true
		}
	}
	return nil
}

// front makes the Service of the present network in front of a server's pod, or notes the address that the network gave a pod.
func (t *Testbed) front(ctx context.Context, p *pod) error {
	name := t.spec.Network
	if isSecondary(name) && !p.host {
		at, err := t.attached(ctx, p)
		if err != nil {
			return err
		}
		p.reach(name, at)
		return nil
	}
	p.mu.Lock()
	has := p.fronts[name] != nil
	p.mu.Unlock()
	if !serviced(name) || has || t.sends(p.index) {
		return nil
	}
	first, _ := p.Ports()
	cluster := t.driver.cluster
	manifest := serviceManifest(cluster.Namespace, t.driver.Run().Name(p.name()+"-"+name), name, t.family(), t.driver.Run(), p.selector(), first, p.trialPort())
	if p.bed.peers.has(p) {
		addPorts(manifest, t.spec.Peers.Ports)
	}
	f, err := cluster.makeService(ctx, manifest, p.Address(), endpointWithin)
	if err != nil {
		return errors.Join(err, remove(cluster.API.Services(cluster.Namespace), "service", manifest.Name))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fronts == nil {
		p.fronts = map[string]*front{}
	}
	p.fronts[name] = f
	return nil
}

// prove tries whether the client reaches a server in the present network, for as long as the network may need to know the pods.
func (t *Testbed) prove(ctx context.Context, client, server *pod) error {
	if t.spec.Network == Headless {
		if err := t.resolve(ctx, client, server); err != nil {
			return err
		}
	}
	return persist(ctx, func() error { return t.proveOnce(ctx, client, server) })
}

// proveOnce is prove without another try where a stream is cut.
func (t *Testbed) proveOnce(ctx context.Context, client, server *pod) error {
	began := time.Now()
	c, s := client.alive(), server.alive()
	answerer, err := listen(ctx, t.driver.cluster, s.place, server.trialPort())
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, answerer.cut)
	defer stop()
	trial := inside.Trial{At: []netip.AddrPort{server.endpoint(t.spec.Network, server.trialPort())}, Within: openWithin, Whole: true}
	denials := t.denials(ctx, client, server)
	if len(denials) > 0 {
		trial.Within = deniedWithin
	}
	trying, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() { <-answerer.done; giveUp() }() // it is closed below in any case
	heard := t.driver.launcher.waits.during(fmt.Sprintf("the way from a pod on %s to one on %s over network %s", client.Node(), server.Node(), t.spec.Network), trial.Within)
	out, err := askOnce[inside.Outcome](trying, t.driver.cluster, c.place, inside.Try, trial)
	heard()
	if trying.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it was lost while the way to it was tried: %w", answerer.lost())
	}
	err = errors.Join(err, answerer.Close())
	if err != nil {
		return fmt.Errorf("try the way from %s: %w", client.Name(), err)
	}
	if broken := judgeWay(out, client.Node(), server.Node(), t.spec.Network, denials); broken != nil {
		return broken
	}
	for _, says := range vanishing(out, client.Node(), server.Node()) { // TCP gets by all the same
		t.driver.note(fmt.Sprintf("network %s: %s; TCP gets through, with smaller packets", t.spec.Network, says))
	}
	t.driver.launcher.options.Log("pod %s reaches %s over %s, %s after it was asked", client.Name(), server.Name(), t.spec.Network, time.Since(began).Round(time.Millisecond))
	return nil
}

// resolve has the client look up the server's name. Where the cluster has no name service the server's own address takes its place.
func (t *Testbed) resolve(ctx context.Context, client, server *pod) error {
	d := t.driver
	want := server.Address()
	server.reach(Headless, want)
	d.mu.Lock()
	without := d.noDNS
	d.mu.Unlock()
	if without {
		return nil
	}
	family := "ip4"
	if t.family() == result.IPv6 {
		family = "ip6"
	}
	server.mu.Lock()
	name := server.fronts[Headless].name + "." + d.cluster.Namespace + ".svc"
	server.mu.Unlock()
	c := client.alive()
	for waited := range Polling(ctx, time.Second) {
		found, err := ask[inside.Resolved](ctx, d.cluster, c.place, inside.Resolve, name, family)
		switch {
		case err != nil:
			return fmt.Errorf("look up %s in %s: %w", name, client.Name(), err)
		case len(found.Addresses) > 0 && found.Addresses[0] == want:
			return nil
		case len(found.Addresses) > 0:
			return fmt.Errorf("the cluster's name service gives %v for %s, whose pod has the address %s", found.Addresses, name, want)
		case waited > namedWithin:
			d.mu.Lock()
			d.noDNS = true
			d.mu.Unlock()
			d.note(fmt.Sprintf("network %s: the cluster's name service does not know the servers (%s): the endpoints' own addresses are used", Headless, found.Error))
			return nil
		}
	}
	return context.Cause(ctx)
}

// front is a Service in front of a server's pod.
type front struct {
	name    string
	address netip.Addr        // its own, not valid where it has none
	ports   map[uint16]uint16 // of the node, by the pod's
}

// serviceManifest is the Service of a network for all ports of a pod, by TCP and UDP. It selects the pod by the labels.
func serviceManifest(namespace, name, networkName string, family result.Family, run RunID, selector map[string]string, first, last uint16) *corev1.Service {
	ip := corev1.IPv4Protocol
	if family == result.IPv6 {
		ip = corev1.IPv6Protocol
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: run.Labels(RoleService)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), IPFamilies: []corev1.IPFamily{ip},
		},
	}
	switch networkName {
	case NodePort:
		s.Spec.Type = corev1.ServiceTypeNodePort
	case Headless:
		s.Spec.ClusterIP = corev1.ClusterIPNone
		return s // its ports mean nothing
	}
	for port := int32(first); port <= int32(last); port++ {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
				Name: serviceName(protocol, port), Protocol: protocol, Port: port, TargetPort: intstr.FromInt32(port),
			})
		}
	}
	return s
}

// serviceName is the name of a Service's port.
func serviceName(protocol corev1.Protocol, port int32) string {
	return map[corev1.Protocol]string{corev1.ProtocolTCP: "t", corev1.ProtocolUDP: "u"}[protocol] + strconv.Itoa(int(port))
}

// frontOf reads what the cluster gave a Service.
func frontOf(s *corev1.Service) (*front, error) {
	f := &front{name: s.Name, ports: map[uint16]uint16{}}
	if at, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
		f.address = at
	}
	for _, p := range s.Spec.Ports {
		given := f.ports[uint16(p.Port)]
		if given != 0 && given != uint16(p.NodePort) {
			return nil, fmt.Errorf("port %d has the node's port %d by one protocol and %d by the other; have the ports of nodes freed, or measure other networks", p.Port, given, p.NodePort)
		}
		f.ports[uint16(p.Port)] = uint16(p.NodePort)
	}
	return f, nil
}

// makeService makes a Service, and waits until its endpoint is the given address.
func (c *Cluster) makeService(ctx context.Context, s *corev1.Service, endpoint netip.Addr, within time.Duration) (*front, error) {
	services := c.API.Services(s.Namespace)
	made, err := create(ctx, services, "service", s)
	if err != nil {
		return nil, err
	}
	f, err := frontOf(made)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", s.Name, err)
	}
	for waited := range Polling(ctx, apiPause) {
		ready, err := c.hasEndpoint(ctx, s.Namespace, s.Name, endpoint)
		switch {
		case ready:
			return f, nil
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("wait for the endpoint of service %s: %w", s.Name, withFix(err))
		case waited > within && err != nil:
			return nil, fmt.Errorf("wait for the endpoint of service %s: %w", s.Name, err)
		case waited > within:
			return nil, fmt.Errorf("service %s has no endpoint %s after %s; does the cluster's controller manager run?", s.Name, endpoint, within)
		}
	}
	return nil, context.Cause(ctx)
}

// hasEndpoint says whether a Service leads to an address.
func (c *Cluster) hasEndpoint(ctx context.Context, namespace, service string, endpoint netip.Addr) (bool, error) {
	slices, err := c.API.EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return false, err
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			for _, a := range e.Addresses {
				if at, err := netip.ParseAddr(a); err == nil && at == endpoint && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
