package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"netdelta/agent"
	"netdelta/experiment/endpoint"
	"netdelta/experiment/plan"
	"netdelta/internal/gather"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed/rpc"
)

// calibrationRounds is how many rounds at the start of a run set the thresholds of disturbance.
const calibrationRounds = 5

// Rounds runs bursts over sessions, and judges by what the machines did meanwhile whether they can be trusted.
type Rounds struct {
	context  *Context
	swapped  bool      // networks are swapped live, so that a round has one network
	began    time.Time // the run
	machines *machineWatch
	// others is the share of the processors' time that other programs took when that was last read, readOthers when it was.
	others     float64
	readOthers time.Time
	// usual is what rounds are compared with, by the classes of service among their cells and the state of the cluster: neighbours are a
	// load, and so may be what a state runs on the nodes.
	usual map[string]*calibration
}

// NewRounds returns the rounds of a run that began at the given time. swapped says that networks are swapped live.
func NewRounds(m *Context, began time.Time, swapped bool) *Rounds {
	return &Rounds{context: m, swapped: swapped, began: began, machines: &machineWatch{here: m.Machine, observed: m.Observed, unread: map[string]bool{}}, usual: map[string]*calibration{}}
}

// Close closes what the rounds read the machines' state from.
func (r *Rounds) Close() error { return r.machines.close() }

func (r *Rounds) clock() time.Duration { return time.Since(r.began) }

// calibration learns the usual load from the first rounds, after which threshold holds.
type calibration struct {
	loads     []pressure.Load
	threshold *pressure.Threshold
}

// Warm runs each session briefly without a record, since the first burst after a set-up resolves addresses and fills caches, and
// proves its path meanwhile.
func (r *Rounds) Warm(ctx context.Context, sessions []*Session) error {
	if err := r.lookAtOthers(ctx, sessions); err != nil {
		return err
	}
	for _, s := range sessions {
		if s.Failed != nil {
			continue
		}
		err := s.proveFirst(ctx)
		if err == nil {
			err = s.follow(ctx)
		}
		r.context.Observed.unknown(s.meter.Lacks())
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.handle(ctx, sessions, s, 0, r.clock(), fmt.Errorf("first burst of %s: %w", s.Cell.ID, err))
	}
	if err := startConfigAudits(ctx, sessions, r.began); err != nil {
		return err
	}
	return beginAudits(ctx, sessions)
}

// How long what other programs do is looked at, and how often at most: networks that are swapped are warmed several times a second.
const (
	othersSpan  = 100 * time.Millisecond
	othersEvery = 2 * time.Second
)

// lookAtOthers reads what other programs do on the machines while nothing is measured. Services of a workload are part of it: where there
// are some, nothing can be told of others.
func (r *Rounds) lookAtOthers(ctx context.Context, sessions []*Session) error {
	if slices.ContainsFunc(sessions, (*Session).HasServices) {
		return nil
	}
	if time.Since(r.readOthers) > othersEvery {
		if err := r.machines.begin(ctx, sessions); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(othersSpan):
		}
		load, err := r.machines.end(ctx)
		if err != nil {
			return err
		}
		r.others, r.readOthers = load.Others(r.machines.here != nil), time.Now()
	}
	for _, s := range sessions {
		s.others = r.others
	}
	return nil
}

// handle records a burst that failed because a service was unwell; a burst that failed otherwise fails its session, and so does one that
// hung with a service of its own: to wait for that would take the time of all others.
func (r *Rounds) handle(ctx context.Context, sessions []*Session, s *Session, round int, at time.Duration, err error) {
	ailment, hangs := s.blame(ctx, err)
	switch {
	case ailment == "", errors.Is(err, agent.ErrHung) && hangs != nil:
		fail(sessions, s, cmp.Or(hangs, err))
	default:
		s.recordUnwell(round, at, ailment)
	}
}

// Run measures each session once, one setting after the other in random order, in sweeps where that can be, and then judges the round as a whole. It returns
// how long each session took, and whether the machines did something else meanwhile.
func (r *Rounds) Run(ctx context.Context, build int, sessions []*Session, round int) (spans []time.Duration, disturbed bool, err error) {
	if err := r.machines.begin(ctx, sessions); err != nil {
		return nil, false, err
	}
	r.askServers(ctx, sessions, round, func(s *Session) error { return s.beginServed(ctx, eachRound) })
	spans = make([]time.Duration, len(sessions))
	all := units(sessions)
	for _, i := range bySetting(plan.Order(r.context.seed, build, round, len(all)), all) {
		start := r.clock()
		if err := r.measure(ctx, sessions, all[i], build, round); err != nil {
			return nil, false, err
		}
		each := (r.clock() - start) / time.Duration(len(all[i]))
		for _, s := range all[i] {
			spans[slices.Index(sessions, s)] = each
		}
	}
	r.askServers(ctx, sessions, round, func(s *Session) error { return s.endServed(ctx, eachRound, round) })
	load, err := r.machines.end(ctx)
	if err != nil {
		return nil, false, err
	}
	r.context.Observed.unknown(r.machines.unknown())
	r.checkServices(ctx, sessions, round)
	if (r.swapped || len(r.context.Changes) > 0) && slices.ContainsFunc(sessions, (*Session).HasServices) {
		// The one network or state of this round makes programs wait for processors, or not: only outside causes are a disturbance.
		load = pressure.Load{Steal: load.Steal, Throttled: load.Throttled, Throttles: load.Throttles}
	}
	reason := r.calibrationFor(sessions).judge(load, r.others >= result.BusyShare)
	for _, s := range sessions {
		s.steal, s.judged = s.steal+load.Steal, s.judged+1
		if reason != "" {
			s.markRound(round, reason)
		}
	}
	return spans, reason != "", nil
}

