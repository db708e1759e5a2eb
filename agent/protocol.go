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

	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// Subcommand is the verb of the command line that serves the protocol.
const Subcommand = "agent"

// The operations.
const (
	opServe        = "serve"
	opDial         = "dial"
	opServeCluster = "serve-cluster"
	opDialCluster  = "dial-cluster"
	opDialTarget   = "dial-target"
	opConnect      = "connect"
	opDisconnect   = "disconnect"
	opReconnect    = "reconnect"
	opHold         = "hold"
	opClear        = "clear-target"

	opBurst   = "burst"
	opSweep   = "sweep"
	opBurstAt = "burst-at"
	opCollect = "collect"
	opTotals  = "totals"
	opSpent   = "spent"
	opThreads = "threads"
	opHealth  = "health"
	opRestart = "restart"
	opClose   = "close"

	opBurn     = "burn"
	opRest     = "rest"
	opClock    = "clock"
	opCounters = "counters"
	opMachine  = "machine"
)

// Hello is how an agent introduces itself.
type Hello struct {
	rpc.Greeting
	PID int `json:"pid"`
	// Place is the machine, and what processes it shows, as in place.
	Place string `json:"place"`
}

// openArgs say which end of a workload is to be opened, and with what. Operations leave zero what they don't need.
type openArgs struct {
	Workload string          `json:"workload"`
	Params   result.Params   `json:"params"`
	Local    netip.AddrPort  `json:"local,omitzero"` // of a server, where it listens
	Server   netip.AddrPort  `json:"server,omitzero"`
	Place    workload.Member `json:"place,omitzero"` // in a cluster
	Target   targetArgs      `json:"target,omitzero"`
	CPU      int             `json:"cpu"`
	Shared   bool            `json:"shared,omitempty"` // a server is for any number of clients
	Sockets  Sockets         `json:"sockets,omitzero"` // that a client takes over, in place of connections of its own
	Within   time.Duration   `json:"within,omitempty"` // the start must be over; 0 for no limit but the controller's
}

// targetArgs are an endpoint of the user's own. It crosses to the agent on its standard input, the password with it, and nowhere else.
type targetArgs struct {
	URL      string        `json:"url"`
	Password string        `json:"password,omitempty"`
	Family   result.Family `json:"family,omitempty"`
	Address  netip.Addr    `json:"address,omitzero"`
	Length   int64         `json:"length,omitempty"`
	Mark     string        `json:"mark,omitempty"`
}

// targetOf are the arguments of an endpoint.
func targetOf(t workload.Target) targetArgs {
	return targetArgs{URL: t.String(), Password: t.Password.Reveal(), Address: t.Address, Length: t.Length}
}

// target is the endpoint of the arguments.
func (a targetArgs) target() (workload.Target, error) {
	t, err := workload.ParseTarget(a.URL)
	t.Password, t.Address, t.Length = workload.NewSecret(a.Password), a.Address, a.Length
	return t, err
}

// Sockets are connections that an agent has opened for the client of another one on the same machine.
type Sockets struct {
	PID     int   `json:"pid"`
	Files   []int `json:"files"`
	session int   // of the agent that opened them
}

// sweepArgs name clients that are visited together, and what is done with them.
type sweepArgs struct {
	Sessions []int            `json:"sessions"`
	Spec     engine.SweepSpec `json:"spec,omitzero"`
	Drop     []bool           `json:"drop,omitempty"`    // of each, its last burst, when connections are closed
	Sockets  []Sockets        `json:"sockets,omitempty"` // of each, its new connections
	Within   time.Duration    `json:"within,omitempty"`  // each is warm on them, or given up
}

// sweptReply is what became of one of them.
type sweptReply struct {
	Burst   engine.Burst `json:"burst,omitzero"`
	Threads []int        `json:"threads,omitempty"`
	// Took is how long the client needed to be connected and warm.
	Took  time.Duration `json:"took_ns,omitempty"`
	Error string        `json:"error,omitempty"`
	Hung  bool          `json:"hung,omitempty"`
}

// err is the error of a client; one that hung matches ErrHung.
func (r sweptReply) err() error {
	switch {
	case r.Error == "":
		return nil
	case r.Hung:
		return &hungError{errors.New(r.Error)}
	}
	return errors.New(r.Error)
}

// Spent is what a server's session has used so far.
type Spent struct {
	CPU time.Duration `json:"cpu_ns"`
	// Alone says that it is of this session alone; else all programs that the agent has started are in it.
	Alone bool `json:"alone,omitempty"`
}

// sessionArgs name a session that is open, and say what is done with it.
type sessionArgs struct {
	Session  int              `json:"session"`
	Spec     engine.BurstSpec `json:"spec,omitzero"`
	At       time.Duration    `json:"at_ns,omitempty"`
	DropLast bool             `json:"drop_last,omitempty"`
	Within   time.Duration    `json:"within,omitempty"`
}

// SyncClient is a client's session that begins bursts together with sessions of other agents.
type SyncClient struct {
	Agent   *Agent
	Session int
	// Offset is how the agent's clock stood to this program's when ReadClock read it last.
	Offset Offset

	read time.Duration // when the offset was read
}

const (
	// readings is how often a clock is read, for the best of them.
	readings = 8
	// offsetFor is how long an offset holds: clocks of two machines drift by some 20 us in a second.
	offsetFor = 10 * time.Second
)

// ReadClock finds how the agent's clock stands to this program's, unless what it found last still holds.
func (c *SyncClient) ReadClock(ctx context.Context) (err error) {
	if c.read != 0 && Now()-c.read < offsetFor {
		return nil
	}
	c.Offset, err = c.Agent.Offset(ctx, readings)
	c.read = Now()
	return err
}

const (
	// leadLeast is how long before the common instant clients are told, at least; each client adds leadEach, since they are told one
	// after another and tidy up when they are told.
	leadLeast = 200 * time.Millisecond
	leadEach  = 2 * time.Millisecond
	// leadMost bounds what it grows to where clients were told too late.
	leadMost = 20 * time.Second
)

// LeadFor is how long before a common instant so many clients are to be told of it.
func LeadFor(clients int) time.Duration { return leadLeast + time.Duration(clients)*leadEach }

// LongerLead is the lead for the next burst where one of the clients had the given time to spare, which is negative.
func LongerLead(lead, spare time.Duration) time.Duration { return min(2*(lead-spare), leadMost) }

// BurstTogether has clients whose clocks were read run a burst that begins lead from now. It hands what came of each to took, one at a
// time, as it comes: the client's index, and its result or its error. It returns how long before the common instant the last of them
// was told, of those that answered; where it is negative they did not begin together.
func BurstTogether(ctx context.Context, clients []*SyncClient, spec engine.BurstSpec, lead time.Duration, took func(i int, got SyncResult, err error)) (spare time.Duration) {
	spare = lead
	common := Now() + lead
	var mu sync.Mutex
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() {
			got, err := c.Agent.BurstAt(ctx, c.Session, c.Offset.There(common), spec, lead)
			// One at a time: a histogram that took decodes is as large as all that is kept of a burst.
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				spare = min(spare, got.Spare)
			}
			took(i, got, err)
		})
	}
	all.Wait()
	return spare
}

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
	held, err := s.held.take(func() (workload.Held, error) { return by.Hold(ctx, a.Params, t) })
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
