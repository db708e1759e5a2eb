package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/native"
	"netdelta/result"
	"netdelta/stats/visits"
)

// SweepSpec says how one thread visits several clients in turn: in sweeps, each of which visits all of them in a new random order.
type SweepSpec struct {
	// Duration is how long all sweeps take together. There are two sweeps at the least.
	Duration time.Duration
	// Transactions are measured in each visit, at most 64, after Warmup that are not: the first ones after another network meet cold
	// caches. A visit measures no new transaction after Slice, unless its requests have a rate: then all of them are run, however late.
	Transactions, Warmup int64
	Slice                time.Duration
	// Visits is how often a sweep visits each client, in their order; 1 where it is nil.
	Visits []int
	// Deadline is when the client that is visited is given up, counted from the start.
	Deadline time.Duration
	Seed     uint64
}

func (s SweepSpec) check(clients int) error {
	visits := clients
	if s.Visits != nil {
		visits = 0
		for _, n := range s.Visits {
			visits += n
		}
	}
	switch {
	case s.Duration <= 0 || s.Slice <= 0 || s.Deadline <= s.Duration || s.Warmup < 0 || s.Transactions < 1 || s.Transactions > maxSlice:
		return fmt.Errorf("sweeps of %v with a deadline of %v, visits of %v with %d transactions after %d: it takes positive times, a later deadline and 1 to %d transactions",
			s.Duration, s.Deadline, s.Slice, s.Transactions, s.Warmup, maxSlice)
	case s.Visits != nil && (len(s.Visits) != clients || slices.Min(s.Visits) < 1) || visits > maxOrder:
		return fmt.Errorf("sweeps of %d clients with visits %v: it takes a positive number for each, and at most %d in all", clients, s.Visits, maxOrder)
	}
	return nil
}

// Sweep visits clients on one thread. Between sweeps the clients can be used as ever; none may be closed before it.
type Sweep struct {
	clients []*client
	signal  *os.File
	done    <-chan struct{}
	arena   *native.Arena
	ctl     *sweeper
	mu      sync.Mutex
}

// Sweeps says whether a client's transactions can be run on another thread, in visits: one request at a time on an open
// connection, as fast as it goes or at a rate that leaves time between requests and does not make visits long.
func (cfg *Config) Sweeps() bool {
	rate := cfg.Params.RequestRate
	return (cfg.Kind == StreamRR || cfg.Kind == DatagramRR) && cfg.connections() == 1 && (rate == 0 || rate >= sweptRateLeast && rate <= sweptRateMost)
}

// The rates at which one thread can send the requests of many clients in turn, in requests per second.
const (
	sweptRateLeast = 100
	sweptRateMost  = 5000
)

// NewSweep starts the thread for clients that Dial of this package returned, pinned to the processor of the first.
func NewSweep(clients []Client) (s *Sweep, err error) {
	s = &Sweep{}
	for _, c := range clients {
		own, ok := c.(*client)
		if !ok || !own.cfg.Sweeps() {
			return nil, fmt.Errorf("sweeps take clients that run one request at a time, as fast as it goes or at %d to %d a second", sweptRateLeast, sweptRateMost)
		}
		if own.ctl == nil {
			return nil, fmt.Errorf("sweeps: %w", cmp.Or(own.failed, errClosed))
		}
		s.clients = append(s.clients, own)
	}
	if len(clients) == 0 || len(clients) > MaxSweep {
		return nil, fmt.Errorf("sweeps of %d clients: 1 to %d are allowed", len(clients), MaxSweep)
	}
	defer func() {
		if err != nil {
			err, s = errors.Join(fmt.Errorf("starting sweeps: %w", err), s.Close()), nil
		}
	}()
	size := native.Reserved(unsafe.Sizeof(sweeper{})) + native.Reserved(unsafe.Sizeof([maxVisits]visit{}))
	if s.arena, err = native.NewArena(size); err != nil {
		return s, err
	}
	s.ctl = (*sweeper)(s.arena.Take(unsafe.Sizeof(sweeper{})))
	s.ctl.visit = (*[maxVisits]visit)(s.arena.Take(unsafe.Sizeof([maxVisits]visit{})))
	s.ctl.clock, s.ctl.at = clock.System(), outside
	var files []int
	for i, c := range s.clients {
		s.ctl.client[i] = c.ctl
		files = append(files, c.files[:len(c.files)-1]...) // without the signal
	}
	if s.signal, s.ctl.done, err = openSignal(); err != nil {
		return s, err
	}
	ctl := s.ctl
	s.done, err = native.Start(native.Thread{CPU: s.clients[0].cfg.CPU, Files: append(narrow(files), ctl.done)}, func() { runSweep(ctl) })
	if err != nil {
		return s, err
	}
	return s, s.await(endTimeout) // until it runs
}

// Swept is what a client's visits gave together.
type Swept struct {
	Burst Burst
	Err   error // the client is of no more use
}

