package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"netdelta/agent"
	"netdelta/network"
	"netdelta/probe/bounds"
	"netdelta/probe/cpu"
	"netdelta/probe/path"
	"netdelta/probe/pressure"
	"netdelta/probe/sockets"
	"netdelta/probe/stalls"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// seat is one cell in one build: a client armed on an open connection to its server, and what its bursts gave so far.
type seat struct {
	cell    result.Cell
	pace    pace
	demand  workload.Demand
	testbed testbed.Testbed
	ports   ports
	client  *agent.Agent
	server  *agent.Agent // of a cluster, that of its first pod
	session int          // of the client
	// services are the server's, or all of the cluster's; those of a cluster outlive the seat.
	services []*service
	cluster  *cluster // nil where the cell has a server of its own
	grasp    *grasp   // of the endpoint of the user's own, nil where netdelta serves
	broken   bool     // the connection was lost with a service
	silent   bool     // nothing came back in the first bursts
	// far says that the pods are on other machines, and reachBy when the network has to reach the server there.
	far     bool
	reachBy time.Time

	started   time.Time
	bursts    result.Bursts
	share     *pressure.Share
	disturbed bool // the last burst, so that the agent leaves it out of its histogram
	failed    error
	cpus      placementCPUs
	neighbour *neighbour // nil without one
	latencies bool       // the bursts have latencies
	connects  unit.Bytes // the request of a transaction that has a connection of its own, 0 where connections stay
	streams   bool       // the bursts have a throughput
	rates     bool       // the bursts have a rate of transactions
	searches  bool       // the bursts look for the highest rates
	protocol  network.Protocol
	local     netip.AddrPort // of the client; port 0 takes any
	remote    netip.AddrPort // where the client reaches the server; none of a cluster
	meter     *cpu.Meter
	prober    path.Proof
	path      *result.Path // nil where nobody could look
	links     *linkMeter   // nil without bonds
	bounds    *bounds.Meter
}

// placementCPUs are the processors that the ends of a workload are pinned to; -1 is not pinned.
type placementCPUs struct{ client, server int }

// list is both, empty where they are not pinned.
func (p placementCPUs) list() []int {
	if p.client < 0 || p.server < 0 {
		return nil
	}
	return []int{p.client, p.server}
}

// placeCPUs decides where the ends of a cell run, from its placement on processors and those that may be used for
// measuring.
func placeCPUs(placement string, measuring []int) placementCPUs {
	switch {
	case placement == "any" || len(measuring) == 0:
		return placementCPUs{-1, -1}
	case placement == "two" && len(measuring) > 1:
		return placementCPUs{measuring[1], measuring[0]}
	}
	return placementCPUs{measuring[0], measuring[0]}
}

// arm starts the server, where the cell has one of its own, and opens the client's connection.
func (s *seat) arm(ctx context.Context, tb testbed.Testbed) error {
	if s.cluster != nil {
		return s.redial(ctx)
	}
	switch {
	case s.cell.Params.Target != "":
		return s.await(ctx, func() error { return s.redial(ctx) })
	case alone(s.cell):
		return s.redial(ctx) // what a volume refuses once it refuses again
	}
	from, to := s.client.Pod(), s.server.Pod()
	first, last := to.Ports()
	port := int(first) + s.ports.server
	if port > int(last) {
		return fmt.Errorf("pod %s has ports %d to %d, too few for setting %d of the study", to.Name(), first, last, s.ports.server+1)
	}
	all := netip.IPv4Unspecified()
	if s.cell.Params.Family == result.IPv6 {
		all = netip.IPv6Unspecified()
	}
	listen := netip.AddrPortFrom(all, uint16(port))
	session, err := s.server.ServeWithin(ctx, s.cell.Workload, s.cell.Params, listen, s.cpus.server, s.within(serveWithin))
	if err != nil {
		return fmt.Errorf("starting the server of %s: %w", s.cell.ID, err)
	}
	s.services = []*service{{agent: s.server, session: session}}
	s.local, s.remote = netip.AddrPortFrom(all, uint16(s.ports.client)), tb.Endpoint(from, to, uint16(port))
	if s.far {
		return s.await(ctx, func() error { return s.redial(ctx) })
	}
	return s.redial(ctx)
}

