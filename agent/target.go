package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"netdelta/result"
	"netdelta/workload"
)

// targetArgs is an endpoint of the user's own. It crosses to the agent on its standard input, the password with it, and nowhere else.
type targetArgs struct {
	Workload string        `json:"workload"`
	Params   result.Params `json:"params"`
	URL      string        `json:"url"`
	Password string        `json:"password,omitempty"`
	Family   result.Family `json:"family,omitempty"`
	Address  netip.Addr    `json:"address,omitzero"`
	Length   int64         `json:"length,omitempty"`
	CPU      int           `json:"cpu"`
	Mark     string        `json:"mark,omitempty"`
	Within   time.Duration `json:"within"`
}

// target is the endpoint of the arguments.
func (a targetArgs) target() (workload.Target, error) {
	t, err := workload.ParseTarget(a.URL)
	t.Password, t.Address, t.Length = workload.NewSecret(a.Password), a.Address, a.Length
	return t, err
}

// targetOf are the arguments of an endpoint.
func targetOf(w string, t workload.Target, within time.Duration) targetArgs {
	return targetArgs{Workload: w, URL: t.String(), Password: t.Password.Reveal(), Address: t.Address, Length: t.Length, Within: within}
}

// Holding is a target that an agent holds ready.
type Holding struct {
	Session int `json:"session"`
	// Addresses are all that its name stands for, in the order of numbers; there is one at least.
	Addresses []netip.Addr   `json:"addresses"`
	Found     workload.Found `json:"found"`
}

// Hold looks a target up, as the agent's pod sees it, takes the first of its addresses, and has the workload make it ready, within a
// time. It stays so until the session is dropped, or the agent ends.
func (a *Agent) Hold(ctx context.Context, w string, t workload.Target, family result.Family, within time.Duration) (Holding, error) {
	args := targetOf(w, t, within)
	args.Family = family
	return invoke[Holding](ctx, a, opHold, args, within+late)
}

// Release lets go of a target that is held: what Hold has put there is taken away.
func (a *Agent) Release(ctx context.Context, session int) error {
	_, err := invoke[struct{}](ctx, a, opClose, sessionArgs{session}, releaseWithin)
	return err
}

// releaseWithin is how long it may take to take away what was put into a target.
const releaseWithin = 30 * time.Second

// Clear takes away what a Hold has put into a target, known by its mark, where the agent that held it was lost.
func (a *Agent) Clear(ctx context.Context, w string, t workload.Target, mark string) error {
	args := targetOf(w, t, releaseWithin)
	args.Mark = mark
	_, err := invoke[struct{}](ctx, a, opClear, args, releaseWithin+late)
	return err
}

// DialTarget opens a client of a target that is held, within a time, and returns its session.
func (a *Agent) DialTarget(ctx context.Context, w string, p result.Params, t workload.Target, cpu int, within time.Duration) (int, error) {
	args := targetOf(w, t, within)
	args.Params, args.CPU = p, cpu
	return invoke[int](ctx, a, opDialTarget, args, within+late)
}

// targeted is the way of a workload to targets.
func (s *server) targeted(name string) (*workload.Targeted, error) {
	w, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if w.Target == nil {
		return nil, fmt.Errorf("workload %s can't speak to an endpoint of yours", name)
	}
	return w.Target, nil
}

// clear takes away what a lost agent has put into a target.
func (s *server) clear(a targetArgs) (struct{}, error) {
	w, err := s.targeted(a.Workload)
	if err != nil || w.Clear == nil {
		return struct{}{}, err
	}
	t, err := a.target()
	if err != nil {
		return struct{}{}, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	return struct{}{}, w.Clear(ctx, t, a.Mark)
}

func (s *server) hold(a targetArgs) (Holding, error) {
	w, err := s.targeted(a.Workload)
	if err != nil {
		return Holding{}, err
	}
	t, err := a.target()
	if err != nil {
		return Holding{}, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	all, err := lookUp(ctx, t, a.Family)
	if err != nil {
		return Holding{}, fmt.Errorf("look up %s: %w", t.Host, err)
	}
	t.Address = all[0]
	g, err := s.grips.take(func() (workload.Held, error) { return w.Hold(ctx, t) })
	if err != nil {
		return Holding{}, err
	}
	return Holding{Session: s.add(session{target: g}), Addresses: all, Found: g.Found()}, nil
}

// lookUp are the addresses of a target's host, sorted.
func lookUp(ctx context.Context, t workload.Target, family result.Family) ([]netip.Addr, error) {
	if at, err := netip.ParseAddr(t.Host); err == nil {
		if at.Is6() != (family == result.IPv6) {
			return nil, fmt.Errorf("it is no address of %s; name the endpoint, or measure the other family", familyName(family))
		}
		return []netip.Addr{at}, nil
	}
	network := "ip4"
	if family == result.IPv6 {
		network = "ip6"
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, t.Host)
	var unknown *net.DNSError
	switch {
	case errors.As(err, &unknown) && unknown.IsNotFound:
		return nil, fmt.Errorf("the cluster's name service knows no such name with an address of %s: services are named NAME.NAMESPACE.svc", familyName(family))
	case err != nil:
		return nil, fmt.Errorf("%w; does the cluster's name service run? An address in the name's place needs none", err)
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found), nil
}

func familyName(f result.Family) string {
	if f == result.IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

func (s *server) dialTarget(a targetArgs) (int, error) {
	w, err := s.targeted(a.Workload)
	if err != nil {
		return 0, err
	}
	t, err := a.target()
	if err != nil {
		return 0, err
	}
	ctx, cancel := s.within(a.Within)
	defer cancel()
	c, err := w.Dial(ctx, a.Params, t, a.CPU)
	if err != nil {
		return 0, err
	}
	return s.add(session{client: c}), nil
}

// grip is a target that is held. It can be let go of twice.
type grip struct {
	workload.Held
	once sync.Once
	err  error
}

// Close implements io.Closer.
func (g *grip) Close() error {
	g.once.Do(func() { g.err = g.Held.Close() })
	return g.err
}

// grips are all targets that the agent has held. What was put into them is taken away even where the controller was killed, so that
// nobody but the agent is left to do it.
type grips struct {
	mu   sync.Mutex // held while a target is taken hold of, too
	all  []*grip
	over bool
}

// take takes hold of a target.
func (g *grips) take(hold func() (workload.Held, error)) (*grip, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil, errors.New("the agent is about to end")
	}
	held, err := hold()
	if err != nil {
		return nil, err
	}
	one := &grip{Held: held}
	g.all = append(g.all, one)
	return one, nil
}

// release lets go of all that are held still, also of one that is being taken hold of, which takes its own leave.
func (g *grips) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.over = true
	for _, one := range g.all {
		_ = one.Close() // nobody is there to be told
	}
	g.all = nil
}
