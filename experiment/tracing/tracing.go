// Package tracing finds out where on the way of a request the time goes: it exchanges requests with and without a tracer in
// turn, over networks that are built anew several times.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"netdelta/engine"
	"netdelta/experiment"
	"netdelta/experiment/measure"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/probe/hops"
	"netdelta/result"
)

// Config is what is traced.
type Config struct {
	Experiment experiment.Config
	// Cells are traced side by side, one of each network.
	Cells []result.Cell
	// Level is how much is traced. hops.Disturbances explains outliers, and makes for longer exchanges.
	Level hops.Level
	// Lasting is how long to go on building and tracing; at least MinBuilds builds are traced.
	Lasting time.Duration
	// Progress is told of each build that is done; it may be nil.
	Progress func(build int)
}

const (
	// MinBuilds is how many builds there are at least: fewer give no interval.
	MinBuilds = 3
	// rounds is how often in a build each cell is visited, traced and untraced.
	rounds = 6
	// exchange is how many transactions a visit has; where outliers are to be explained, many are needed.
	exchange       = 250
	exchangeLonger = 2000
	// warm is how many transactions go before a visit's and don't count.
	warm = 20
)

// Traced is what one build of one cell gave.
type Traced struct {
	Build int
	// Request and Response are the stretches of the way, in order.
	Request, Response []Stretch
	// Untraced and Traced are the round trips of transactions, in nanoseconds, without and with the tracer.
	Untraced, Traced []float64
	// Cost is what noting one event takes, in nanoseconds, calibrated separately (Calibrate); Events is how many there
	// are in a transaction.
	Cost   float64
	Events int
	// Explained are all transactions with what was different about them, where that was asked for.
	Explained []hops.Explained
	// Stamped says that the sockets' own stamps took the tracer's place.
	Stamped bool
	// Otherwise and Lost are how many transactions took another way, and how many events there was no room for: of a round's
	// transactions those that ended before that are followed.
	Otherwise, Lost int
}

// Stretch is a hop with the time that each message took for it, in nanoseconds, less the cost of tracing.
type Stretch struct {
	hops.Hop
	Times []float64
}

// Cell is a cell with all its builds.
type Cell struct {
	result.Cell
	Builds []Traced
}

// Trace builds and traces the cells until the time is up. An error of a tracer that can't be had matches
// testbed.ErrUnsupported or is a *testbed.PermissionError.
func Trace(ctx context.Context, c Config) ([]Cell, error) {
	return c.gather(func(random *rand.Rand) ([]Traced, error) { return c.build(ctx, random) })
}

// gather makes builds until the time is up. A build gives a Traced for each cell.
func (c Config) gather(build func(random *rand.Rand) ([]Traced, error)) ([]Cell, error) {
	cells := make([]Cell, len(c.Cells))
	for i := range c.Cells {
		cells[i].Cell = c.Cells[i]
	}
	random := rand.New(rand.NewPCG(c.Experiment.Run.Seed, 0))
	began := time.Now()
	for n := 0; n < MinBuilds || time.Since(began) < c.Lasting; n++ {
		traced, err := build(random)
		if err != nil {
			return nil, fmt.Errorf("build %d: %w", n+1, err)
		}
		for i, t := range traced {
			t.Build = n
			cells[i].Builds = append(cells[i].Builds, t)
		}
		if c.Progress != nil {
			c.Progress(n + 1)
		}
	}
	return cells, nil
}

// build builds all networks once, and visits them in random order.
func (c Config) build(ctx context.Context, random *rand.Rand) (traced []Traced, err error) {
	visits := make([]*visit, len(c.Cells))
	defer func() {
		for _, v := range visits {
			err = errors.Join(err, v.close())
		}
	}()
	for _, i := range random.Perm(len(c.Cells)) {
		if visits[i], err = c.open(ctx, c.Cells[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Cells[i].ID, err)
		}
	}
	for range rounds {
		for _, i := range random.Perm(len(visits)) {
			if err := errors.Join(ctx.Err(), visits[i].round(random)); err != nil {
				return nil, fmt.Errorf("%s: %w", c.Cells[i].ID, err)
			}
		}
	}
	cost, err := Calibrate(c.Level)
	if err != nil {
		return nil, err
	}
	for _, v := range visits {
		traced = append(traced, v.traced(cost))
	}
	return traced, nil
}

// visit is one cell in one build.
type visit struct {
	pair   *measure.LocalPair
	tracer *hops.Tracer
	known  hops.Map
	client string // the namespace of the client's pod, and of the server's
	server string
	// underlay is the number of the switch's namespace: what lies between the nodes is one hop.
	underlay uint32

	untraced, withTracer []float64
	followed             []hops.Followed
	explained            []hops.Explained
	exchange             int
	disturbances         bool
	lost                 int
}

func (c Config) open(ctx context.Context, cell result.Cell) (*visit, error) {
	v := &visit{exchange: exchange}
	if v.disturbances = c.Level == hops.Disturbances; v.disturbances {
		v.exchange = exchangeLonger
	}
	var err error
	if v.pair, err = measure.NewContext(c.Experiment.Config, c.Experiment.Run).OpenPair(ctx, cell); err != nil {
		return nil, err
	}
	if err := v.find(ctx); err != nil {
		return nil, errors.Join(err, v.close())
	}
	if v.tracer, err = hops.Open(hops.Options{
		First: v.pair.Listen, Last: v.pair.Listen, Level: c.Level, Skip: v.underlay,
	}); err != nil {
		return nil, errors.Join(err, v.close())
	}
	return v, nil
}

