package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/clock"
	"netdelta/result"
	"netdelta/workload"
)

// Connect opens the connections of a client in the agent's pod, for an agent of the same machine that takes them over, which visits
// clients of several pods. Let go of them when that is done.
func (a *Agent) Connect(ctx context.Context, w string, p result.Params, local, server netip.AddrPort) (Sockets, error) {
	s := Sockets{PID: a.PID()}
	args := openArgs{Workload: w, Params: p, Local: local, Server: server}
	opened, err := invoke[connected](ctx, a, opConnect, args, a.bounded(&args))
	s.Files, s.session = opened.Files, opened.Session
	return s, err
}

type connected struct {
	Session int   `json:"session"`
	Files   []int `json:"files"`
}

// LetGo closes this agent's handles on connections.
func (a *Agent) LetGo(ctx context.Context, s Sockets) error { return a.Drop(ctx, s.session) }

// DialOver is Dial on connections that another agent has opened.
func (a *Agent) DialOver(ctx context.Context, s Sockets, w string, p result.Params, local, server netip.AddrPort, cpu int) (int, error) {
	return a.open(ctx, opDial, openArgs{Workload: w, Params: p, Local: local, Server: server, CPU: cpu, Sockets: s})
}

// Sweep visits the clients of sessions in turn, as engine.Sweep.Run does, and gives what each measured. A client that hung has an error
// that matches ErrHung; the error of the whole says that nothing was measured.
func (a *Agent) Sweep(ctx context.Context, sessions []int, spec engine.SweepSpec) ([]engine.Swept, error) {
	deadline := spec.Deadline + time.Duration(len(sessions))*engine.NextHung + a.late()
	replies, err := unansweredHung(invoke[[]sweptReply](ctx, a, opSweep, sweepArgs{Sessions: sessions, Spec: spec}, deadline))
	swept := make([]engine.Swept, len(replies))
	for i, r := range replies {
		swept[i] = engine.Swept{Burst: r.Burst, Err: r.err()}
	}
	return swept, err
}

// Disconnect has the clients of sessions close their connections (engine.Renewable). drop says of each whether its last burst does not
// count.
func (a *Agent) Disconnect(ctx context.Context, sessions []int, drop []bool) error {
	return a.do(ctx, opDisconnect, sweepArgs{Sessions: sessions, Drop: drop}, a.late())
}

// Reconnected is what became of a client that was to be connected anew: the thread that will visit it, or why it is of no more use.
type Reconnected struct {
	Threads []int
	Took    time.Duration // until it was warm
	Err     error
}

// Reconnect has clients that were disconnected take over the connections that other agents have opened, one for each session, and
// readies a sweep over them.
func (a *Agent) Reconnect(ctx context.Context, sessions []int, sockets []Sockets) ([]Reconnected, error) {
	args := sweepArgs{Sessions: sessions, Sockets: sockets, Within: a.atMost(2*warmWithin) / 2}
	replies, err := invoke[[]sweptReply](ctx, a, opReconnect, args, time.Duration(len(sessions))*args.Within+a.late())
	renewed := make([]Reconnected, len(replies))
	for i, r := range replies {
		renewed[i] = Reconnected{r.Threads, r.Took, r.err()}
	}
	return renewed, err
}

// sweeps are the threads that visit clients, each with its sessions. A client may be visited by one of them only.
type sweeps struct{ running []running }

type running struct {
	sessions []int
	sweep    *engine.Sweep
}

// over is the sweep over these sessions, started if there is none; others that share a session with it end.
func (s *sweeps) over(sessions []int, clients func(int) (engine.Client, error)) (*engine.Sweep, error) {
	for _, r := range s.running {
		if slices.Equal(r.sessions, sessions) {
			return r.sweep, nil
		}
	}
	all := make([]engine.Client, len(sessions))
	for i, id := range sessions {
		c, err := clients(id)
		if err != nil {
			return nil, err
		}
		if all[i], err = c, s.forget(id); err != nil {
			return nil, err
		}
	}
	sweep, err := engine.NewSweep(all)
	if err == nil {
		s.running = append(s.running, running{sessions, sweep})
	}
	return sweep, err
}

