package measure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/experiment/endpoint"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/probe/sockets"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// Session is one cell in one build: a client on an open connection to its endpoint, and what its bursts measured so far.
type Session struct {
	Cell result.Cell
	Size BurstSize
	// Failed is why the cell can't be measured in this build, nil while it can.
	Failed error

	demand   workload.Demand
	cpus     cpuPlacement
	ports    endpoint.Ports
	protocol network.Protocol
	connects unit.Bytes // the request of a transaction that has a connection of its own, 0 where connections stay
	remote   bool       // the pods are on nodes of others

	testbed  testbed.Testbed
	endpoint endpoint.Endpoint
	client   *agent.Agent
	runner   *agent.Agent     // holds the client's end: the client, or the agent of a sweep
	visits   bool             // the workload can be measured in visits
	swept    *endpoint.Server // of a client that is visited in sweeps, else nil
	held     time.Duration    // for which its network held up its new connection
	carry    result.CarryOver
	server   *agent.Agent // the endpoint's
	session  int          // of the client
	clients  *clients     // nil for one alone
	patience time.Time    // until when the first connection is retried
	broken   bool         // the connection was lost with a service
	silent   bool         // nothing came back in the first bursts
	others   float64      // the share of the processors' time that other programs took before the first round
	steal    float64      // the sum of what the hypervisor took in each of the judged rounds
	judged   int

	started time.Time
	recorder
	probes
}

// cpuPlacement is the processors that the ends of a workload are pinned to; -1 is not pinned.
type cpuPlacement struct{ client, server int }

// list is both, empty where they are not pinned.
func (p cpuPlacement) list() []int {
	if p.client < 0 || p.server < 0 {
		return nil
	}
	return []int{p.client, p.server}
}

// placeCPUs chooses where the ends of a cell run, from its cpu parameter and the processors for measuring.
func (m *Context) placeCPUs(placement string) cpuPlacement {
	measuring := m.Measuring
	switch {
	case m.Pins != nil:
		return cpuPlacement{m.Pins.Client, m.Pins.Server}
	case placement == "any" || len(measuring) == 0:
		return cpuPlacement{-1, -1}
	case placement == "two" && len(measuring) > 1:
		return cpuPlacement{measuring[1], measuring[0]}
	}
	return cpuPlacement{measuring[0], measuring[0]}
}

// clusterCPU is the processor that a cluster is pinned to: none, unless neighbours compete for it, or are kept away from it.
func (m *Context) clusterCPU(c result.Cell) int {
	if !hasNeighbour(c.Params.Conditions) || len(m.Measuring) == 0 {
		return -1
	}
	return m.Measuring[0]
}

// newSessions prepares the sessions of cells.
func (m *Context) newSessions(cells []result.Cell) []*Session {
	sessions := make([]*Session, len(cells))
	for i, c := range cells {
		d := m.demand(c)
		s := &Session{
			Cell: c, Size: SizeOf(m.Burst, m.VisitBursts, d).patient(m.Program.Patience, d), demand: d,
			cpus: m.placeCPUs(c.Params.CPU), ports: m.portsOf(c), remote: !m.able.OwnsNodes, probes: probes{share: m.shares[c.ID]},
		}
		if d.Cluster != nil && c.Params.CPU == "" {
			cpu := m.clusterCPU(c)
			s.cpus = cpuPlacement{cpu, cpu}
		}
		for _, w := range m.Workloads {
			if w.Name != c.Workload {
				continue
			}
			s.protocol, s.recorder = w.Protocol, recorderFor(w, c.Params)
			s.visits = w.Sweeps != nil && w.Sweeps(c.Params)
			if w.Connects {
				s.connects = cmp.Or(c.Params.Message, w.Defaults.Message)
			}
		}
		sessions[i] = s
	}
	return sessions
}

// firstConnectWithin is how long the first connection is retried, and connectAgain the pause between two attempts: a service's
// addresses reach every node in their own time.
const (
	firstConnectWithin = 20 * time.Second
	connectAgain       = 250 * time.Millisecond
)

// connect chooses the session's endpoint. Only this function knows all kinds of endpoints.
func (m *Context) connect(s *Session, a agents, tb testbed.Testbed, clusters map[string]*endpoint.Cluster) {
	s.testbed, s.client = tb, a.client
	external := s.Cell.Params.Target != "" || s.Cell.Params.StorageClass != ""
	if external {
		s.client = a.servers[s.Cell.Placement]
	}
	s.runner = s.client
	c := endpoint.Client{Agent: s.client, Testbed: tb, Cell: s.Cell, Demand: s.demand, CPU: s.cpus.client, Remote: s.remote}
	switch {
	case s.demand.Cluster != nil:
		k := clusters[s.demand.Cluster.Key]
		s.endpoint = k.For(c)
		s.join(c, k.Further, k.For)
	case s.Cell.Params.Target != "":
		s.endpoint = m.Targets.For(c)
	case external:
		s.endpoint = endpoint.NewVolume(c)
		s.join(c, a.further, func(c endpoint.Client) endpoint.Endpoint { return endpoint.NewVolume(c) })
	default:
		sweeps := a.sweeper != nil && s.sweeps()
		if sweeps {
			s.runner, c.Runner, s.levels = a.sweeper, a.sweeper, true
		}
		server := endpoint.NewServer(c, a.servers[s.Cell.Placement], s.ports, s.cpus.server)
		if s.endpoint = server; sweeps {
			s.swept = server
		}
	}
	s.server = s.endpoint.Info().Agent
}

