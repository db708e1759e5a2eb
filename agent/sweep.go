package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"netdelta/engine"
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