// redial opens the client's connection, to a server that is there.
func (s *seat) redial(ctx context.Context) (err error) {
	switch {
	case s.cluster != nil:
		s.session, err = s.cluster.dial(ctx, s.testbed, s.client, s.cell, s.cpus.client)
	case s.cell.Params.Target != "":
		s.session, err = s.dialTarget(ctx)
	case alone(s.cell):
		s.session, err = s.dialVolume(ctx)
	default:
		s.session, err = s.client.DialWithin(ctx, s.cell.Workload, s.cell.Params, s.local, s.remote, s.cpus.client, s.within(dialWithin))
	}
	if err != nil {
		return fmt.Errorf("opening the connection of %s to %s: %w", s.cell.ID, s.whom(), err)
	}
	s.broken = false
	if s.started.IsZero() {
		s.started = time.Now()
	}
	return nil
}

// whom names what the client connects to.
func (s *seat) whom() string {
	if s.cluster != nil {
		return "its cluster"
	}
	if class := s.cell.Params.StorageClass; class != "" {
		return "its volume of storage class " + class
	}
	return s.remote.String()
}

// within is how long a start may take that has programs to start; netdelta's own loops start at once, where the network is there.
func (s *seat) within(d time.Duration) time.Duration {
	switch {
	case len(s.demand.Programs) > 0:
		return d
	case s.far:
		return reachEach
	}
	return 0
}

// disarm closes both ends, less a cluster.
func (s *seat) disarm(ctx context.Context) {
	err := s.client.Drop(ctx, s.session)
	if s.cluster == nil && len(s.services) > 0 {
		err = errors.Join(err, s.server.Drop(ctx, s.services[0].session))
	}
	s.failed = err
}

// burst runs one burst, beside its neighbour if the cell has one, and notes its figures; disturbances of the whole round are
// marked later, by markRound.
func (s *seat) burst(ctx context.Context, spec workload.BurstSpec, round int, at time.Duration) error {
	return s.neighbour.beside(ctx, spec, round, func() error { return s.measure(ctx, spec, round, at) })
}

// measure runs one burst.
func (s *seat) measure(ctx context.Context, spec workload.BurstSpec, round int, at time.Duration) error {
	spec.DropLast = s.disturbed
	s.disturbed = false
	if err := errors.Join(s.links.begin(ctx), s.bounds.Begin(ctx, spec.Duration)); err != nil {
		return err
	}
	meterErr := s.meter.Start() // of an agent that is gone, too: the burst then tells more of it
	b, err := s.client.Burst(ctx, s.session, spec)
	if err != nil {
		if errors.Is(err, agent.ErrHung) {
			s.recordHung(spec, round, at)
		}
		return err
	}
	if meterErr != nil {
		return meterErr
	}
	if err := s.links.end(ctx); err != nil {
		return err
	}
	spent, err := s.meter.Stop(b)
	if err != nil {
		return err
	}
	if err := s.bounds.End(ctx, b, spent, s.meter.Whole()); err != nil {
		return err
	}
	reason := ""
	// A neighbour that takes the processor away from a crowded seat is what is measured there, and the threads of a program
	// take it away from each other.
	if !s.crowded() && !s.demand.Opaque && s.meter.Preempted(b, spent, s.share) {
		reason = pressure.ReasonPreempted
	}
	s.record(b, round, at, reason)
	s.meter.Record(&s.bursts, b, spent)
	return nil
}

// recordUnwell gives a burst that failed since a service was unwell its row.
func (s *seat) recordUnwell(round int, at time.Duration, words string) {
	s.record(workload.Burst{}, round, at, Unwell+words)
	s.bounds.Skip()
	s.meter.Record(&s.bursts, workload.Burst{}, cpu.Spent{})
	s.broken = true
}

// recordHung gives a burst that never ended its row: it is the worst of stalls.
func (s *seat) recordHung(spec workload.BurstSpec, round int, at time.Duration) {
	b := workload.Burst{Span: spec.Deadline}
	s.record(b, round, at, stalls.NothingArrived)
	s.meter.Record(&s.bursts, b, cpu.Spent{})
	s.bounds.Skip()
}

