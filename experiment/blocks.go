package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// settle is how long a swapped network is left alone before it is measured: neighbours resolve, bridges learn.
const settle = 50 * time.Millisecond

// swapper measures in blocks: pods and agents start once, the networks are swapped beneath them, and each visit to a
// network measures all of its cells. A block visits every network once in random order, the baseline twice; each visit sets
// its network up afresh, so a block is also a build, and has one round for the scheduler: the pass over all cells.
type swapper struct {
	stage   *stage
	visitor *visitor
	beds    map[ground]*swapBed
	// left is how much time the run has, and spent what was spent on beds since it was last asked for.
	left  func() time.Duration
	spent time.Duration

	index int
	cells []result.Cell // of the block under way
	seats []*seat       // of the networks visited so far
	done  []result.Trial
}

// swapBed is a testbed whose pods outlive its networks, with the agents in them and the services that outlive them too.
type swapBed struct {
	tb       testbed.Testbed
	crew     crew
	held     build
	clusters map[string]*cluster // by key
}

// ground is what networks share that are swapped under the same pods.
type ground struct {
	underlay
	apart string // the only network of these pods, "" where they take all others
}

func (st *stage) groundOf(g group) ground {
	if st.apart[g.network] {
		return ground{g.underlay, g.network}
	}
	return ground{underlay: g.underlay}
}

func newSwapper(st *stage, v *visitor, left func() time.Duration) *swapper {
	return &swapper{stage: st, visitor: v, left: left, beds: map[ground]*swapBed{}}
}

// once is what was spent, since it was last asked for, on what is done once in a run.
func (w *swapper) once() time.Duration {
	spent := w.spent
	w.spent = 0
	return spent
}

// prepare has nothing to do ahead of time: the next block swaps the networks that are up now.
func (w *swapper) prepare(context.Context, int, []result.Cell) {}

