package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"

	"netdelta/result"
	"netdelta/workload"
)

// Holding is a target that an agent holds ready.
type Holding struct {
	Session int `json:"session"`
	// Addresses are all that its name stands for, in the order of numbers; there is one at least.
	Addresses []netip.Addr   `json:"addresses"`
	Found     workload.Found `json:"found"`
}

// targeted is how a workload speaks to targets, and the target of the arguments.
func targeted(w workload.Workload, a openArgs) (*workload.Targeted, workload.Target, error) {
	if w.Target == nil {
		return nil, workload.Target{}, fmt.Errorf("workload %s can't speak to an endpoint of yours", w.Name)
	}
	t, err := a.Target.target()
	return w.Target, t, err
}

// clearTarget takes away what a lost agent has put into a target.
func clearTarget(ctx context.Context, w workload.Workload, a openArgs) (any, error) {
	by, t, err := targeted(w, a)
	if err != nil || by.Clear == nil {
		return nil, err
	}
	return nil, by.Clear(ctx, t, a.Target.Mark)
}

func dialTarget(ctx context.Context, w workload.Workload, a openArgs) (e session, err error) {
	by, t, err := targeted(w, a)
	if err == nil {
		e.client, err = by.Dial(ctx, a.Params, t, a.CPU)
	}
	return e, err
}

func (s *server) hold(ctx context.Context, w workload.Workload, a openArgs) (Holding, error) {
	by, t, err := targeted(w, a)
	if err != nil {
		return Holding{}, err
	}
	all, err := lookUp(ctx, t, a.Target.Family)
	if err != nil {
		return Holding{}, fmt.Errorf("look up %s: %w", t.Host, err)
	}
	t.Address = all[0]
	held, err := s.held.take(func() (workload.Held, error) { return by.Hold(ctx, t) })
	if err != nil {
		return Holding{}, err
	}
	return Holding{Session: s.add(session{target: held}), Addresses: all, Found: held.Found()}, nil
}

// lookUp are the addresses of a target's host, sorted.
func lookUp(ctx context.Context, t workload.Target, family result.Family) ([]netip.Addr, error) {
	network, familyName := "ip4", "IPv4"
	if family == result.IPv6 {
		network, familyName = "ip6", "IPv6"
	}
	if at, err := netip.ParseAddr(t.Host); err == nil {
		if at.Is6() != (family == result.IPv6) {
			return nil, fmt.Errorf("it is no address of %s; name the endpoint, or measure the other family", familyName)
		}
		return []netip.Addr{at}, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, t.Host)
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return nil, fmt.Errorf("the name service there knows no such name with an address of %s (a service of a cluster is NAME.NAMESPACE.svc)", familyName)
	case err != nil:
		return nil, fmt.Errorf("%w; does the name service there run? An address in the name's place needs none", err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found), nil
}

// heldTarget is a target that is held. It can be closed twice.
type heldTarget struct {
	workload.Held
	close func() error
}

// Close implements io.Closer.
func (h *heldTarget) Close() error { return h.close() }

// heldTargets are all targets that the agent has held. What was put into them is taken away even where the controller was killed, so
// that only the agent is left to do it.
type heldTargets struct {
	mu   sync.Mutex // also held while a target is being taken
	all  []*heldTarget
	over bool
}

// take takes hold of a target.
func (h *heldTargets) take(hold func() (workload.Held, error)) (*heldTarget, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, errors.New("the agent is about to end")
	}
	held, err := hold()
	if err != nil {
		return nil, err
	}
	one := &heldTarget{held, sync.OnceValue(held.Close)}
	h.all = append(h.all, one)
	return one, nil
}

// release closes all targets that are still held. One that is being taken is waited for, and closes itself.
func (h *heldTargets) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, one := range h.all {
		_ = one.Close() // there is no controller to tell
	}
	h.all = nil
}