// open starts what the endpoint starts for this session alone and opens the connection.
func (s *Session) open(ctx context.Context) error {
	if err := s.endpoint.Open(ctx); err != nil {
		return err
	}
	for {
		err := s.dial(ctx)
		if err == nil || !s.endpoint.Info().Retry || ctx.Err() != nil || !s.alive() || time.Now().After(s.patience) {
			if err == nil || ctx.Err() != nil {
				return err
			}
			_, hangs := s.blame(ctx, err)
			return cmp.Or(hangs, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(connectAgain):
		}
	}
}

// blame asks the session's services what ails them. Where one hangs that serves this session alone, hangs is the error with that.
func (s *Session) blame(ctx context.Context, err error) (ailment string, hangs error) {
	ailment, ended := s.Check(ctx)
	if ailment == "" || ended || s.SharesServices() {
		return ailment, nil
	}
	return ailment, fmt.Errorf("%w; its service hangs: %s", err, ailment)
}

// dial opens the client's connection to an endpoint that is there.
func (s *Session) dial(ctx context.Context) (err error) {
	if s.session, err = s.endpoint.Dial(ctx); err == nil && s.clients != nil {
		err = s.dialFurther(ctx)
	}
	if err != nil {
		return fmt.Errorf("opening the connection of %s to %s: %w", s.Cell.ID, s.endpoint.Info().Name, err)
	}
	s.broken = false
	if s.started.IsZero() {
		s.started = time.Now()
	}
	return nil
}

// Reopen opens the client's connection anew.
func (s *Session) Reopen(ctx context.Context) error {
	_ = s.drop(ctx) // it is of no more use, whatever it says
	s.disturbed = false
	return s.dial(ctx)
}

// Close closes the connection and what was started for it alone; an error is the session's.
func (s *Session) Close(ctx context.Context) {
	s.Failed = errors.Join(s.drop(ctx), s.endpoint.Close(ctx))
}

// ServiceKey names what the session's services serve.
func (s *Session) ServiceKey() string { return endpoint.Key(s.Cell, s.demand) }

// services are the daemons that serve the session.
func (s *Session) services() []*endpoint.Service {
	if s.endpoint == nil {
		return nil
	}
	return s.endpoint.Info().Services
}

// HasServices says whether the session has daemons that can be unwell.
func (s *Session) HasServices() bool { return len(s.demand.Programs) > 0 && len(s.services()) > 0 }

// SharesServices says whether daemons serve the session and others, and outlive them.
func (s *Session) SharesServices() bool { return s.endpoint != nil && s.endpoint.Info().Shared }

// Broken says whether the connection was lost with a service.
func (s *Session) Broken() bool { return s.broken }

// Check asks the session's services what ails them, and whether a daemon has ended.
func (s *Session) Check(ctx context.Context) (ailment string, ended bool) {
	if !s.HasServices() {
		return "", false
	}
	return s.endpoint.Check(ctx)
}

// Recover waits until the session's services are well and opens the connection anew, to be measured again.
func (s *Session) Recover(ctx context.Context) error {
	err := s.endpoint.Recover(ctx)
	if err == nil {
		err = s.Reopen(ctx)
	}
	if err == nil && s.path == nil && s.prover != nil {
		err = s.prove(ctx)
	}
	return err
}

// burst runs one burst, with its neighbour if the cell has one, and records it; disturbances of the whole round are marked later.
func (s *Session) burst(ctx context.Context, round int, at time.Duration) error {
	spec := s.Size.spec()
	return s.neighbour.during(ctx, spec, round, func() error { return s.measure(ctx, spec, round, at) })
}

// measure runs one burst.
func (s *Session) measure(ctx context.Context, spec engine.BurstSpec, round int, at time.Duration) error {
	spec.DropLast = s.disturbed
	s.disturbed = false
	if err := errors.Join(s.beginServed(ctx, eachBurst), s.links.begin(ctx), s.bounds.Begin(ctx, s.Size.takes)); err != nil {
		return err
	}
	meterErr := s.meter.Start() // also of an agent that is gone: the burst then says more
	b, err := s.run(ctx, spec)
	if err != nil {
		s.recordHang(err, spec.Deadline, round, at)
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
	s.conclude(b, spent, round, at)
	return s.endServed(ctx, eachBurst, round)
}

// Discard marks all bursts so far as measured with unwell services, and numbers them after the rounds that replace them.
func (s *Session) Discard(ailment string) {
	for i := range s.bursts.Round {
		if s.bursts.Disturbed[i] == "" {
			s.bursts.Disturbed[i] = Unwell + ailment
		}
		s.bursts.Round[i] += s.Size.Visit
	}
}

// BurstUnrecorded runs the workload for as long as asked, or as its programs need, after a warm-up of a fifth of that.
func (s *Session) BurstUnrecorded(ctx context.Context, length time.Duration) (engine.Burst, error) {
	d := s.demand
	d.Transactions = 0
	b, err := s.run(ctx, SizeOf(length, 0, d).spec())
	if err != nil {
		return b, fmt.Errorf("burst of %s: %w", s.Cell.ID, err)
	}
	return b, nil
}

// Collect closes the accounts of sessions: what each measured in this build, or why it failed.
func Collect(ctx context.Context, build int, sessions []*Session) []result.Trial {
	explainLosses(ctx, sessions)
	unread := endConfigAudits(ctx, sessions)
	trials := make([]result.Trial, len(sessions))
	moved := map[testbed.Testbed]error{} // each is asked once, however many settings it serves
	for i, s := range sessions {
		trials[i] = s.trial(ctx, build, moved)
	}
	audit(ctx, sessions, trials)
	if unread != nil {
		for i := range trials {
			if trials[i].Path != nil {
				trials[i].Path.Weak = append(trials[i].Path.Weak, fmt.Sprintf("no audit of the configuration: %v", unread))
			}
		}
	}
	return trials
}

// trial closes the session's account. moved has what is known of external endpoints.
func (s *Session) trial(ctx context.Context, build int, moved map[testbed.Testbed]error) result.Trial {
	t := result.Trial{
		Schema: result.Schema, Cell: s.Cell.ID, Role: s.Cell.Role, Build: build,
		Started: s.started, Bursts: s.bursts, Path: s.path, Links: s.links.use(), Changes: s.changes, Drops: s.drops, ClientCPU: s.cpus.client, ServerCPU: s.cpus.server,
	}
	t.OtherLoad = s.others
	if s.judged > 0 {
		t.OtherLoad = max(t.OtherLoad, s.steal/float64(s.judged))
	}
	keep := func(err error) { s.Failed = cmp.Or(s.Failed, err) }
	if s.Failed == nil {
		totals, err := s.totals(ctx)
		if err != nil {
			keep(fmt.Errorf("collecting %s: %w", s.Cell.ID, err))
		}
		t.Histogram, t.TCP, t.Series = totals.Histogram, totals.TCP, totals.Series
		t.Transactions, t.Bytes = totals.Transactions, totals.Bytes
		t.Sent, t.Lost, t.Reordered = totals.Sent, totals.Lost, totals.Reordered
		t.Errors = totals.Errors
		served, err := endpoint.Totals(ctx, s.services())
		if err != nil {
			keep(fmt.Errorf("collecting the server of %s: %w", s.Cell.ID, err))
		}
		keep(s.checkCongestionControl(t.TCP))
		t.Sockets = sockets.Join(totals, served)
		t.Disk, t.Replication = cmp.Or(totals.Disk, served.Disk), cmp.Or(totals.Replication, served.Replication)
		t.Services, t.Clients = s.serviceRecords(ctx), s.clients.rates()
		s.explainLoss(ctx)
	}
	s.Failed = s.moved(ctx, moved)
	if s.carry.Visits > 0 {
		t.CarryOver = &s.carry
	}
	t.Bound = s.bounds.Bound(s.bursts.Disturbed, t.Disk)
	keep(s.closeProbes())
	t.Finished = time.Now()
	if s.Failed != nil {
		t.Failed = s.Failed.Error()
		if fix := machine.Shortage(s.Failed); fix != "" {
			t.Failed += "; " + fix
		}
	}
	return t
}

// serviceRecords are the session's services as its trial has them. Shared ones were asked when the visit was over.
func (s *Session) serviceRecords(ctx context.Context) []result.Service {
	if !s.HasServices() {
		return nil
	}
	if !s.SharesServices() {
		s.endpoint.Check(ctx)
	}
	var all []result.Service
	for _, m := range s.services() {
		all = append(all, m.Records()...)
	}
	return all
}

// AllowCongestionControl is the setting by which a kernel lets processes without rights choose a congestion control.
const AllowCongestionControl = "net.ipv4.tcp_allowed_congestion_control"

// checkCongestionControl is the error of a cell that asked for a congestion control and got another: where the pods have no rights,
// the kernel may not let them choose.
func (s *Session) checkCongestionControl(used *result.TCPInfo) error {
	asked := s.Cell.Params.CongestionControl
	if !s.remote || asked == "" || used == nil || used.CongestionControl == "" || used.CongestionControl == asked {
		return nil
	}
	return fmt.Errorf("%s ran under congestion control %s: its pods may not choose %s; allow it on their nodes by sysctl %s",
		s.Cell.ID, used.CongestionControl, asked, AllowCongestionControl)
}
