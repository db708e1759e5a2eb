package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Prober proves the paths of one testbed, one after another. It is safe for concurrent use.
type Prober struct {
	o testbed.Observer

	mu         sync.Mutex
	fits       map[podPair]Fit
	lacks      string                              // why there is no packet sample here, "" as long as there is one
	start      map[network.Device]testbed.Counters // of the phase that is audited
	background []network.Hop
}

// podPair is the indices of a client's and a server's pod.
type podPair struct{ from, to int }

// NewProber is a prober for a testbed. The network beneath it must not be swapped meanwhile.
func NewProber(o testbed.Observer) *Prober { return &Prober{o: o, fits: map[podPair]Fit{}} }

// Prove watches a load of the protocol from one pod to the other, and judges which way it went. The load should be short, about a
// millisecond, and nothing else may move on the testbed meanwhile. After the first load of a pair of pods it finds the
// path's MTU, by a few packets of its own. The error is the load's, or a failure to look; what the network does wrong is
// in the answer.
func (p *Prober) Prove(ctx context.Context, from, to testbed.Pod, protocol network.Protocol, load func(context.Context) (Load, error)) (result.Path, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fail := func(err error) (result.Path, error) {
		return result.Path{}, fmt.Errorf("prove the path from %s to %s: %w", from.Name(), to.Name(), err)
	}
	w, err := p.way(from, to, protocol)
	if err != nil {
		return fail(err)
	}
	if err := p.watch(ctx, w, load); err != nil {
		return fail(err)
	}
	// Last, for a packet that is too large teaches its sender the right size.
	if w.Fit, err = p.fit(ctx, w); err != nil {
		return fail(err)
	}
	return Judge(w.Observation), nil
}

// watched is an observation in the making.
type watched struct {
	Observation
	podPair
	client, server testbed.Pod
}

// way is what the plan says of two pods.
func (p *Prober) way(from, to testbed.Pod, protocol network.Protocol) (*watched, error) {
	pods := p.o.Pods()
	w := &watched{podPair: podPair{slices.Index(pods, from), slices.Index(pods, to)}, client: from, server: to}
	if w.from < 0 || w.to < 0 || w.from == w.to {
		return nil, errors.New("they are not two pods of this testbed")
	}
	plan := p.o.Plan()
	w.Request, w.Response = p.o.Path(from, to, protocol), p.o.Path(to, from, protocol)
	w.PathMTU, w.Overhead = plan.PathMTU(w.from, w.to), plan.Overhead
	w.Polled = p.o.Spec().Conditions.GRO == result.On
	w.Encapsulation, w.Bonds, w.Encryption = wrapping(plan), plan.Bonds(), plan.Encryption
	w.Private = []netip.Addr{from.Address(), to.Address()}
	// Those on the way, and the pods' nodes, which the way may pass by.
	for _, s := range []network.Space{
		plan.Pods[w.from].In, network.InNode(plan.Pods[w.from].Node), network.InNode(plan.Pods[w.to].Node), plan.Pods[w.to].In,
	} {
		if !slices.Contains(w.Sample.Spaces, s) {
			w.Sample.Spaces = append(w.Sample.Spaces, s)
		}
	}
	_, last := to.Ports()
	w.Servers = []netip.Addr{to.Address(), plan.Backend(w.to)}
	if called := p.o.Endpoint(from, to, last).Addr(); plan.Services != nil {
		w.Virtual = called
	}
	return w, nil
}

// tap samples packets. It is nil, and lacks says why, without the right to or a kernel that can.
func (p *Prober) tap(ctx context.Context, w *watched) (testbed.Tap, error) {
	if p.lacks != "" {
		return nil, nil
	}
	tap, err := p.o.Tap(ctx, w.Sample.Spaces)
	var refused *testbed.PermissionError
	var unsupported *testbed.UnsupportedError
	switch {
	case errors.As(err, &refused):
		p.lacks = refused.Need
	case errors.As(err, &unsupported):
		p.lacks = unsupported.Need
	case err != nil:
		return nil, err
	default:
		return tap, nil
	}
	return nil, nil
}

// fit finds the path's MTU, once for each pair.
func (p *Prober) fit(ctx context.Context, w *watched) (Fit, error) {
	if known, is := p.fits[w.podPair]; is {
		return known, nil
	}
	tap, err := p.tap(ctx, w)
	if err != nil {
		return Fit{}, err
	}
	found := Fit{Lacks: "a packet sample"}
	if tap != nil {
		f := fitting{o: p.o, tap: tap, from: w.client, to: w.server, way: p.o.Path(w.client, w.server, network.UDP), decoder: decoder{encapsulations(nil)}}
		found, err = f.try(ctx, w.PathMTU)
		if err := errors.Join(err, tap.Close()); err != nil {
			return Fit{}, err
		}
	}
	p.fits[w.podPair] = found
	return found, nil
}

