package measure

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/network"
	"netdelta/probe/bounds"
	"netdelta/probe/cpu"
	"netdelta/probe/path"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// probes observe a session while it is measured.
type probes struct {
	meter     *cpu.Meter
	served    served
	share     *pressure.Share // of its processor that the cell usually gets
	links     *linkMeter      // nil without bonds
	bounds    *bounds.Meter
	neighbour *neighbour   // nil without one
	config    *configAudit // nil where the configuration is not watched
	prover    path.Prover  // nil where the path can't be observed
	path      *result.Path // nil until it is proven
}

// addProbes gives a session that has its agents its probes.
func (m *Context) addProbes(s *Session, a agents, prover path.Prover) {
	if !s.endpoint.Info().External {
		s.prover = prover
	}
	s.meter = m.Kernel.Meter(s.server, s.cpus.list())
	if carriers := s.testbed.Instruments().Carriers; carriers != nil {
		s.meter.Carriers(carriers())
	}
	s.links = linksOf(s.testbed, s.client.Pod(), s.server.Pod(), s.protocol)
	s.bounds = bounds.New(s.testbed, s.cpus.list(), len(s.demand.Programs) > 0, s.client.Local() && s.server.Local())
	s.neighbour = m.neighbourOf(s, a.neighbour)
}

// closeProbes closes what the probes read from. It is idempotent.
func (p *probes) closeProbes() error {
	if p.meter == nil { // the testbed was never there, or all is closed
		return nil
	}
	err := cmp.Or(p.meter.Close(), p.config.close())
	p.meter = nil
	return cmp.Or(err, p.bounds.Close())
}

// Path is the proof of which way the session's packets go, nil where the path can't be observed.
func (s *Session) Path() *result.Path { return s.path }

// follow has the meter watch the threads of both ends, which have run by now.
func (s *Session) follow(ctx context.Context) error {
	s.askServer(ctx)
	if s.clients != nil {
		return s.followThreads(ctx, nil) // the threads of one client say nothing of all
	}
	threads, err := s.runner.Threads(ctx, s.session)
	if err != nil {
		return err
	}
	return s.followThreads(ctx, threads)
}

// followThreads is follow with the client's threads.
func (s *Session) followThreads(ctx context.Context, threads []int) error {
	s.meter.Follow(s.runner, threads)
	var servers []cpu.Process
	var err error
	for _, end := range s.services() {
		if threads, err = end.Agent.Threads(ctx, end.Session); err != nil {
			return err
		}
		s.meter.Follow(end.Agent, threads)
		servers = append(servers, end.Agent)
	}
	if s.HasServices() && s.server.Local() {
		return s.meter.Programs(servers)
	}
	return nil
}

// maxProofs is how often the first bursts on other machines are run until something comes back.
const maxProofs = 3

// proveFirst is prove, with fresh connections while nothing comes back from other machines: what was sent to a service before its
// node knew where that is keeps going astray, since the kernel remembers where the first packet went.
func (s *Session) proveFirst(ctx context.Context) error {
	err := s.prove(ctx)
	for n := 1; n < maxProofs && s.remote && err == nil && s.silent && !s.SharesServices(); n++ {
		if err = s.Reopen(ctx); err == nil {
			err = s.prove(ctx)
		}
	}
	if err == nil && s.remote && s.silent {
		return fmt.Errorf("nothing comes back from %s", s.endpoint.Info().Name)
	}
	return err
}

// opaque says that the path of the cell's bytes is not known, even where their number is: programs move them.
func (s *Session) opaque() bool { return s.demand.Opaque || len(s.demand.Programs) > 0 }

// proofLeast is how many transactions a proof should rest on; a few messages of a stream are many packets, so that proofBytes of
// them will do as well.
const (
	proofLeast = 16
	proofBytes = 256 * unit.KiB
)

