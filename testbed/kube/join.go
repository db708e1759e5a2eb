package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netdelta/result"
	"netdelta/testbed/kube/inside"
)

const (
	// endpointWithin is how long the cluster may take to find the endpoint of a Service, and openWithin how long until a way is open:
	// until kube-proxy has programmed its rules, and the network knows a new pod.
	endpointWithin = 30 * time.Second
	openWithin     = 30 * time.Second
	// namedWithin is how long the cluster's name service may take to know a new Service.
	namedWithin = 15 * time.Second
)

// way is how a server is reached: over a network, by a client, which is known by its index.
type way struct {
	network string
	client  int
}

// join makes what the present network puts in front of a pod that is up, and proves that the clients reach all others that are, as far
// as they are up themselves. The testbed must be kept open meanwhile.
func (t *Testbed) join(ctx context.Context, p *pod) error {
	if at := p.Address(); !at.IsValid() && !isSecondary(t.spec.Network) {
		return fmt.Errorf("it has no address of %s", t.family())
	}
	if t.spec.Target != "" {
		return nil // whether it is reached, each client finds out
	}
	if err := t.front(ctx, p); err != nil {
		return err
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
				return err
			}
			if err := t.enforced(ctx, client, server); err != nil {
				p.ready = false
				return err
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
	trial := inside.Trial{At: []netip.AddrPort{server.endpoint(t.spec.Network, server.trialPort())}, Within: openWithin}
	trying, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() { <-answerer.done; giveUp() }() // it is closed below in any case
	out, err := askOnce[inside.Outcome](trying, t.driver.cluster, c.place, inside.Try, trial)
	if trying.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it was lost while the way to it was tried: %w", answerer.lost())
	}
	err = errors.Join(err, answerer.Close())
	if err != nil {
		return fmt.Errorf("try the way from %s: %w", client.Name(), err)
	}
	if out.Error != "" {
		return fmt.Errorf("nothing comes back from it to %s on node %s over network %s within %s: %s; is there a NetworkPolicy or a firewall between them, does kube-proxy run?",
			client.Name(), client.Node(), t.spec.Network, openWithin, out.Error)
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