// forget ends the sweep that has a session.
func (s *sweeps) forget(session int) (err error) {
	s.running = slices.DeleteFunc(s.running, func(r running) bool {
		has := slices.Contains(r.sessions, session)
		if has {
			err = errors.Join(err, r.sweep.Close())
		}
		return has
	})
	return err
}

func (s *server) sweep(a sweepArgs) ([]sweptReply, error) {
	sweep, err := s.sweeps.over(a.Sessions, s.client)
	if err != nil {
		return nil, err
	}
	swept, err := sweep.Run(a.Spec)
	replies := make([]sweptReply, len(swept))
	for i, w := range swept {
		replies[i].Burst = w.Burst
		replies[i].fail(w.Err)
	}
	return replies, err
}

// fail notes an error.
func (r *sweptReply) fail(err error) {
	if err != nil {
		r.Error, r.Hung = err.Error(), errors.Is(err, context.DeadlineExceeded)
	}
}

// open opens connections for another agent's client.
func (s *server) open(ctx context.Context, w workload.Workload, a openArgs) (connected, error) {
	if w.Connect == nil {
		return connected{}, fmt.Errorf("workload %s has no connections that another agent could take over", w.Name)
	}
	files, err := w.Connect(ctx, a.Params, a.Local, a.Server)
	if err != nil {
		return connected{}, err
	}
	return connected{Session: s.add(session{files: files}), Files: files}, nil
}