// askServers asks those servers at once whose time is told around a round.
func (r *Rounds) askServers(ctx context.Context, sessions []*Session, round int, ask func(*Session) error) {
	asked := slices.DeleteFunc(slices.Clone(sessions), func(s *Session) bool { return s.served.told != eachRound || r.leavesOut(s) })
	errs := make([]error, len(asked))
	atOnce(asked, func(i int, s *Session) { errs[i] = ask(s) })
	for i, s := range asked {
		if errs[i] != nil && ctx.Err() == nil {
			r.handle(ctx, sessions, s, round, r.clock(), errs[i])
		}
	}
}

// measure runs a burst in each of the sessions that are measured together. An error says that the run can't go on.
func (r *Rounds) measure(ctx context.Context, sessions, unit []*Session, build, round int) error {
	s := unit[0]
	switch {
	case s.swept != nil:
		return r.sweep(ctx, sessions, unit, build, round)
	case r.leavesOut(s):
		return nil
	}
	start := r.clock()
	if err := s.burst(ctx, round, start); err != nil && ctx.Err() == nil {
		r.handle(ctx, sessions, s, round, start, fmt.Errorf("burst of %s: %w", s.Cell.ID, err))
	}
	return ctx.Err()
}

// leavesOut says whether a session can't be measured in this round.
func (r *Rounds) leavesOut(s *Session) bool {
	return s.Failed != nil || s.broken || r.context.Health.GivenUp(s.ServiceKey())
}

// asks says whether a session's services are asked how they are after a round.
func (r *Rounds) asks(s *Session) bool {
	return s.Failed == nil && s.HasServices() && !(r.swapped && s.SharesServices()) && !r.context.Health.GivenUp(s.ServiceKey())
}

// checkServices asks services how they are after a round, but for those beneath which networks are swapped: they are asked around each
// visit. The bursts of those that were unwell don't count; daemons that have ended are restarted, once.
func (r *Rounds) checkServices(ctx context.Context, sessions []*Session, round int) {
	health := r.context.Health
	for _, s := range sessions {
		if !r.asks(s) {
			continue
		}
		ailment, ended := s.Check(ctx)
		if ctx.Err() != nil || ailment == "" && !s.broken {
			continue
		}
		s.markRound(round, Unwell+ailment)
		if s.SharesServices() {
			if err := s.Recover(ctx); err != nil && ctx.Err() == nil {
				fail(sessions, s, fmt.Errorf("%s after its services were unwell (%s): %w", s.Cell.ID, ailment, err))
			}
			continue
		}
		if ended && !health.Ended(s.ServiceKey(), ailment) {
			continue
		}
		var err error
		if ended {
			err = s.services()[0].Restart(ctx)
		}
		if err == nil && (ended || s.broken) {
			err = s.Reopen(ctx)
		}
		if err != nil && ctx.Err() == nil {
			fail(sessions, s, fmt.Errorf("%s after its service was unwell (%s): %w", s.Cell.ID, ailment, err))
		}
	}
}

// calibrationFor is the calibration for rounds of these sessions.
func (r *Rounds) calibrationFor(sessions []*Session) *calibration {
	var classes []string
	for _, s := range sessions {
		classes = append(classes, s.Cell.Params.Conditions.QoS, s.Cell.State)
		if s.HasServices() {
			classes = append(classes, s.Cell.Workload)
		}
	}
	slices.Sort(classes)
	key := strings.Join(slices.Compact(classes), " ")
	if r.usual[key] == nil {
		r.usual[key] = &calibration{}
	}
	return r.usual[key]
}

// judge calibrates on the first rounds that no other programs disturb, then gives the reason why a round can't be trusted, or "". busy
// says that other programs keep the processors busy also while nothing is measured: what is usual can't be learned then.
func (c *calibration) judge(load pressure.Load, busy bool) string {
	switch {
	case c.threshold != nil:
		return c.threshold.Disturbed(load)
	case busy:
		return ""
	}
	c.loads = append(c.loads, load)
	if len(c.loads) == calibrationRounds {
		t := pressure.Calibrate(c.loads)
		c.threshold = &t
	}
	return ""
}

