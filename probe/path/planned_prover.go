package path

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// PlannedProver holds what it sees against a testbed's plan: it knows beforehand each device that a packet has to cross, and which none may.
type PlannedProver struct {
	o testbed.Observer

	mu         sync.Mutex
	fits       map[podPair]Fit
	lacks      string                              // why there is no packet sample here, "" as long as there is one
	start      map[network.Device]testbed.Counters // of the phase that is audited
	background []network.Hop
}

// podPair is the indices of a client's and a server's pod.
type podPair struct{ from, to int }

// NewPlannedProver is a prover for a testbed. The network beneath it must not be swapped meanwhile.
func NewPlannedProver(o testbed.Observer) *PlannedProver {
	return &PlannedProver{o: o, fits: map[podPair]Fit{}}
}

// Prove watches a load of the protocol from one pod to the other, and judges which way it went. The load should be short, about a
// millisecond, and nothing else may move on the testbed meanwhile. After the first load of a pair of pods it finds the
// path's MTU, by a few packets of its own. The error is the load's, or a failure to look; what the network does wrong is
// in the answer.
func (p *PlannedProver) Prove(ctx context.Context, from, to testbed.Pod, protocol network.Protocol, load func(context.Context) (Load, error)) (result.Path, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fail := failure(from, to)
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
func (p *PlannedProver) way(from, to testbed.Pod, protocol network.Protocol) (*watched, error) {
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
		w.Sample.Spaces = gather.Once(w.Sample.Spaces, s)
	}
	_, last := to.Ports()
	w.Servers = []netip.Addr{to.Address(), plan.Backend(w.from, w.to)}
	if called := p.o.Endpoint(from, to, last).Addr(); plan.Services != nil {
		w.Virtual = called
	}
	return w, nil
}

