package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/gather"
	"netdelta/probe/cpu"
	"netdelta/result"
	"netdelta/testbed"
)

// A visit measures so many transactions after a few that are not, and begins no more of them after its time.
// docs/adr/0044-sweeps.md has the trials behind the figures.
const (
	visitTransactions = 16
	visitWarmup       = 4
	visitTime         = time.Millisecond
)

// Where the ends sleep between requests, a visit measures fewer: each takes longer, and what a sleeping processor takes to wake changes
// within milliseconds. Requests at a rate have so many sweeps in a round at least.
const (
	wakingTransactions = 4
	wakingWarmup       = 1
	pacedSweeps        = 4
)

// sweepsLeast is how long sweeps take at least in a round: new connections take some ten milliseconds.
const sweepsLeast = 50 * time.Millisecond

// sweeps says whether a session's client can be visited in sweeps: by a thread of this machine, which finds the client's processor as it
// is without neighbours, and needs no programs at either end.
func (s *Session) sweeps() bool {
	d := s.demand
	return s.visits && s.client.Local() && d.Cluster == nil && d.Burst == 0 && d.Transactions == 0 && len(d.Programs) == 0 && !hasNeighbour(s.Cell.Params.Conditions)
}

// sweptLeast is the share of its time that a network's visits in a round must miss at least, so that they don't count: as one visit
// in five that others take for themselves, which leaves the median of the visits as it is.
const sweptLeast = 0.2

// fitSweeps says whether one thread can visit all networks of each setting.
func fitSweeps(cells []result.Cell) bool {
	networks := map[result.Setting]int{}
	for _, c := range cells {
		networks[c.Setting()]++
	}
	for _, n := range networks {
		if n > engine.MaxSweep {
			return false
		}
	}
	return true
}

// sweeperOf is the agent that holds the clients of all of the build's sweeps, nil where there can't be one. It is in the pod that asked
// first; the clients' connections are opened in pods of their own all the same.
func (m *Context) sweeperOf(ctx context.Context, b *Build, pod testbed.Pod) (*agent.Agent, error) {
	b.sweeping.Lock()
	defer b.sweeping.Unlock()
	if b.sweeper != nil || b.sweepless {
		return b.sweeper, nil
	}
	a, err := m.startAgent(ctx, b, pod)
	if err != nil {
		return nil, err
	}
	if err := borrows(a); err != nil {
		b.sweepless = true
		m.Observed.unknown([]string{fmt.Sprintf("how equal networks are to less than a percent: they are measured one after another (%v)", err)})
		return nil, nil
	}
	b.sweeper = a
	return a, nil
}

// borrows says whether an agent's connections can be taken over, by taking a handle on its standard input.
func borrows(a *agent.Agent) error {
	if !a.Local() {
		return errors.New("the pods are not seen as processes of this machine")
	}
	files, err := engine.Borrow(a.PID(), []int{0})
	return errors.Join(err, engine.CloseAll(files))
}

// units are the sessions that are measured together: all of a setting that one thread visits in turn, and each other one alone.
func units(sessions []*Session) [][]*Session {
	var all [][]*Session
	at := map[result.Setting]int{}
	for _, s := range sessions {
		if s.swept == nil {
			all = append(all, []*Session{s})
			continue
		}
		i, known := at[s.Cell.Setting()]
		if !known {
			i = len(all)
			at[s.Cell.Setting()], all = i, append(all, nil)
		}
		all[i] = append(all[i], s)
	}
	return all
}

// bySetting brings the units of each setting together and leaves them in the random order in which they are: the baseline is measured as
// close to its networks as can be, before the machine has changed.
func bySetting(order []int, all [][]*Session) []int {
	first := map[result.Setting]int{}
	for at, i := range order {
		if _, known := first[all[i][0].Cell.Setting()]; !known {
			first[all[i][0].Cell.Setting()] = at
		}
	}
	together := slices.Clone(order)
	slices.SortStableFunc(together, func(a, b int) int {
		return first[all[a][0].Cell.Setting()] - first[all[b][0].Cell.Setting()]
	})
	return together
}

// sweep measures the sessions of one setting in sweeps, each time on new connections: where the kernel puts a connection's memory moves its
// latency by some 0.3%, which would otherwise stay the same for as long as a build lasts.
func (r *Rounds) sweep(ctx context.Context, sessions, members []*Session, build, round int) error {
	at := r.clock()
	failed := func(s *Session, err error) {
		r.handle(ctx, sessions, s, round, at, fmt.Errorf("burst of %s: pod %s: %w", s.Cell.ID, s.client.Pod().Name(), err))
	}
	members = slices.DeleteFunc(slices.Clone(members), func(s *Session) bool { return s.Failed != nil })
	if len(members) == 0 {
		return nil
	}
	for i, err := range renew(context.WithoutCancel(ctx), members) { // what was measured needs a connection when it is collected
		if err != nil {
			failed(members[i], err)
		}
	}
	members = slices.DeleteFunc(members, func(s *Session) bool {
		if s.Failed != nil || s.broken || ctx.Err() != nil {
			return true
		}
		err := s.beginSweep(ctx)
		if err != nil && ctx.Err() == nil {
			failed(s, err)
		}
		return err != nil
	})
	if len(members) == 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	spec := sweepSpec(members)
	spec.Seed = r.context.seed ^ uint64(build)<<32 ^ uint64(round)
	swept, err := members[0].runner.Sweep(ctx, numbers(members), spec)
	if err != nil {
		swept = slices.Repeat([]engine.Swept{{Err: err}}, len(members))
	}
	spents := readMeters(members, swept)
	for i, s := range members {
		err := swept[i].Err
		if err == nil {
			err = s.endSweep(ctx, swept[i].Burst, spents[i], round, at)
		} else {
			s.recordHang(err, spec.Deadline, round, at)
		}
		if err != nil && ctx.Err() == nil {
			failed(s, err)
		}
	}
	return ctx.Err()
}