// fail takes a session out of the build. If its agent is gone, so are all sessions that the agent served.
func fail(sessions []*Session, s *Session, err error) {
	s.Failed = err
	if !errors.Is(err, rpc.ErrGone) && s.alive() {
		return
	}
	for _, o := range sessions {
		if o.Failed != nil {
			continue
		}
		for _, a := range o.agents() {
			if a.Alive() {
				continue
			}
			_, why := a.Counters(context.Background()) // an agent that is gone answers at once
			if why == nil {
				why = err
			}
			o.Failed = fmt.Errorf("%s: its pod was lost: %w", o.Cell.ID, why)
			break
		}
	}
}

// explainLosses adds to sessions that failed what became of their pods.
func explainLosses(ctx context.Context, sessions []*Session) {
	var all sync.WaitGroup
	for _, s := range sessions {
		all.Go(func() { s.explainLoss(ctx) })
	}
	all.Wait()
}

// explainLoss is explainLosses for one session, whose daemons may be in pods of their own. A connection tells at once that its other end is
// lost, and the cluster later: an agent that is asked now answers, or turns out to be gone.
func (s *Session) explainLoss(ctx context.Context) {
	if s.Failed == nil || errors.Is(s.Failed, rpc.ErrGone) {
		return
	}
	agents := s.agents()
	for _, d := range s.services() {
		agents = append(agents, d.Agent)
	}
	for _, a := range agents {
		if _, err := a.Counters(ctx); errors.Is(err, rpc.ErrGone) {
			s.Failed = fmt.Errorf("%w; %w", s.Failed, cmp.Or(endpoint.Lost(a), err))
			return
		}
	}
}

// machineWatch observes the load of the machines that rounds are measured on: this machine, or the agents' machines through one agent
// on each.
type machineWatch struct {
	here     *pressure.Reader // nil where agents watch
	observed *Observed        // is told of their interrupts
	before   []machineSample
	unread   map[string]bool // sentences on machines whose counters can't be read
}

// machineSample is a machine at one time.
type machineSample struct {
	agent      *agent.Agent // nil for this machine
	sample     pressure.Sample
	interrupts []uint64
	err        error
}

// begin starts a span.
func (w *machineWatch) begin(ctx context.Context, sessions []*Session) error {
	if w.here != nil {
		now, err := w.here.Read()
		w.before = []machineSample{{sample: now}}
		return err
	}
	w.before = w.read(ctx, onePerNode(sessions))
	return ctx.Err()
}

// end gives the load since begin, of the machines that could be read both times. If an agent no longer answers, the bursts of its
// cells fail.
func (w *machineWatch) end(ctx context.Context) (pressure.Load, error) {
	if w.here != nil {
		now, err := w.here.Read()
		if err != nil {
			return pressure.Load{}, err
		}
		return now.Since(w.before[0].sample), nil
	}
	agents := gather.Each(w.before, func(v machineSample) *agent.Agent { return v.agent })
	var loads []pressure.Load
	for i, v := range w.read(ctx, agents) {
		if v.err == nil && w.before[i].err == nil {
			loads = append(loads, v.sample.Since(w.before[i].sample))
			w.observed.interrupted(v.agent.Pod().Node(), w.before[i].interrupts, v.interrupts)
		}
	}
	return pressure.Worst(loads), ctx.Err()
}

// read asks all agents at once.
func (w *machineWatch) read(ctx context.Context, agents []*agent.Agent) []machineSample {
	samples := make([]machineSample, len(agents))
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			samples[i].agent = a
			counters, err := a.Counters(ctx)
			if err == nil {
				samples[i].interrupts = counters.Interrupts
				samples[i].sample, err = pressure.SampleOf(counters)
			}
			samples[i].err = err
		})
	}
	wg.Wait()
	for _, v := range samples {
		if v.err != nil && v.agent.Alive() && ctx.Err() == nil {
			w.unread[fmt.Sprintf("what disturbed node %s: %v", v.agent.Pod().Node(), v.err)] = true
		}
	}
	return samples
}

// unknown says what can't be told of the machines: a sentence for each part.
func (w *machineWatch) unknown() []string { return slices.Sorted(maps.Keys(w.unread)) }

func (w *machineWatch) close() error {
	if w.here == nil {
		return nil
	}
	return w.here.Close()
}

// onePerNode is one agent of the sessions on each node.
func onePerNode(sessions []*Session) []*agent.Agent {
	var all []*agent.Agent
	nodes := map[string]bool{}
	for _, s := range sessions {
		if s.Failed != nil {
			continue
		}
		for _, a := range s.agents() {
			if node := a.Pod().Node(); !nodes[node] && a.Alive() {
				nodes[node] = true
				all = append(all, a)
			}
		}
	}
	return all
}