// begin starts the services that the cells need and that are not there yet.
func (w *swapper) begin(ctx context.Context, index int, cells []result.Cell) error {
	w.index, w.cells, w.done = index, cells, nil
	_, order := w.stage.group(index, cells)
	for _, g := range order {
		if !slices.ContainsFunc(cells, func(c result.Cell) bool {
			return groupOf(c).underlay == g.underlay && demandOf(w.stage.workloads, c).Cluster != nil
		}) {
			continue
		}
		bed, _, err := w.bed(ctx, g)
		if err == nil {
			err = w.serve(ctx, bed, g.underlay)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = err // a bed that can't be had is tried again for each network, whose cells then say why
	}
	return nil
}

// round is the pass over all networks. Disturbed bursts are marked one by one; the pass is never repeated as a whole.
func (w *swapper) round(ctx context.Context, _ int) (spans []time.Duration, disturbed bool, err error) {
	groups, order := w.stage.group(w.index, w.cells)
	spans = make([]time.Duration, len(w.cells))
	for _, g := range order {
		start := w.visitor.clock()
		if err := w.visit(ctx, g, groups[g]); err != nil {
			return nil, false, err
		}
		took, all := w.visitor.clock()-start, time.Duration(0)
		for _, c := range groups[g] {
			all += w.stage.visitCost(c)
		}
		for _, c := range groups[g] {
			share := float64(w.stage.visitCost(c)) / float64(all)
			spans[slices.IndexFunc(w.cells, func(o result.Cell) bool { return o.ID == c.ID })] = time.Duration(share * float64(took))
		}
	}
	return spans, false, nil
}

// visit swaps a network in, measures its cells and closes their accounts.
func (w *swapper) visit(ctx context.Context, g group, cells []result.Cell) error {
	if cells = w.notLost(g, cells); len(cells) == 0 {
		w.seats = nil
		return nil
	}
	w.seats = w.swapIn(ctx, g, cells)
	err := ctx.Err()
	start := time.Now()
	if err == nil {
		err = w.visitor.warm(ctx, w.seats)
	}
	if err == nil {
		err = w.measure(ctx, w.seats)
	}
	if spoiled := w.spoiled(ctx); err == nil && len(spoiled) > 0 && w.left() > 2*time.Since(start) {
		err = w.again(ctx, spoiled)
	}
	// What was measured is kept even when the run is being interrupted.
	trials := collectTrials(context.WithoutCancel(ctx), w.index, w.seats)
	if ctx.Err() != nil { // what failed has failed for that
		trials = slices.DeleteFunc(trials, func(t result.Trial) bool { return len(t.Bursts.Round) == 0 })
	}
	w.done = append(w.done, trials...)
	for _, s := range w.seats {
		if s.failed == nil {
			s.disarm(ctx)
		}
	}
	return err
}

// measure runs the bursts of seats.
func (w *swapper) measure(ctx context.Context, seats []*seat) error {
	for burst := 0; ; burst++ {
		due := slices.DeleteFunc(slices.Clone(seats), func(s *seat) bool { return s.pace.visit <= burst })
		if len(due) == 0 {
			return nil
		}
		if _, _, err := w.visitor.round(ctx, w.index, due, burst); err != nil {
			return err
		}
	}
}

// spoiled are the seats whose cluster was unwell while they were measured, or is now. Their bursts don't count.
func (w *swapper) spoiled(ctx context.Context) []*seat {
	var spoiled []*seat
	ailments := map[*cluster]string{}
	for _, s := range w.seats {
		if s.cluster == nil || s.failed != nil {
			continue
		}
		if _, asked := ailments[s.cluster]; !asked {
			ailments[s.cluster], _ = s.cluster.check(ctx)
		}
		if ailments[s.cluster] != "" || s.broken {
			s.spoil(cmp.Or(ailments[s.cluster], "during a burst"))
			spoiled = append(spoiled, s)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return spoiled
}

// again measures seats once more whose services were unwell, when they are well again.
func (w *swapper) again(ctx context.Context, seats []*seat) error {
	var ready []*seat
	for _, s := range seats {
		err := s.cluster.recover(ctx)
		if err == nil {
			err = s.reopen(ctx)
		}
		if err == nil && s.path == nil && s.prober != nil {
			err = s.prove(ctx)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.failed = fmt.Errorf("%s again, after its services were unwell: %w", s.cell.ID, err)
			continue
		}
		ready = append(ready, s)
	}
	err := w.measure(ctx, ready)
	for _, s := range ready {
		if words, _ := s.ailment(ctx); words != "" && ctx.Err() == nil {
			s.spoil(words)
		}
	}
	return err
}

// swapIn puts the network under the pods and arms its cells.
func (w *swapper) swapIn(ctx context.Context, g group, cells []result.Cell) []*seat {
	seats := w.stage.newSeats(cells)
	bed, opened, err := w.bed(ctx, g)
	if err == nil && !opened {
		err = bed.tb.Swap(ctx, g.network)
	}
	if err == nil {
		err = w.stage.seen.look(ctx, bed.tb)
	}
	if err == nil {
		err = w.serve(ctx, bed, g.underlay)
	}
	if err != nil {
		return failAll(seats, fmt.Errorf("swapping in network %s: %w", g.network, err))
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
	}
	for _, s := range seats {
		if s.demand.Cluster == nil {
			continue
		}
		s.cluster = bed.clusters[s.demand.Cluster.Key]
		if err := s.cluster.recover(ctx); err != nil {
			s.failed = fmt.Errorf("%s on network %s: %w", s.cell.ID, g.network, err)
		}
	}
	for _, s := range w.stage.armAll(ctx, seats, bed.crew, bed.tb, bed.clusters) {
		if s.failed != nil && s.cluster != nil && s.cluster.failed == nil {
			s.failed = w.rearm(ctx, s)
		}
	}
	return seats
}

// rearm opens a connection after all whose services were unwell when it was opened.
func (w *swapper) rearm(ctx context.Context, s *seat) error {
	words, _ := s.ailment(ctx)
	if words == "" {
		return s.failed
	}
	s.cluster.ward.note("the services of %s were unwell when %s was to be measured, which waited for them: %s", s.cluster.of, s.cell.ID, brief(words))
	if err := s.cluster.recover(ctx); err != nil {
		return errors.Join(s.failed, err)
	}
	return s.redial(ctx)
}

// notLost leaves out the cells whose services died too often: the run's notes say so. Those of services that never started fail
// and say why.
func (w *swapper) notLost(g group, cells []result.Cell) []result.Cell {
	bed := w.beds[w.stage.groundOf(g)]
	return slices.DeleteFunc(slices.Clone(cells), func(c result.Cell) bool {
		d := demandOf(w.stage.workloads, c)
		if bed == nil || d.Cluster == nil {
			return false
		}
		k := bed.clusters[d.Cluster.Key]
		return k != nil && errors.Is(k.failed, errLost)
	})
}

// serve starts the clusters that the cells of an underlay need and that are not there yet.
func (w *swapper) serve(ctx context.Context, bed *swapBed, u underlay) error {
	start := time.Now()
	defer func() { w.spent += time.Since(start) }()
	for _, c := range w.cells {
		d := demandOf(w.stage.workloads, c)
		if d.Cluster == nil || groupOf(c).underlay != u || bed.clusters[d.Cluster.Key] != nil {
			continue
		}
		pods, err := clusterPods(bed.tb, d.Cluster.Pods)
		if err != nil {
			return err
		}
		agents := make([]*agent.Agent, len(pods))
		for i, p := range pods {
			if agents[i], err = w.stage.agentIn(ctx, &bed.held, bed.crew, p); err != nil {
				return err
			}
		}
		bed.clusters[d.Cluster.Key] = w.stage.startCluster(ctx, c, d, agents)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// bed is the testbed with a group's underlay. It is opened, with the group's network, when it is first needed; one whose agents
// were lost is replaced.
func (w *swapper) bed(ctx context.Context, g group) (bed *swapBed, opened bool, err error) {
	if bed := w.beds[w.stage.groundOf(g)]; bed != nil {
		if bed.crew.alive() {
			return bed, false, nil
		}
		delete(w.beds, w.stage.groundOf(g))
		for _, k := range bed.clusters {
			w.stage.ward.died(k.of, "a pod was lost with it")
		}
		if err := bed.held.close(); err != nil {
			return nil, false, err
		}
	}
	start := time.Now()
	defer func() { w.spent += time.Since(start) }()
	spec := w.stage.specOf(g)
	spec.PodsOutlive = true
	tb, err := w.stage.driver.Open(ctx, spec)
	if err != nil {
		return nil, false, err
	}
	bed = &swapBed{tb: tb, clusters: map[string]*cluster{}}
	bed.held.keep(tb)
	if bed.crew, err = w.stage.startAgents(ctx, &bed.held, tb, w.cells); err != nil {
		return nil, false, errors.Join(err, bed.held.close())
	}
	w.beds[w.stage.groundOf(g)] = bed
	return bed, true, nil
}

func (w *swapper) collect(context.Context) ([]result.Trial, error) {
	done := w.done
	w.done = nil
	return done, nil
}

func (w *swapper) close() error {
	var errs []error
	for u, bed := range w.beds {
		errs = append(errs, bed.held.close())
		delete(w.beds, u)
	}
	return errors.Join(errs...)
}
