package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/endpoint"
	"netdelta/probe/path"
	"netdelta/result"
	"netdelta/testbed"
)

// client is one of a session's clients.
type client struct {
	agent.SyncClient
	endpoint endpoint.Endpoint
	moved    int64        // by bursts that were recorded
	did      engine.Burst // transactions, and how long they took, in all bursts that count
}

// clients are the clients of a session that has several, each in a pod of its own. They begin each burst together.
type clients struct {
	all       []*client
	lead      time.Duration // for which they are told ahead
	began     time.Duration // between the first and the last, in the last burst
	tally     engine.Tally
	latencies *hdrhistogram.Histogram // of all bursts that count
}

// startFurther starts agents for the clients of a cluster besides the first, unless they are there.
func (m *Context) startFurther(ctx context.Context, b *Build, tb testbed.Testbed, k *endpoint.Cluster, clients int) error {
	pods, err := endpoint.FurtherClients(tb, max(clients, 1)-1)
	if err != nil || len(pods) <= len(k.Further) {
		return err
	}
	pods = pods[len(k.Further):]
	agents := make([]*agent.Agent, len(pods))
	eg, ctx := errgroup.WithContext(ctx)
	for i, pod := range pods {
		eg.Go(func() (err error) { agents[i], err = m.startAgent(ctx, b, pod); return err })
	}
	if err := eg.Wait(); err != nil {
		return err
	}
	k.Further = append(k.Further, agents...)
	return nil
}

// join gives a session its further clients, whose agents there are, each with its own end; without any it has one client.
func (s *Session) join(own endpoint.Client, further []*agent.Agent, end func(endpoint.Client) endpoint.Endpoint) {
	n := s.demand.Clients
	if n <= 1 {
		return
	}
	s.clients = &clients{lead: agent.LeadFor(n), latencies: result.NewHistogram()}
	for _, a := range append([]*agent.Agent{own.Agent}, further[:n-1]...) {
		own.Agent = a
		s.clients.all = append(s.clients.all, &client{SyncClient: agent.SyncClient{Agent: a}, endpoint: end(own)})
	}
}

// each are the session's clients.
func (s *Session) each() []*client {
	if s.clients != nil {
		return s.clients.all
	}
	return []*client{{SyncClient: agent.SyncClient{Agent: s.runner, Session: s.session}, endpoint: s.endpoint}}
}

// further are the session's clients besides its own.
func (s *Session) further() []*client { return s.each()[1:] }

// dialFurther opens the connections of the further clients, one after another: what they try at first must not disturb the others.
func (s *Session) dialFurther(ctx context.Context) error {
	s.clients.tally = engine.Tally{} // as what the clients have summed up is gone with connections that were there before
	s.clients.latencies.Reset()
	for i, c := range s.each() {
		c.did = engine.Burst{}
		if i == 0 {
			c.Session = s.session
			continue
		}
		var err error
		if c.Session, err = c.endpoint.Dial(ctx); err != nil {
			return fmt.Errorf("the client in pod %s: %w", c.Agent.Pod().Name(), err)
		}
	}
	return nil
}

// drop closes all connections.
func (s *Session) drop(ctx context.Context) error {
	err := s.runner.Drop(ctx, s.session)
	for _, c := range s.further() {
		err = errors.Join(err, c.Agent.Drop(ctx, c.Session))
	}
	return err
}

// run runs a burst of the session's client, or of all its clients together.
func (s *Session) run(ctx context.Context, spec engine.BurstSpec) (engine.Burst, error) {
	if s.clients == nil {
		return s.runner.Burst(ctx, s.session, spec)
	}
	return s.clients.burst(ctx, spec)
}

// totals sums up the bursts that count.
func (s *Session) totals(ctx context.Context) (engine.Totals, error) {
	if s.clients == nil {
		return s.runner.Collect(ctx, s.session, s.disturbed)
	}
	return s.clients.collect(s.disturbed)
}

// agents are the session's as far as it has any yet.
func (s *Session) agents() []*agent.Agent {
	all := []*agent.Agent{s.client, s.server, s.runner}
	for _, c := range s.further() {
		all = append(all, c.Agent)
	}
	return slices.DeleteFunc(all, func(a *agent.Agent) bool { return a == nil })
}