// disconnect closes the connections of clients. Sweeps over them begin anew.
func (s *server) disconnect(a sweepArgs) (any, error) {
	if len(a.Drop) != len(a.Sessions) {
		return nil, fmt.Errorf("disconnect %d clients with %d bursts to drop or keep", len(a.Sessions), len(a.Drop))
	}
	for i, id := range a.Sessions {
		c, err := s.renewable(id)
		if err == nil {
			err = s.sweeps.forget(id)
		}
		if err == nil {
			_ = c.Disconnect(a.Drop[i]) // what ails it, it says when it is to connect again
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (s *server) renewable(id int) (engine.Renewable, error) {
	if c, ok := s.sessions[id].client.(engine.Renewable); ok {
		return c, nil
	}
	return nil, fmt.Errorf("session %d is not a client that could connect anew", id)
}

func (s *server) reconnect(a sweepArgs) ([]sweptReply, error) {
	if len(a.Sockets) != len(a.Sessions) {
		return nil, fmt.Errorf("connect %d clients with the connections of %d", len(a.Sessions), len(a.Sockets))
	}
	replies := make([]sweptReply, len(a.Sessions))
	var well []int
	for i, id := range a.Sessions {
		c, err := s.renewable(id)
		if err != nil {
			return nil, err
		}
		if len(a.Sockets[i].Files) == 0 {
			replies[i].fail(errors.New("no connection could be opened for it"))
			continue
		}
		began := time.Now()
		replies[i].fail(s.warm(c, a.Sockets[i], a.Within))
		replies[i].Took = time.Since(began)
		if replies[i].Error == "" {
			well = append(well, id)
		}
	}
	if len(well) == 0 {
		return replies, nil
	}
	sweep, err := s.sweeps.over(well, s.client)
	if err != nil {
		return nil, err
	}
	for i := range replies {
		replies[i].Threads = []int{sweep.Thread()}
	}
	return replies, nil
}

// warmWithin bounds the first transactions of a client that is connected anew: its server answered a moment ago.
const warmWithin = 5 * time.Second

func (s *server) warm(c engine.Renewable, sockets Sockets, within time.Duration) error {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	return over(ctx, sockets, c.Reconnect)
}

// over calls dial with another agent's connections, if there are any.
func over(ctx context.Context, s Sockets, dial func(context.Context) error) error {
	if len(s.Files) == 0 {
		return dial(ctx)
	}
	fds, err := engine.Borrow(s.PID, s.Files)
	if err != nil {
		return err
	}
	return dial(engine.WithSockets(ctx, fds))
}

// SyncResult is what one agent reports of a burst that many agents begin together.
type SyncResult struct {
	Burst engine.Burst `json:"burst"`
	// Totals hold all of the agent's latencies since the last such burst as one histogram: they are merged before they are sent.
	Totals engine.Totals `json:"totals"`
	// Late is how long after the agreed instant the measured part began, less its warm-up, by the agent's own clock.
	Late time.Duration `json:"late_ns"`
	// Spare is how long before that instant the agent was ready; negative where it was told too late.
	Spare time.Duration `json:"spare_ns"`
}

// Offset is the difference of an agent's clock and this program's. Both are monotonic, with any zero.
type Offset struct {
	// Ahead is the agent's clock less this program's; Error is how far it may be off: half of what the exchange took.
	Ahead, Error time.Duration
}

// There is a moment of this program's clock by the agent's.
func (o Offset) There(here time.Duration) time.Duration { return here + o.Ahead }

// Now is this program's clock, as Offset means it.
func Now() time.Duration { return clock.Now() }

// Reading is a far program's monotonic clock when it had read a request, and when it answered.
type Reading struct {
	Received time.Duration `json:"received_ns"`
	Answered time.Duration `json:"answered_ns"`
}

// Offset reads the agent's clock tries times, as CompareClocks does.
func (a *Agent) Offset(ctx context.Context, tries int) (Offset, error) {
	return CompareClocks(tries, func() (Reading, error) {
		return invoke[Reading](ctx, a, opClock, nil, a.late())
	})
}

// CompareClocks reads a far clock tries times and takes the exchange that took least: what held up the others is in their error. It
// returns the error of ask.
func CompareClocks(tries int, ask func() (Reading, error)) (Offset, error) {
	var best Offset
	for i := range max(tries, 1) {
		sent := Now()
		r, err := ask()
		if err != nil {
			return Offset{}, err
		}
		if o := offset(sent, r, Now()); i == 0 || o.Error < best.Error {
			best = o
		}
	}
	return best, nil
}

// offset is what four readings tell, two of either clock: the way there and the way back are taken to be equally long.
func offset(sent time.Duration, r Reading, received time.Duration) Offset {
	return Offset{
		Ahead: ((r.Received - sent) + (r.Answered - received)) / 2,
		Error: ((received - sent) - (r.Answered - r.Received) + 1) / 2,
	}
}

// BurstAt has a client's session run a burst from an agreed instant on, by the agent's own clock (Offset.There), and fetches what it
// measured. The burst's deadline counts from its beginning. Wait is how far away the instant is at most. Errors match ErrHung as those
// of Burst do.
func (a *Agent) BurstAt(ctx context.Context, session int, at time.Duration, spec engine.BurstSpec, wait time.Duration) (SyncResult, error) {
	return unansweredHung(invoke[SyncResult](ctx, a, opBurstAt, sessionArgs{Session: session, At: at, Spec: spec}, wait+spec.Deadline+a.late()))
}

// burstAt waits for its instant, runs the burst and collects.
func (s *server) burstAt(a sessionArgs) (SyncResult, error) {
	c, err := s.client(a.Session)
	if err != nil {
		return SyncResult{}, err
	}
	// An agent's garbage is otherwise left until there is much of it, which hundreds of agents on one machine can't afford. Here it
	// is collected while there is nothing to do but wait.
	runtime.GC()
	spare := a.At - Now()
	if err := sleepUntil(a.At); err != nil {
		return SyncResult{}, err
	}
	b, err := c.Burst(a.Spec)
	if err != nil {
		return SyncResult{}, hung(err)
	}
	began := Now() - time.Since(b.Start)
	totals, err := c.Collect(false)
	if err != nil {
		return SyncResult{}, err
	}
	return SyncResult{Burst: b, Totals: totals, Late: began - a.At - a.Spec.Warmup, Spare: spare}, nil
}

// sleepUntil waits in the kernel for a moment of the monotonic clock: the runtime's timers come too late when the machine is
// busy, and a thread's own by its slack.
func sleepUntil(at time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it the start is 50 us later
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }()
	until := unix.NsecToTimespec(max(at, 0).Nanoseconds()) // the kernel knows no moment before it was booted
	for {
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for the common start: %w", err)
		}
	}
}