// numbers are the sessions as their agent knows them.
func numbers(members []*Session) []int {
	return gather.Each(members, func(s *Session) int { return s.session })
}

// renew puts new connections between the same addresses in the place of the sessions', and has the meters follow their threads. What
// the sessions have measured so far is kept, less the last bursts that are to be dropped.
func renew(ctx context.Context, members []*Session) []error {
	drop := gather.Each(members, func(s *Session) bool { return s.disturbed })
	runner := members[0].runner
	if err := runner.Disconnect(ctx, numbers(members), drop); err != nil {
		return slices.Repeat([]error{err}, len(members))
	}
	errs, sockets, took := make([]error, len(members)), make([]agent.Sockets, len(members)), make([]time.Duration, len(members))
	atOnce(members, func(i int, s *Session) {
		began := time.Now()
		s.disturbed = false
		sockets[i], errs[i] = s.swept.Connect(ctx)
		took[i] = time.Since(began)
	})
	connected, err := runner.Reconnect(ctx, numbers(members), sockets)
	if err != nil {
		return slices.Repeat([]error{err}, len(members))
	}
	for i := range took {
		took[i] += connected[i].Took
	}
	holdUp(members, took)
	atOnce(members, func(i int, s *Session) {
		if errs[i] != nil {
			return
		}
		if errs[i] = errors.Join(connected[i].Err, s.client.LetGo(ctx, sockets[i])); errs[i] == nil {
			errs[i] = s.refollow(ctx, connected[i].Threads)
		}
	})
	return errs
}

// A connection that takes so long, and so many times as long as the others at the same time, was held up by its network: a stall that
// begins between two rounds would else be over, and unseen, when the next one begins.
const (
	heldUp      = 100 * time.Millisecond
	heldUpTimes = 5
)

// holdUp adds what held up new connections to the time of the bursts that follow on them.
func holdUp(members []*Session, took []time.Duration) {
	usual := slices.Sorted(slices.Values(took))[len(took)/2]
	for i, s := range members {
		if s.held = 0; took[i] >= max(heldUp, heldUpTimes*usual) {
			s.held = took[i]
		}
	}
}

// atOnce runs f for all members at the same time: what is waited for are processes of their own, or the kernel.
func atOnce[M any](members []M, f func(i int, m M)) {
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() { f(i, m) })
	}
	all.Wait()
}

// refollow has the meter watch the threads of a new connection.
func (s *Session) refollow(ctx context.Context, client []int) error {
	if err := s.meter.Unfollow(); err != nil {
		return err
	}
	return s.followThreads(ctx, client)
}

// sweepSpec is how sessions are visited. Of n networks that are held against the same reference, the error of each difference is least
// for a given time if the reference is visited as often as the square root of n (Dunnett, 1955); the baseline and its A/A control share
// these visits.
func sweepSpec(members []*Session) engine.SweepSpec {
	spec := engine.SweepSpec{Transactions: visitTransactions, Warmup: visitWarmup, Slice: visitTime, Visits: make([]int, len(members))}
	cells := 0
	for _, s := range members {
		if s.Cell.Role == result.RoleCell {
			cells++
		}
	}
	often := 1
	if n := len(members) - cells; n > 0 {
		often = max(1, int(math.Round(math.Sqrt(float64(cells))/float64(n))))
	}
	for i, s := range members {
		spec.Visits[i] = 1
		if s.Cell.Role != result.RoleCell {
			spec.Visits[i] = often
		}
		length := s.Size.length
		rate := s.Cell.Params.RequestRate
		if rate > 0 || s.Cell.Params.Regime() == result.RegimeWaking {
			spec.Transactions, spec.Warmup = wakingTransactions, wakingWarmup
		}
		if rate > 0 {
			length = max(length, time.Duration(pacedSweeps*(wakingTransactions+wakingWarmup)/rate*float64(time.Second)))
		}
		spec.Duration += time.Duration(spec.Visits[i]) * length
		spec.Deadline = max(spec.Deadline, s.Size.deadline)
	}
	spec.Duration = max(spec.Duration, sweepsLeast)
	spec.Deadline += spec.Duration
	return spec
}

// beginSweep readies a session for its visits.
func (s *Session) beginSweep(ctx context.Context) error {
	if err := s.links.begin(ctx); err != nil {
		return err
	}
	if err := s.bounds.Begin(ctx, s.Size.length); err != nil {
		return err
	}
	return s.meter.Start()
}

// readMeters is what was spent on each session's visits. A session whose meter can't be read fails.
func readMeters(members []*Session, swept []engine.Swept) []cpu.Spent {
	spent, meters, bursts := make([]cpu.Spent, len(members)), make([]*cpu.Meter, len(members)), make([]engine.Burst, len(members))
	for i, s := range members {
		meters[i], bursts[i] = s.meter, swept[i].Burst
		var err error
		spent[i], err = s.meter.Stop(bursts[i])
		swept[i].Err = cmp.Or(swept[i].Err, err)
	}
	cpu.Share(meters, bursts, spent)
	return spent
}

// endSweep records what a session's visits gave.
func (s *Session) endSweep(ctx context.Context, b engine.Burst, spent cpu.Spent, round int, at time.Duration) error {
	if err := s.links.end(ctx); err != nil {
		return err
	}
	if err := s.bounds.End(ctx, b, spent, s.meter.Whole()); err != nil {
		return err
	}
	b.Span += s.held
	s.carry.Add(b.Carry)
	s.conclude(b, spent, round, at)
	return nil
}