func (v *visit) close() error {
	if v == nil {
		return nil
	}
	var errs []error
	if v.tracer != nil {
		errs = append(errs, v.tracer.Close())
	}
	return errors.Join(append(errs, v.pair.Close())...)
}

// find asks the testbed what is where.
func (v *visit) find(ctx context.Context) error {
	shows := v.pair.Testbed.Instruments()
	tb := shows.Observer
	if tb == nil || shows.Within == nil {
		return errors.New("this testbed does not show its devices: hops are traced in the lab")
	}
	plan := tb.Plan()
	v.known = hops.Map{Devices: map[hops.Address]network.Device{}, Roles: map[network.Device]network.Role{}}
	var err error
	if v.known.Spaces, err = measure.SpaceNumbers(shows); err != nil {
		return err
	}
	numbers := map[network.Space]uint32{}
	for number, space := range v.known.Spaces {
		numbers[space] = number
	}
	v.underlay = numbers[network.InSwitch()]
	counters, err := tb.Counters(ctx)
	if err != nil {
		return err
	}
	for device, c := range counters {
		v.known.Devices[hops.Address{Space: numbers[device.In], Device: uint32(c.Index)}] = device
	}
	pods := tb.Pods()
	from, to := slices.Index(pods, v.pair.Client), slices.Index(pods, v.pair.Server)
	for _, hop := range append(plan.Path(from, to, v.pair.Protocol), plan.Path(to, from, v.pair.Protocol)...) {
		v.known.Roles[hop.Device] = hop.Role
	}
	v.client, v.server = plan.Pods[from].In.String(), plan.Pods[to].In.String()
	return nil
}

// round visits the cell twice, with the tracer and without, in random order.
func (v *visit) round(random *rand.Rand) error {
	visits := []func() error{v.without, v.with}
	random.Shuffle(len(visits), func(i, j int) { visits[i], visits[j] = visits[j], visits[i] })
	for _, visit := range visits {
		if _, err := v.pair.Exchange(warm); err != nil {
			return err
		}
		if err := visit(); err != nil {
			return err
		}
	}
	return nil
}

func (v *visit) without() error {
	times, err := v.pair.Exchange(v.exchange)
	v.untraced = append(v.untraced, floats(times.RoundTrip)...)
	return err
}

func (v *visit) with() error {
	if err := v.tracer.Start(); err != nil {
		return err
	}
	_, warmErr := v.pair.Exchange(warm) // the first calls of the programs are slow
	times, err := v.pair.Exchange(v.exchange)
	noted, stopErr := v.tracer.Stop()
	if err := errors.Join(warmErr, err, stopErr); err != nil {
		return err
	}
	v.lost += noted.Lost
	v.withTracer = append(v.withTracer, floats(times.RoundTrip)...)
	relevant, done := v.known.Relevant(noted.Events), noted.Whole(transactions(times))
	if len(done) == 0 {
		return nil
	}
	v.followed = append(v.followed, hops.Follow(relevant, done, v.pair.Listen, v.pair.Listen))
	if v.disturbances {
		v.explained = append(v.explained, hops.Explain(noted.Events, relevant, done, v.pair.Listen, v.pair.Listen)...)
	}
	return nil
}

func transactions(t engine.ExactTimes) []hops.Transaction {
	all := make([]hops.Transaction, len(t.Begun))
	for i, begun := range t.Begun {
		all[i] = hops.Transaction{Begun: begun, There: begun + t.Request[i], Ended: begun + t.RoundTrip[i]}
	}
	return all
}

func floats(ns []int64) []float64 {
	return gather.Each(ns, func(n int64) float64 { return float64(n) })
}

// traced sums the rounds up. Rounds in which most went another way than in the first don't count.
func (v *visit) traced(cost float64) Traced {
	t := Traced{Untraced: v.untraced, Traced: v.withTracer, Cost: cost, Lost: v.lost, Explained: v.explained}
	if len(v.followed) == 0 {
		return t
	}
	first := v.followed[0]
	t.Events = len(first.Request.Places) + len(first.Response.Places)
	t.Request = stretches(v.known.Hops(first.Request.Places, v.client, v.server))
	t.Response = stretches(v.known.Hops(first.Response.Places, v.server, v.client))
	for _, f := range v.followed {
		t.Otherwise += f.Otherwise
		if !slices.Equal(f.Request.Places, first.Request.Places) || !slices.Equal(f.Response.Places, first.Response.Places) {
			t.Otherwise += len(f.Request.Times)
			continue
		}
		for k, d := range f.Request.Durations(cost) {
			t.Request[k].Times = append(t.Request[k].Times, d...)
		}
		for k, d := range f.Response.Durations(cost) {
			t.Response[k].Times = append(t.Response[k].Times, d...)
		}
	}
	return t
}

func stretches(named []hops.Hop) []Stretch {
	all := make([]Stretch, len(named))
	for i, h := range named {
		all[i].Hop = h
	}
	return all
}