// record appends one burst to the columns of the trial.
func (s *seat) record(b workload.Burst, round int, start time.Duration, reason string) {
	c := &s.bursts
	c.Round = append(c.Round, round)
	c.Start = append(c.Start, start.Nanoseconds())
	c.Duration = append(c.Duration, b.Duration.Nanoseconds())
	c.Span = append(c.Span, b.Span.Nanoseconds())
	c.Transactions = append(c.Transactions, b.Transactions)
	c.Lost = append(c.Lost, b.Lost)
	if s.latencies {
		c.Min = append(c.Min, b.Min)
		c.P50 = append(c.P50, b.P50)
		c.P90 = append(c.P90, b.P90)
		c.P99 = append(c.P99, b.P99)
		c.Mean = append(c.Mean, b.Mean)
		c.Max = append(c.Max, b.Max)
		c.Split = append(c.Split, b.Split)
	}
	if s.streams {
		c.Throughput = append(c.Throughput, b.Throughput)
	}
	if s.rates {
		c.Rate = append(c.Rate, perSecond(b))
		c.Errors = append(c.Errors, b.Errors)
	}
	if s.searches {
		found := b.Search
		if found == nil {
			found = &workload.Search{}
		}
		c.NoDrop = append(c.NoDrop, found.NoDrop)
		c.PartialDrop = append(c.PartialDrop, found.PartialDrop)
		c.AtLeast = append(c.AtLeast, found.AtLeast)
		c.Load10 = append(c.Load10, found.Load10)
		c.Load50 = append(c.Load50, found.Load50)
		c.Load90 = append(c.Load90, found.Load90)
	}
	if reason == "" && (s.latencies && b.P50 <= 0 || s.streams && b.Throughput <= 0 || s.searches && b.Bytes <= 0 || s.rates && b.Transactions <= 0) {
		reason = stalls.NothingArrived
	}
	c.Disturbed = append(c.Disturbed, reason)
	s.disturbed = reason != ""
}

// charge is what the seat's services serve, for the ward.
func (s *seat) charge() string { return charge(s.cell, s.demand) }

// perSecond is the rate of a burst's transactions.
func perSecond(b workload.Burst) float64 {
	if b.Duration <= 0 {
		return 0
	}
	return float64(b.Transactions) / b.Duration.Seconds()
}

// markRound marks the seat's last burst as disturbed when it belongs to the given round.
func (s *seat) markRound(round int, reason string) {
	last := len(s.bursts.Round) - 1
	if last < 0 || s.bursts.Round[last] != round || s.bursts.Disturbed[last] != "" {
		return
	}
	s.bursts.Disturbed[last] = reason
	s.disturbed = true
}

// trial closes the seat's account: what it measured in this build.
func (s *seat) trial(ctx context.Context, build int) result.Trial {
	t := result.Trial{
		Schema: result.Schema, Cell: s.cell.ID, Role: s.cell.Role, Build: build,
		Started: s.started, Bursts: s.bursts, Path: s.path, Links: s.links.use(), ClientCPU: s.cpus.client, ServerCPU: s.cpus.server,
	}
	if s.failed == nil {
		totals, err := s.client.Collect(ctx, s.session, s.disturbed)
		if err != nil {
			s.failed = fmt.Errorf("collecting %s: %w", s.cell.ID, err)
		}
		t.Histogram, t.TCP, t.Series = totals.Histogram, totals.TCP, totals.Series
		t.Transactions, t.Bytes = totals.Transactions, totals.Bytes
		t.Sent, t.Lost, t.Reordered = totals.Sent, totals.Lost, totals.Reordered
		t.Errors = totals.Errors
		served, err := serverTotals(ctx, s.services)
		if err != nil && s.failed == nil {
			s.failed = fmt.Errorf("collecting the server of %s: %w", s.cell.ID, err)
		}
		if err := s.congested(t.TCP); err != nil && s.failed == nil {
			s.failed = err
		}
		t.Sockets = sockets.Join(totals, served)
		t.Disk, t.Replication = cmp.Or(totals.Disk, served.Disk), cmp.Or(totals.Replication, served.Replication)
		t.Services = s.records(ctx)
	}
	if s.meter != nil { // nil where the testbed never stood
		if err := s.meter.Close(); err != nil && s.failed == nil {
			s.failed = err
		}
	}
	t.Bound = s.bounds.Bound(s.bursts.Disturbed, t.Disk)
	if err := s.bounds.Close(); err != nil && s.failed == nil {
		s.failed = err
	}
	t.Finished = time.Now()
	if s.failed != nil {
		t.Failed = s.failed.Error()
	}
	return t
}