// alive says whether all of the session's agents are.
func (s *Session) alive() bool {
	return !slices.ContainsFunc(s.agents(), func(a *agent.Agent) bool { return !a.Alive() })
}

// burst has all clients run a burst together. Its rate is the sum of the clients' rates, and so is its throughput.
func (k *clients) burst(ctx context.Context, spec engine.BurstSpec) (engine.Burst, error) {
	k.tally.Settle(spec.DropLast)
	var together []*agent.SyncClient
	for _, c := range k.all {
		if err := c.ReadClock(ctx); err != nil {
			return engine.Burst{}, err
		}
		together = append(together, &c.SyncClient)
	}
	sum := newSum()
	var errs []error
	got := make([]engine.Burst, len(k.all))
	spare := agent.BurstTogether(ctx, together, spec, k.lead, func(i int, one agent.SyncResult, err error) {
		if err == nil {
			err = sum.add(one)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the client in pod %s: %w", k.all[i].Agent.Pod().Name(), err))
			return
		}
		got[i] = one.Burst
	})
	if len(errs) > 0 {
		return engine.Burst{}, errors.Join(errs...)
	}
	for i, c := range k.all {
		c.moved += atLeast(got[i].Moved, got[i].Bytes)
	}
	if spare < 0 {
		k.lead = agent.LongerLead(k.lead, spare)
	}
	k.began = slices.Max(sum.late) - slices.Min(sum.late)
	b := sum.burst()
	k.tally.Take(b, engine.More{Add: func(t *engine.Totals) {
		k.latencies.Merge(sum.latencies)
		t.Disk = sum.disk
		for i, c := range k.all {
			c.did.Transactions, c.did.Duration = c.did.Transactions+got[i].Transactions, c.did.Duration+got[i].Duration
		}
	}})
	return b, nil
}

// collect returns the totals of the bursts that count, of all clients together.
func (k *clients) collect(dropLast bool) (engine.Totals, error) {
	t, err := k.tally.Collect(dropLast)
	if err == nil && k.latencies.TotalCount() > 0 {
		t.Histogram, err = result.EncodeHistogram(k.latencies)
	}
	return t, err
}

// rates are what each client did in the bursts that count, none of a client alone.
func (k *clients) rates() (all []result.ClientRate) {
	if k == nil {
		return nil
	}
	for _, c := range k.all {
		all = append(all, result.ClientRate{Node: c.Agent.Pod().Node(), Rate: perSecond(c.did)})
	}
	return all
}

// Apart is the reason for which a burst is left out whose clients did not measure the same time.
const Apart = "its clients began one after another"

// apart says whether the clients of the last burst began further apart than a fifth of its length.
func (k *clients) apart(length time.Duration) bool { return k != nil && k.began > length/warmupShare }

// sum adds up what clients measured in the same burst.
type sum struct {
	total     engine.Burst
	rate      float64 // of transactions in a second
	late      []time.Duration
	latencies *hdrhistogram.Histogram
	disk      *result.Disk
}

func newSum() *sum { return &sum{latencies: result.NewHistogram()} }

// add takes in one client's result. After an error nothing of it counts.
func (s *sum) add(got agent.SyncResult) error {
	if err := result.AddHistogram(s.latencies, got.Totals.Histogram); err != nil {
		return err
	}
	b, t := got.Burst, &s.total
	if t.Start.IsZero() || b.Start.Before(t.Start) {
		t.Start = b.Start
	}
	t.Duration, t.Span = max(t.Duration, b.Duration), max(t.Span, b.Span)
	t.Transactions, t.Bytes, t.Errors = t.Transactions+b.Transactions, t.Bytes+b.Bytes, t.Errors+b.Errors
	t.Sent, t.Lost, t.Reordered = t.Sent+b.Sent, t.Lost+b.Lost, t.Reordered+b.Reordered
	t.CPU, t.Work, t.Moved, t.Switches = t.CPU+b.CPU, t.Work+b.Work, t.Moved+b.Moved, t.Switches+b.Switches
	t.Throughput += b.Throughput
	t.Mean += b.Mean * float64(b.Transactions)
	s.rate += perSecond(b)
	s.late = append(s.late, got.Late)
	if s.disk == nil {
		s.disk = got.Totals.Disk
	}
	return nil
}

