package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/probe/path"
	"netdelta/probe/pressure"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// stage is what builds are made with: the same for a whole run.
type stage struct {
	driver    testbed.Provider
	program   agent.Program
	workloads []workload.Workload
	spec      testbed.Spec // of every testbed, less its network
	measuring []int
	kernel    *cpu.Kernel
	// shares are what bursts of each cell usually get of their processor, over all builds: a load that begins in the middle
	// of a run must not become what a later build takes for usual.
	shares map[string]*pressure.Share
	seed   uint64
	ports  map[result.Setting]ports
	seen   *sightings
	// burst and visit are the study's length of a burst and the bursts of a visit under live swaps, 0 where it does not say.
	burst time.Duration
	visit int
	ward  *ward
	// changes are the networks that are another one of the testbed's, on changed ground.
	changes []testbed.Change
	able    testbed.Capabilities
	// meets says that agents describe their machines, which are not this one.
	meets   bool
	targets *targets
	// apart are the networks whose pods are others than those of all other networks.
	apart map[string]bool
}

func newStage(c Config) *stage {
	assigned := assignPorts(c.Run.Cells, c.Workloads)
	able := c.Driver.Capabilities()
	if !able.OwnsNodes {
		assigned = anyClientPort(assigned)
	}
	return &stage{
		driver: c.Driver, program: c.Program, workloads: c.Workloads, spec: c.Testbed, measuring: c.Measuring, kernel: c.Kernel, shares: newShares(c.Run.Cells),
		seed: c.Run.Seed, ports: assigned, seen: &sightings{},
		burst: c.Burst, visit: c.VisitBursts, ward: &ward{}, able: able, meets: c.Run.Environment.Cluster != nil, changes: c.Changes,
		targets: &targets{password: c.Password},
		apart:   apartNetworks(able.Networks),
	}
}

// apartNetworks are the driver's networks whose pods are others than those of all other networks.
func apartNetworks(networks []network.Network) map[string]bool {
	all := map[string]bool{}
	for _, n := range networks {
		all[n.Name] = n.OwnPods
	}
	return all
}

// ports are those of a setting: the same in every network and build, so that no hash of a connection's addresses differs
// between two cells that are compared.
type ports struct {
	server int // counted from the first port of the server's pod
	client int // the first of as many as the workload uses; 0 where the kernel chooses
}

// Client ports lie below those of the pods' servers.
const (
	firstClientPort = 2048
	lastClientPort  = 19999
)

// assignPorts gives each setting of the cells its ports.
func assignPorts(cells []result.Cell, workloads []workload.Workload) map[result.Setting]ports {
	assigned := map[result.Setting]ports{}
	next := firstClientPort
	for i, s := range result.Settings(cells) {
		uses := 1
		for _, w := range workloads {
			if w.Name == s.Workload {
				uses = w.SourcePorts(s.Params)
			}
		}
		if next+uses-1 > lastClientPort {
			assigned[s] = ports{server: i} // with thousands of connections the kernel chooses
			continue
		}
		assigned[s] = ports{server: i, client: next}
		next += uses
	}
	return assigned
}

// anyClientPort has the kernel choose the client's ports: on nodes that are others' they may be taken.
func anyClientPort(assigned map[result.Setting]ports) map[result.Setting]ports {
	for s, p := range assigned {
		p.client = 0
		assigned[s] = p
	}
	return assigned
}

// newShares gives each cell the share that it keeps over all builds.
func newShares(cells []result.Cell) map[string]*pressure.Share {
	shares := map[string]*pressure.Share{}
	for _, c := range cells {
		shares[c.ID] = &pressure.Share{}
	}
	return shares
}

// build is one set-up of the networks of some cells, side by side, every cell armed.
type build struct {
	index int
	seats []*seat

	mu       sync.Mutex
	testbeds []testbed.Testbed
	agents   []*agent.Agent
}

// group is what shares a testbed: the cells of one network, role and underlay. The baseline's twin has a testbed of its own.
type group struct {
	network string
	twin    bool
	underlay
}

// underlay is what cells ask of a testbed beside the network: the MTU of the links between nodes, zero for the study's, the
// version of IP that nodes and pods speak, and the conditions.
type underlay struct {
	mtu        unit.Bytes
	family     result.Family
	conditions result.Conditions
	target     string // the host of the endpoint that is measured, "" for a server of netdelta's
	class      string // the storage class of the volume that is, "" for none
}

func groupOf(c result.Cell) group {
	return group{c.Network, c.Role == result.RoleTwin, underlay{c.Params.MTU, c.Params.Family, c.Params.Conditions, targetHost(c.Params), c.Params.StorageClass}}
}

// group sorts the cells by the testbed that they share, and draws the order in which a build creates or visits the
// groups: anew for each build, so that it can't favour a network over all builds.
func (st *stage) group(index int, cells []result.Cell) (map[group][]result.Cell, []group) {
	groups := map[group][]result.Cell{}
	var order []group
	for _, c := range cells {
		g := groupOf(c)
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], c)
	}
	rng := rand.New(rand.NewPCG(st.seed, uint64(index)))
	rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return groups, order
}

// parallelOpens is how many testbeds are set up at once, unless the provider says otherwise: on this machine more only queue for the
// kernel's one lock on links.
const parallelOpens = 4