// watch runs the load between two readings, under a tap.
func (p *Prober) watch(ctx context.Context, w *watched, load func(context.Context) (Load, error)) error {
	tap, err := p.tap(ctx, w)
	if err != nil {
		return err
	}
	err = p.between(ctx, w, load)
	if tap == nil {
		w.Sample.Lacks = p.lacks
		return err
	}
	if err == nil {
		w.Sample.Packets, w.Sample.Missed, err = tap.Packets()
	}
	return errors.Join(err, tap.Close())
}

// between reads what was counted before and after the load: the devices' counters next to it.
func (p *Prober) between(ctx context.Context, w *watched, load func(context.Context) (Load, error)) (err error) {
	if w.Before.Stacks, err = p.o.Stacks(ctx); err != nil {
		return err
	}
	if w.Before.Counters, err = p.quiet(ctx); err != nil {
		return err
	}
	if w.Load, err = run(ctx, load); err != nil {
		return err
	}
	p.meet(w)
	if w.After.Counters, err = p.o.Counters(ctx); err != nil {
		return err
	}
	plan := p.o.Plan()
	w.Observed, w.Unforeseen = plan.Observed, unforeseen(plan, w.After.Counters)
	if plan.Found {
		w.Crowded, w.Before.Stacks = true, nil
		w.Before.Counters, w.After.Counters = onWay(w.Before.Counters, w.Request, w.Response), onWay(w.After.Counters, w.Request, w.Response)
		return nil
	}
	w.After.Stacks, err = p.o.Stacks(ctx)
	return err
}

// run runs a load, which has to move something.
func run(ctx context.Context, load func(context.Context) (Load, error)) (Load, error) {
	moved, err := load(ctx)
	switch {
	case err != nil:
		return moved, fmt.Errorf("run the load: %w", err)
	case moved.payload() <= 0 && !moved.Opaque:
		return moved, errors.New("the load moved nothing, which proves nothing")
	}
	return moved, nil
}

const (
	// quietReadings is how often the counters are read in the hope that nothing moves, quietPause the time between.
	quietReadings = 20
	quietPause    = 250 * time.Microsecond
)

// quiet reads the counters once nothing moves any more: a stream that was stopped takes a moment to run dry. Devices that
// never fall silent are not waited for.
func (p *Prober) quiet(ctx context.Context) (map[network.Device]testbed.Counters, error) {
	last, err := p.o.Counters(ctx)
	for range quietReadings {
		if err != nil {
			return nil, err
		}
		var again map[network.Device]testbed.Counters
		if again, err = p.o.Counters(ctx); err == nil && maps.Equal(again, last) {
			return again, nil
		}
		last = again
		time.Sleep(quietPause)
	}
	return last, err
}

// Load is what a workload moved while it was watched.
type Load struct {
	// Protocol is TCP or UDP.
	Protocol network.Protocol
	// Server is where the client reached the server; its port is 0 where the client finds its own way to several of them, and not
	// valid where a plan says how they are reached.
	Server netip.AddrPort
	// Requests and Responses are the bytes of payload that arrived from client to server, and back. A stream has no
	// responses.
	Requests, Responses unit.Bytes
	// Opaque says that it is not known to the byte what went over the wire, nor which way: Both is then the least that it was, both
	// ways together, and 0 if not even that is known.
	Opaque bool
	Both   unit.Bytes
	// Peers are the other pods that the client talks to, where several serve it; then no port stands for the server.
	Peers []testbed.Pod
	// Message is the largest datagram's payload, zero for TCP: datagrams larger than the MTU are fragmented by right.
	Message unit.Bytes
	// Connections are the ones of TCP that were opened, and closed, meanwhile; 0 where they were there before.
	Connections int64
}

// payload is what the load moved in all.
func (l Load) payload() unit.Bytes { return l.Requests + l.Responses + l.Both }

// Sizes of headers.
const (
	ethernetHeader unit.Bytes = 14
	ipv4Header     unit.Bytes = 20
	ipv6Header     unit.Bytes = 40
	udpHeader      unit.Bytes = 8
)

// datagram is the size of the IP packet that carries a payload to the address in a datagram.
func datagram(payload unit.Bytes, to netip.Addr) unit.Bytes {
	if to.Is6() {
		return payload + udpHeader + ipv6Header
	}
	return payload + udpHeader + ipv4Header
}

// fragments tells whether the load's own datagrams are larger than the path's MTU.
func (l Load) fragments(mtu unit.Bytes) bool {
	return l.Protocol == network.UDP && datagram(l.Message, l.Server.Addr()) > mtu
}