// firstBursts run bursts of one client until enough has arrived: at a low rate, a short burst may have nothing in it.
func (s *Session) firstBursts(ctx context.Context, c *client) (path.Load, error) {
	burst, to := s.Size.length, c.endpoint.Info()
	load := path.Load{Protocol: s.protocol, Server: to.Address, Opaque: s.opaque(), Peers: to.Peers}
	if s.protocol == network.UDP {
		load.Message = s.Cell.Params.Message
	}
	transactions := int64(0)
	for _, length := range []time.Duration{burst / warmupShare, burst, 10 * burst} {
		b, err := c.Agent.Burst(ctx, c.Session, engine.BurstSpec{Duration: length, DropLast: s.disturbed, Deadline: length - burst + s.Size.deadline})
		if err != nil {
			return load, err
		}
		s.disturbed = true // keeps the burst out of the histogram
		s.addLoad(&load, b.Moved, b.Bytes)
		if transactions += b.Transactions; transactions >= proofLeast || load.Opaque && (load.Both >= proofBytes || length == burst) || !s.latencies && load.Requests >= proofBytes {
			break
		}
	}
	s.silent = s.silent || s.latencies && transactions == 0
	return load, nil
}

// addLoad adds to a load the bytes that a workload moved: requests and responses alike, or a stream one way. Of a stream of
// datagrams only what arrived counts, since some that was sent may be lost. Of a load that another program makes, only what was measured: what
// it moved while it warmed up is an estimate.
func (s *Session) addLoad(load *path.Load, moved, delivered int64) {
	switch {
	case s.opaque():
		load.Both += unit.Bytes(atLeast(moved, delivered))
	case s.latencies:
		load.Requests += unit.Bytes(moved / 2)
		load.Responses += unit.Bytes(moved / 2)
		if s.connects > 0 {
			load.Connections += moved / 2 / int64(s.connects)
		}
	case s.protocol == network.UDP:
		load.Requests += unit.Bytes(delivered)
	default:
		load.Requests += unit.Bytes(moved)
	}
}

// atLeast is the least that certainly crossed the devices: what was measured or, with the warm-up, is said to have been moved. Zero is not known.
func atLeast(moved, delivered int64) int64 {
	return min(cmp.Or(moved, delivered), cmp.Or(delivered, moved))
}

// beginAudits reads the devices' counters before the bursts that count.
func beginAudits(ctx context.Context, sessions []*Session) error {
	for p := range byProver(sessions) {
		if err := p.Begin(ctx); err != nil {
			return err
		}
	}
	return nil
}

// audit compares what the devices carried since beginAudits with what the sessions' trials moved, and adds what it finds to their
// proofs. Trials that share a testbed share its devices: where one of them was misrouted from the start, the counters say nothing of
// the others. Where the testbed can't be read any more, the proofs say so.
func audit(ctx context.Context, sessions []*Session, trials []result.Trial) {
	for p, members := range byProver(sessions) {
		if slices.ContainsFunc(members, func(i int) bool { return !sessions[i].path.OK }) {
			continue
		}
		var moved []path.Moved
		for _, i := range members {
			s, load := sessions[i], path.Load{}
			var sum int64
			for _, m := range s.bursts.Moved {
				sum += m
			}
			s.addLoad(&load, sum, trials[i].Bytes)
			way := path.Moved{
				Opaque: s.opaque(), Both: load.Both, Peers: s.endpoint.Info().Peers,
				From: s.client.Pod(), To: s.server.Pod(), Protocol: s.protocol, Requests: load.Requests, Responses: load.Responses,
				Connections: load.Connections,
			}
			for _, c := range s.further() { // whose workloads are opaque
				other := way
				other.From, other.Both = c.Agent.Pod(), unit.Bytes(c.moved)
				way.Both -= other.Both
				moved = append(moved, other)
			}
			moved = append(moved, way)
		}
		found, err := p.End(ctx, moved)
		if err != nil {
			found.Weak = append(found.Weak, fmt.Sprintf("no audit of the whole trial: %v", err))
		}
		for _, i := range members {
			if trials[i].Path != nil {
				found.Enter(trials[i].Path)
			}
		}
	}
}

// byProver are the indices of the sessions that share a testbed whose devices can be observed.
func byProver(sessions []*Session) map[path.Prover][]int {
	by := map[path.Prover][]int{}
	for i, s := range sessions {
		if s.prover != nil && s.path != nil {
			by[s.prover] = append(by[s.prover], i)
		}
	}
	return by
}

// linkMeter adds up what the links of the bonds on a path send while bursts run.
type linkMeter struct {
	o      testbed.Observer
	bundle []bundle
	before map[network.Device]testbed.Counters
	sent   map[network.Device]uint64
	rate   map[network.Device]unit.BitsPerSecond
}