// tap samples packets. It is nil, and lacks says why, without the right to or a kernel that can.
func (p *PlannedProver) tap(ctx context.Context, w *watched) (testbed.Tap, error) {
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
func (p *PlannedProver) fit(ctx context.Context, w *watched) (Fit, error) {
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
func (p *PlannedProver) watch(ctx context.Context, w *watched, load func(context.Context) (Load, error)) error {
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
func (p *PlannedProver) between(ctx context.Context, w *watched, load func(context.Context) (Load, error)) (err error) {
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

const (
	// quietReadings is how often the counters are read in the hope that nothing moves, quietPause the time between.
	quietReadings = 20
	quietPause    = 250 * time.Microsecond
)

// quiet reads the counters once nothing moves any more: a stream that was stopped takes a moment to run dry. Devices that
// never fall silent are not waited for.
func (p *PlannedProver) quiet(ctx context.Context) (map[network.Device]testbed.Counters, error) {
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

// Fit is what was found out of the path's MTU: a packet as large as the plan promises must arrive whole, and one that is a
// byte larger must be refused by its sender.
type Fit struct {
	// Largest is the largest IP packet that was seen to arrive whole, 0 if none was.
	Largest  unit.Bytes
	Findings []string
	// Lacks says why it was not tried: "a packet sample".
	Lacks string
}

const (
	// fitPatience is how long a packet may take to arrive; usually it is there when the call that sends it returns.
	fitPatience = 300 * time.Millisecond
	fitPause    = 100 * time.Microsecond
	// fitAttempts is how often a packet is sent: one that a node on the way refuses leaves its sender with the right MTU,
	// and so does the next refusal for the way behind that.
	fitAttempts = 3
)

// fitting tries what fits the way from one pod to another.
type fitting struct {
	o        testbed.Observer
	tap      testbed.Tap
	from, to testbed.Pod
	way      []network.Hop
	decoder  decoder
	found    Fit
}

// try finds the path's MTU. What the network does wrong is a finding, not an error.
func (f *fitting) try(ctx context.Context, promised unit.Bytes) (Fit, error) {
	size := min(promised, largestPacket(f.to.Address()))
	for range fitAttempts {
		err := f.o.Fit(ctx, f.from, f.to, size)
		if tooLarge, is := errors.AsType[*testbed.TooLargeError](err); is {
			f.find("%s refused to send a packet of %d bytes to %s: it takes the path's MTU to be %d; the plan says %d",
				f.from.Name(), int64(size), f.to.Name(), int64(tooLarge.MTU), int64(promised))
			if tooLarge.MTU <= 0 || tooLarge.MTU >= size {
				return f.found, nil
			}
			size = tooLarge.MTU
			continue
		}
		if err != nil {
			f.find("a packet of %d bytes could not be sent: %v", int64(size), err)
			return f.found, ctx.Err()
		}
		arrived, err := f.reaches(ctx, size)
		if err != nil {
			return f.found, err
		}
		if arrived {
			f.found.Largest = size
			return f.found, f.tryMore(ctx, size, promised)
		}
		f.find("a packet of %d bytes from %s did not reach %s whole; the plan's MTU is %d", int64(size), f.from.Name(), f.to.Name(), int64(promised))
	}
	return f.found, nil
}

// tryMore has a packet refused that is a byte too large.
func (f *fitting) tryMore(ctx context.Context, size, promised unit.Bytes) error {
	if size != promised || size >= largestPacket(f.to.Address()) {
		return nil
	}
	err := f.o.Fit(ctx, f.from, f.to, size+1)
	if _, is := errors.AsType[*testbed.TooLargeError](err); is {
		return nil
	}
	if err == nil {
		f.find("a packet of %d bytes from %s to %s was not refused; the plan's MTU is %d", int64(size+1), f.from.Name(), f.to.Name(), int64(promised))
	} else {
		f.find("a packet of %d bytes could not be sent: %v", int64(size+1), err)
	}
	return ctx.Err()
}

// find notes a finding, once.
func (f *fitting) find(format string, args ...any) {
	if says := fmt.Sprintf(format, args...); !slices.Contains(f.found.Findings, says) {
		f.found.Findings = append(f.found.Findings, says)
	}
}

// unlucky is how likely it may be that links which lose packets lose each of those that are sent in turn.
const unlucky = 1e-6

// sendingsLeast is how often a packet is sent over links that should lose none: one may be lost all the same, or be late on a busy machine.
const sendingsLeast = 3

// sendings is how often a packet has to be sent over links that lose a share of all in order that one arrives.
func sendings(loss float64) int {
	if loss <= 0 {
		return sendingsLeast
	}
	return max(sendingsLeast, int(math.Ceil(math.Log(unlucky)/math.Log(loss))))
}

// reaches waits for a packet that was sent, and sends it again unless it arrives or its sender has learned meanwhile that it is too large.
func (f *fitting) reaches(ctx context.Context, size unit.Bytes) (bool, error) {
	for left := sendings(f.o.Spec().Conditions.LinkLoss); ; {
		arrived, err := f.arrives(ctx, size)
		if left--; arrived || err != nil || left == 0 {
			return arrived, err
		}
		err = f.o.Fit(ctx, f.from, f.to, size)
		if _, is := errors.AsType[*testbed.TooLargeError](err); is {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// arrives waits for a packet at the far end.
func (f *fitting) arrives(ctx context.Context, size unit.Bytes) (bool, error) {
	for deadline := time.Now().Add(fitPatience + f.o.Spec().Conditions.LinkDelay); ; time.Sleep(fitPause) {
		seen, _, err := f.tap.Packets()
		if err != nil {
			return false, err
		}
		if f.looksAt(seen, size) {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		if time.Now().After(deadline) {
			return false, nil
		}
	}
}

// looksAt looks for the packet on the last device of the way, and for fragments on all others.
func (f *fitting) looksAt(seen []testbed.Packet, size unit.Bytes) bool {
	_, port := f.to.Ports()
	end := f.way[len(f.way)-1].Device
	arrived := false
	for _, p := range seen {
		frame := f.decoder.packet(p)
		if frame.fragment() {
			f.find("a packet of %d bytes from %s to %s, which the plan says fits, was cut into IP fragments on %s",
				int64(size), f.from.Name(), f.to.Name(), p.Device)
		}
		for _, l := range frame.layer[:frame.depth] {
			if p.Device == end && l.protocol == network.UDP && l.destination.Port() == port && l.size == size && !l.fragment {
				arrived = true
			}
		}
	}
	return arrived
}

// largestPacket is the largest IP packet to an address that can carry a datagram: the whole of an IPv4 packet, but only what comes
// after the header of an IPv6 packet, is counted in 16 bits.
func largestPacket(to netip.Addr) unit.Bytes {
	const counted = 65535
	if to.Is6() {
		return counted + ipv6Header
	}
	return counted
}