// Run carries out sweeps, and gives each client's part as one burst, in the order of NewSweep. Its duration is the time of the
// measured transactions; clients that break or hang are left out of the sweeps that follow.
func (s *Sweep) Run(spec SweepSpec) ([]Swept, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := spec.check(len(s.clients)); err != nil {
		return nil, err
	}
	if s.ctl == nil {
		return nil, fmt.Errorf("sweeps: %w", errClosed)
	}
	for _, c := range s.clients {
		c.burst.Lock()
		defer c.burst.Unlock()
		c.prepare()
	}
	s.fill(spec)
	before, wall := s.ctl.clock.Ticks(), time.Now()
	hung, err := s.wake(spec.Deadline)
	if err != nil {
		return nil, err
	}
	levels, carried := s.levels()
	all := make([]Swept, len(s.clients))
	for i, c := range s.clients {
		if c.failed == nil {
			c.failed = c.broken(hung[i])
		}
		if all[i].Err = c.failed; c.failed != nil {
			continue
		}
		b := c.describe(wall.Add(time.Duration(c.ctl.clock.Nanoseconds(c.ctl.outcome.start - before))))
		b.Level, b.Carry = levels[i], carried[i]
		all[i].Burst = c.take(b)
	}
	return all, nil
}

// prepare readies a client to be visited, which has its last burst count. One that failed before is passed over.
func (c *client) prepare() {
	c.tally.Settle(false)
	c.ctl.outcome = outcome{}
	if c.failed != nil {
		c.ctl.outcome.step = stepStopped
		return
	}
	c.ctl.latency.Reset()
	c.ctl.transaction = 0
	c.ctl.order.number++
	atomic.StoreUint32(&c.ctl.stop, 0)
}

// broken is the error of a client whose visits broke, or hung.
func (c *client) broken(hung *hangError) error {
	o := &c.ctl.outcome
	switch {
	case hung != nil:
		hung.step = o.step
		return c.explain(hung)
	case o.step != stepNone:
		return c.explain(&brokenError{step: o.step, errno: o.errno, transaction: o.counters.transactions + 1})
	}
	return nil
}

func (s *Sweep) fill(spec SweepSpec) {
	c := s.ctl
	c.length, c.slice = c.clock.Span(spec.Duration), c.clock.Span(spec.Slice)
	c.transactions, c.warmup, c.random = spec.Transactions, spec.Warmup, spec.Seed|1 // its state must not be 0
	c.orders = 0
	for i, client := range s.clients {
		client.ctl.order.pace(client.cfg.Params.RequestRate)
		visits := 1
		if spec.Visits != nil {
			visits = spec.Visits[i]
		}
		for range visits {
			c.order[c.orders] = int32(i)
			c.orders++
		}
	}
}

// NextHung is how long each further client of a sweep has to end its visit when one has hung: a network's fault may be all networks'.
const NextHung = endTimeout / 10

// wake has the thread sweep and waits for its end. A client in whose visit the deadline passes is given up, and with it each after it
// that does not end soon; the error says that the thread itself does not end.
func (s *Sweep) wake(within time.Duration) (hung map[int]*hangError, err error) {
	hung = map[int]*hangError{}
	atomic.AddUint32(&s.ctl.command, 1)
	native.FutexWake(&s.ctl.command)
	for range len(s.clients) + 1 {
		err := s.await(within)
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return hung, err
		}
		if at := int(atomic.LoadInt32(&s.ctl.at)); at != outside {
			hung[at] = &hangError{after: within, deadline: true, cause: context.DeadlineExceeded}
			s.clients[at].abort()
		}
		within = NextHung
	}
	return hung, errors.New("the sweeps did not end")
}

// await waits for the thread's report.
func (s *Sweep) await(within time.Duration) error {
	if err := s.signal.SetReadDeadline(time.Now().Add(within)); err != nil {
		return fmt.Errorf("set the sweeps' deadline: %w", err)
	}
	var report [8]byte
	if _, err := s.signal.Read(report[:]); err != nil {
		return fmt.Errorf("wait for the sweeps: %w", err)
	}
	return nil
}

// carryMost bounds what one visit says of what the visit before left behind: a visit that others disturbed says no more than that.
const carryMost = 0.1

// levels are the clients' as Burst has them, 0 for a client without visits, and what the visits to each left behind for the visits that
// followed.
func (s *Sweep) levels() ([]float64, []result.CarryOver) {
	all := make([]visits.Visit, s.ctl.visits)
	for i, v := range s.ctl.visit[:s.ctl.visits] {
		all[i] = visits.Visit{Client: int(v.client), Log: math.Log(float64(max(v.median, 1)))}
	}
	levels, beyond := visits.Levels(all, len(s.clients))
	carried := make([]result.CarryOver, len(s.clients))
	for i := 1; i < len(all); i++ {
		if before := all[i-1].Client; before != all[i].Client {
			carried[before].Visit(min(max(beyond[i]-levels[all[i].Client], -carryMost), carryMost))
		}
	}
	for i, l := range levels {
		if math.IsNaN(l) {
			levels[i] = 0
		}
	}
	return levels, carried
}

// Thread is the number of the thread that visits.
func (s *Sweep) Thread() int { return int(atomic.LoadInt32(&s.ctl.thread)) }

// Close ends the thread; the clients stay open. It is idempotent.
func (s *Sweep) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctl == nil {
		return nil
	}
	if s.done != nil {
		atomic.StoreUint32(&s.ctl.quit, 1)
		atomic.AddUint32(&s.ctl.command, 1)
		native.FutexWake(&s.ctl.command)
		select {
		case <-s.done:
		case <-time.After(endTimeout):
			return fmt.Errorf("the thread of sweeps did not end within %v", endTimeout) // its memory must stay
		}
	}
	var errs []error
	if s.signal != nil {
		errs = append(errs, s.signal.Close(), unix.Close(int(s.ctl.done)))
	}
	s.ctl = nil
	return errors.Join(append(errs, s.arena.Free())...)
}