// bundle is one side of the links of a bond.
type bundle struct {
	name  string
	links []network.Device
}

// linksOf is the meter for the bonds on the path between two pods, nil where there are none or they can't be observed.
func linksOf(tb testbed.Testbed, from, to testbed.Pod, protocol network.Protocol) *linkMeter {
	o := tb.Instruments().Observer
	if o == nil {
		return nil
	}
	m := &linkMeter{o: o, sent: map[network.Device]uint64{}, rate: map[network.Device]unit.BitsPerSecond{}}
	plan := o.Plan()
	for _, s := range network.Of[network.Shape](plan.Underlay) {
		m.rate[s.Device] = s.Rate
	}
	way := o.Path(from, to, protocol)
	for _, b := range plan.Bonds() {
		if slices.ContainsFunc(way, func(h network.Hop) bool { return h.Device == b.Device }) {
			m.bundle = append(m.bundle, bundle{b.Device.String(), b.Members()}, farSide(plan, b))
		}
	}
	if len(m.bundle) == 0 {
		return nil
	}
	return m
}

// farSide is the other ends of a bond's links.
func farSide(p network.Plan, b network.Bond) bundle {
	far := bundle{}
	for _, op := range p.Underlay {
		v, ok := op.(network.Veth)
		if !ok {
			continue
		}
		if k := slices.Index(b.Members(), v.A.Device); k >= 0 {
			far.links = append(far.links, v.B.Device)
			far.name = strings.TrimSuffix(v.B.Device.String(), fmt.Sprintf("p%d", k))
		}
	}
	return far
}

// begin reads the counters before a burst.
func (m *linkMeter) begin(ctx context.Context) (err error) {
	if m == nil {
		return nil
	}
	m.before, err = m.o.Counters(ctx)
	return err
}

// end adds what was sent since begin.
func (m *linkMeter) end(ctx context.Context) error {
	if m == nil {
		return nil
	}
	after, err := m.o.Counters(ctx)
	if err != nil {
		return err
	}
	for _, b := range m.bundle {
		for _, l := range b.links {
			if a, was := after[l], m.before[l]; a.SentBytes >= was.SentBytes {
				m.sent[l] += a.SentBytes - was.SentBytes
			}
		}
	}
	return nil
}

// use is how the load was spread over the links.
func (m *linkMeter) use() []result.LinkUse {
	if m == nil {
		return nil
	}
	var all []result.LinkUse
	for _, b := range m.bundle {
		total := uint64(0)
		for _, l := range b.links {
			total += m.sent[l]
		}
		for _, l := range b.links {
			u := result.LinkUse{Device: l.String(), Bond: b.name, Sent: int64(m.sent[l]), Rate: m.rate[l]}
			if total > 0 {
				u.Share = float64(m.sent[l]) / float64(total)
			}
			all = append(all, u)
		}
	}
	return all
}

// withFurther adds the proof of a further client, which is in a pod, to a session's proof. The hops stay as they were.
func withFurther(all result.Path, pod string, p result.Path) result.Path {
	named := func(into *[]string, sentences []string) {
		for _, says := range sentences {
			*into = append(*into, fmt.Sprintf("from pod %s: %s", pod, says))
		}
	}
	named(&all.Findings, p.Findings)
	for _, says := range p.Weak {
		if !slices.Contains(all.Weak, says) {
			named(&all.Weak, []string{says})
		}
	}
	for _, says := range p.Notes {
		if !slices.Contains(all.Notes, says) {
			all.Notes = append(all.Notes, says)
		}
	}
	if p.Encapsulation != "" && all.Encapsulation != "" && p.Encapsulation != all.Encapsulation {
		all.Notes = append(all.Notes, fmt.Sprintf("from pod %s: wrapped in %s", pod, p.Encapsulation))
	}
	all.OK = all.OK && p.OK
	all.Payload, all.MTU = all.Payload+p.Payload, min(all.MTU, p.MTU)
	all.Stray = append(all.Stray, p.Stray...)
	all.Sampled, all.Fragments, all.Largest = all.Sampled+p.Sampled, all.Fragments+p.Fragments, max(all.Largest, p.Largest)
	return all
}