// burst is the sum as one burst, which lasted as long as its transactions take at the sum of the clients' rates.
func (s *sum) burst() engine.Burst {
	b := s.total
	if s.rate > 0 {
		b.Duration = time.Duration(float64(b.Transactions) / s.rate * float64(time.Second))
		b.Mean /= float64(b.Transactions)
	}
	if h := s.latencies; h.TotalCount() > 0 {
		at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) }
		b.Min, b.Max, b.P50, b.P90, b.P99 = float64(h.Min()), float64(h.Max()), at(50), at(90), at(99)
	}
	return b
}

// prove runs the clients' first bursts, one client after another, which are not recorded, and observes their paths where the testbed
// shows its devices.
func (s *Session) prove(ctx context.Context) error {
	s.silent = false
	for i, c := range s.each() {
		load := func(ctx context.Context) (path.Load, error) { return s.firstBursts(ctx, c) }
		if s.prover == nil {
			if _, err := load(ctx); err != nil {
				return err
			}
			continue
		}
		// In sweeps another pod's agent runs the bursts, over connections of the session's own pod.
		pod := s.client.Pod()
		if i > 0 {
			pod = c.Agent.Pod()
		}
		proof, err := s.prover.Prove(ctx, pod, s.server.Pod(), s.protocol, load)
		if err != nil {
			return err
		}
		if i > 0 {
			proof = withFurther(*s.path, pod.Name(), proof)
		}
		s.path = &proof
	}
	return nil
}

// served is the processor time of a server whose clock can't be read from here: its agent tells it, before and after what is the
// session's own there. That is a round of a server's own threads, and a burst where all programs of the agent count.
type served struct {
	told   told
	before time.Duration
}

// told says around what a server's time is told.
type told int

const (
	never told = iota
	eachRound
	eachBurst
)

// spent is what the session's servers have used so far.
func (s *Session) spent(ctx context.Context) (sum time.Duration, around told, err error) {
	around = eachRound
	for _, end := range s.services() {
		used, err := end.Agent.Spent(ctx, end.Session)
		if err != nil {
			return 0, never, fmt.Errorf("processor time of the server of %s: %w", s.Cell.ID, err)
		}
		if sum += used.CPU; !used.Alone {
			around = eachBurst
		}
	}
	return sum, around, nil
}

// askServer finds out whether the time of the session's server is told, and around what.
func (s *Session) askServer(ctx context.Context) {
	s.served = served{}
	if len(s.services()) > 0 && !s.server.Local() {
		_, s.served.told, _ = s.spent(ctx) // whatever keeps it from telling, its clock can't be read
	}
	s.meter.Told(s.served.told != never)
}

// beginServed reads what the servers have used, before a round or a burst.
func (s *Session) beginServed(ctx context.Context, around told) (err error) {
	if s.served.told == around {
		s.served.before, _, err = s.spent(ctx)
	}
	return err
}

// endServed records what they have used since, for the session's burst of the round.
func (s *Session) endServed(ctx context.Context, around told, round int) error {
	last := len(s.bursts.Round) - 1
	if s.served.told != around || last < 0 || s.bursts.Round[last] != round {
		return nil
	}
	now, _, err := s.spent(ctx)
	s.bursts.ServerCPU[last] = max(now-s.served.before, 0).Nanoseconds()
	return err
}

// moved is the error of a session, and says so where its external endpoint is served otherwise than when its testbed was opened: what
// failed may have failed by that. What is known has the testbeds that were asked.
func (s *Session) moved(ctx context.Context, known map[testbed.Testbed]error) error {
	if s.testbed == nil { // it could not be opened
		return s.Failed
	}
	moved := s.testbed.Instruments().Moved
	if _, asked := known[s.testbed]; moved != nil && !asked {
		known[s.testbed] = moved(ctx)
	}
	why := known[s.testbed]
	if s.Failed == nil || why == nil {
		return cmp.Or(s.Failed, why)
	}
	return fmt.Errorf("%w; %w", s.Failed, why)
}