// openBuild sets up a build. A cell whose network or connection fails gets a seat that says so; only the end of ctx fails
// the build as a whole, and then nothing of it is left.
func (st *stage) openBuild(ctx context.Context, index int, cells []result.Cell) (*build, error) {
	groups, order := st.group(index, cells)
	b := &build{index: index}
	eg, egCtx := errgroup.WithContext(ctx)
	eg.SetLimit(parallelOpens)
	if costs := st.able.Costs; costs != nil {
		eg.SetLimit(costs.Opens)
	}
	seats := make([][]*seat, len(order))
	for i, g := range order {
		eg.Go(func() error {
			seats[i] = st.openGroup(egCtx, b, g, groups[g])
			return egCtx.Err()
		})
	}
	if err := eg.Wait(); err != nil {
		return nil, errors.Join(fmt.Errorf("setting up build %d: %w", index+1, err), b.close())
	}
	b.seats = slices.Concat(seats...)
	b.pick(cells)
	return b, nil
}

// openGroup opens one testbed and arms its cells.
func (st *stage) openGroup(ctx context.Context, b *build, g group, cells []result.Cell) []*seat {
	seats := st.newSeats(cells)
	for _, s := range seats {
		if s.demand.Cluster != nil {
			return failAll(seats, fmt.Errorf("%s is served by a cluster, which takes live swaps: it can only be measured in blocks, by netdelta run", s.cell.ID))
		}
	}
	spec := st.specOf(g)
	spec.Volume.Size = st.largest(cells)
	tb, err := st.driver.Open(ctx, spec)
	if err != nil {
		return failAll(seats, fmt.Errorf("building network %s: %w", g.network, err))
	}
	b.keep(tb)
	crew, err := st.startAgents(ctx, b, tb, cells)
	if err != nil {
		return failAll(seats, fmt.Errorf("network %s: %w", g.network, err))
	}
	if err := st.look(ctx, tb, crew, g.network); err != nil {
		return failAll(seats, fmt.Errorf("looking at network %s: %w", g.network, err))
	}
	return st.armAll(ctx, seats, crew, tb, nil)
}

// specOf is the testbed that a group needs.
func (st *stage) specOf(g group) testbed.Spec {
	spec := st.spec
	spec.Network, spec.Expect = usedBy(st.changes, g.network)
	spec.Family, spec.Conditions, spec.Target = g.family, g.conditions, g.target
	if g.mtu != 0 {
		spec.Link.MTU = g.mtu
	}
	if g.class != "" {
		return withVolume(spec, g.class)
	}
	if st.able.PinsCPUs && neighboured(g.conditions) {
		return withNeighbour(spec)
	}
	return spec
}

// failAll marks all seats as failed for one reason.
func failAll(seats []*seat, err error) []*seat {
	for _, s := range seats {
		s.failed = err
	}
	return seats
}

// armAll gives the seats their agents and opens their connections, on a testbed with clusters of services that talk when they like.
func (st *stage) armAll(ctx context.Context, seats []*seat, c crew, tb testbed.Testbed, clusters map[string]*cluster) []*seat {
	prober, reachBy := path.NewProof(tb), time.Now().Add(reachWithin)
	if prober != nil {
		prober.Aside(aside(c.client, clusters))
	}
	for _, s := range seats {
		s.testbed, s.prober, s.reachBy = tb, prober, reachBy
		s.client, s.server = c.client, c.servers[s.cell.Placement]
		if alone(s.cell) {
			s.client = s.server
			s.aimAt(st.targets.of(s.cell))
		}
		if k := s.cluster; k != nil {
			s.server, s.services = k.members[0].agent, k.members
		}
		s.meter = st.kernel.Meter(s.server, s.cpus.list())
		if carriers := tb.Instruments().Carriers; carriers != nil {
			s.meter.Carriers(carriers())
		}
		s.links = linksOf(tb, c.client.Pod(), s.server.Pod(), s.protocol)
		s.bounds = st.boundsOf(s)
		s.neighbour = st.neighbourOf(s, c.neighbour)
		if s.failed == nil {
			s.failed = s.arm(ctx, tb)
		}
	}
	return seats
}

// newSeats prepares the seats of cells.
func (st *stage) newSeats(cells []result.Cell) []*seat {
	seats := make([]*seat, len(cells))
	for i, c := range cells {
		seats[i] = st.newSeat(c)
	}
	return seats
}

// newSeat prepares the seat of a cell.
func (st *stage) newSeat(c result.Cell) *seat {
	d := demandOf(st.workloads, c)
	s := &seat{
		cell: c, ports: st.ports[c.Setting()], share: st.shares[c.ID], cpus: placeCPUs(c.Params.CPU, st.measuring),
		demand: d, pace: paceOf(st.burst, st.visit, d), far: !st.able.OwnsNodes,
	}
	if d.Cluster != nil && c.Params.CPU == "" {
		cpu := st.clusterCPU(c)
		s.cpus = placementCPUs{cpu, cpu}
	}
	for _, w := range st.workloads {
		if w.Name != c.Workload {
			continue
		}
		s.protocol = w.Protocol
		if w.Connects {
			s.connects = cmp.Or(c.Params.Message, w.Defaults.Message)
		}
		if s.searches = c.Params.Search; s.searches {
			continue // what it finds stands in place of the workload's usual metrics
		}
		for _, m := range w.Metrics {
			s.latencies = s.latencies || m.Name == "p50"
			s.streams = s.streams || m.Name == "throughput"
			s.rates = s.rates || m.Name == "rate"
		}
	}
	return s
}

func (b *build) keep(tb testbed.Testbed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.testbeds = append(b.testbeds, tb)
}

// close ends the build's agents and removes its testbeds. How an agent ends is no reason to end the run: one that hangs is
// killed, and the trials that it spoiled have failed by name.
func (b *build) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, a := range b.agents {
		_ = a.Close() // it is gone in any case
	}
	for _, tb := range slices.Backward(b.testbeds) {
		errs = append(errs, tb.Close())
	}
	b.agents, b.testbeds = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing build %d: %w", b.index+1, err)
	}
	return nil
}
