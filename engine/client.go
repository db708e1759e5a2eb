package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/gather"
	"netdelta/internal/latency"
	"netdelta/internal/native"
	"netdelta/result"
)

const (
	// lossTimeout is how long a datagram's response is waited for. It is far above what a busy machine delays a response by,
	// so that a late one is seldom taken for a lost one.
	lossTimeout = 20 * time.Millisecond
	// connectTimeout is how often a connect loop looks whether it was asked to give up.
	connectTimeout = 100 * time.Millisecond
	// defaultDeadline is when a burst without a deadline is given up, after its time has passed.
	defaultDeadline = 30 * time.Second
	// endTimeout is how long a loop may take to end after it was asked to.
	endTimeout = 5 * time.Second
)

// client is an armed client: its loop sleeps in the kernel until Burst wakes it.
type client struct {
	cfg     Config
	sockets []int // the loop's connections; it has its own handles on them in its own file table
	files   []int // all that the loop uses: its connections, then its end of signal
	signal  *os.File
	done    <-chan struct{}
	tally   Tally
	batch   latency.Batch
	last    socketCounts // at the last Collect
	earlier socketCounts // since then, at connections that were replaced

	burst  sync.Mutex // held by a burst
	failed error      // why the client is of no more use

	life   sync.Mutex // guards what Close takes away
	closed bool
	arena  *native.Arena
	ctl    *control
}

// Dial opens the connections of a client, starts its loop, and exchanges a little over them, so that they are warm.
func Dial(ctx context.Context, cfg Config) (Client, error) {
	c, err := dialWarm(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func dialWarm(ctx context.Context, cfg Config) (*client, error) {
	c, err := newClient(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %v to %v: %w", cfg.Workload, cfg.Local, cfg.Remote, err)
	}
	if err := c.warm(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newClient(ctx context.Context, cfg Config) (c *client, err error) {
	c = &client{cfg: cfg, tally: Tally{Joins: true}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.release())
			c = nil
		}
	}()
	buffer := max(uintptr(cfg.Params.Message), flowReplySize)
	if cfg.Kind == HTTPGet {
		buffer = webBuffer
	}
	if c.arena, c.ctl, err = newControl(cfg, cfg.connections(), buffer, cfg.Kind.latencies()); err != nil {
		return c, err
	}
	ctl := c.ctl
	if cfg.Params.Search {
		// Of which the receiver knows the time too.
		ctl.clock = clock.Kernel()
	}
	ctl.lossTicks = ctl.clock.Span(lossTimeout)
	ctl.order.second = ctl.clock.Span(time.Second)
	if cfg.Kind == ConnectRR || cfg.Kind == HTTPGet {
		if err = fillOptions(&cfg, ctl); err != nil {
			return c, err
		}
	}
	if cfg.Kind == HTTPGet {
		ctl.prepareWeb(&cfg, c.arena)
	}
	if cfg.opens() {
		return c, c.start()
	}
	if err = c.connect(ctx); err != nil {
		return c, err
	}
	if cfg.Kind == DatagramOut {
		(*flowHeader)(ctl.out).session = uint64(clockDomain())<<32 | uint64(rand.Uint32())
	}
	return c, c.start()
}

func (c *client) connect(ctx context.Context) error {
	var err error
	if c.sockets, err = connections(ctx, &c.cfg); err != nil {
		return err
	}
	c.files = slices.Clone(c.sockets)
	for i, fd := range c.sockets {
		c.ctl.connection[i].fd = int32(fd)
	}
	c.ctl.exchange.FD = int64(c.sockets[0])
	return nil
}

// start starts the loop's thread, which sleeps at once.
func (c *client) start() error {
	ctl := c.ctl
	var err error
	if c.signal, ctl.done, err = openSignal(); err != nil {
		return err
	}
	c.files = append(c.files, int(ctl.done))
	c.done, err = native.Start(native.Thread{CPU: c.cfg.CPU, Files: narrow(c.files)}, func() { runClient(ctl) })
	return err
}

// What warms a connection: so many transactions, or of a stream so many bytes over all connections, since megabytes of large
// messages would take seconds on a slow link.
const (
	warmTransactions = 16
	warmBytes        = 256 << 10
)

// warmth is how many transactions warm the connections, at least one for each.
func (cfg *Config) warmth() int64 {
	each := int64(warmTransactions)
	if cfg.Kind == StreamOut {
		each = min(each, max(warmBytes/(int64(cfg.Params.Message)*int64(cfg.connections())), 1))
	}
	return each * int64(cfg.connections())
}

// warm runs a few transactions that don't count, so that what is slow only once is done, and a server that does not answer
// is found out now.
func (c *client) warm(ctx context.Context) error {
	spec := BurstSpec{Transactions: c.cfg.warmth(), Deadline: 10 * time.Second}
	if until, ok := ctx.Deadline(); ok {
		spec.Deadline = max(time.Until(until), time.Millisecond)
	}
	if c.cfg.Kind == HTTPGet {
		spec.Transactions = webWarmup(&c.cfg)
	}
	if c.cfg.Params.RequestRate > 0 {
		spec.Transactions = 1
	}
	b, err := c.Burst(spec)
	if err != nil {
		return err
	}
	if o := &c.ctl.outcome; b.Transactions == 0 && b.Errors > 0 {
		return c.explain(&brokenError{step: o.failed, errno: o.failedErrno, transaction: 1, status: o.status, failures: b.Errors})
	}
	c.tally.forget()
	return nil
}

// Burst implements Client.
func (c *client) Burst(spec BurstSpec) (Burst, error) {
	c.burst.Lock()
	defer c.burst.Unlock()
	if c.failed != nil {
		return Burst{}, c.failed
	}
	if err := spec.Check(); err != nil {
		return Burst{}, fmt.Errorf("%s: %w", c.cfg.Workload, err)
	}
	c.tally.Settle(spec.DropLast)
	if c.searches(spec) {
		b, err := c.search(spec)
		if err != nil {
			c.failed = c.explain(err)
		}
		return b, c.failed
	}
	c.fillOrder(spec)
	begin, err := c.carryOut(deadline(spec))
	if err != nil {
		c.failed = c.explain(err)
		return Burst{}, c.failed
	}
	return c.take(c.describe(begin)), nil
}

// take keeps a burst that has just ended for the totals.
func (c *client) take(b Burst) Burst {
	c.tally.Take(b, More{Latencies: c.latencies(), Series: func(at float64) []result.Second { return seconds(c.ctl, at) }})
	return b
}

// carryOut has the loop carry out its order, and says when the measured part began.
func (c *client) carryOut(within time.Duration) (time.Time, error) {
	before, wall := c.ctl.clock.Ticks(), time.Now()
	if err := c.wake(within); err != nil {
		return time.Time{}, err
	}
	return wall.Add(time.Duration(c.ctl.clock.Nanoseconds(c.ctl.outcome.start - before))), nil
}

func deadline(spec BurstSpec) time.Duration {
	if spec.Deadline > 0 {
		return spec.Deadline
	}
	return spec.Warmup + spec.Duration + defaultDeadline
}

func (c *client) fillOrder(spec BurstSpec) {
	o := &c.ctl.order
	o.number++
	o.warmup = c.ctl.clock.Span(spec.Warmup)
	o.duration = c.ctl.clock.Span(spec.Duration)
	o.transactions = spec.Transactions
	o.probing = false
	perSecond := c.cfg.Params.RequestRate
	if c.cfg.Kind == DatagramOut {
		perSecond = float64(c.cfg.Params.Rate) / 8 / float64(c.cfg.Params.Message)
	}
	o.pace(perSecond)
}

// pace sets the gap between intended starts; 0 is as fast as it goes.
func (o *order) pace(perSecond float64) {
	o.gap = 0
	if perSecond > 0 {
		o.gap = max(int64(float64(o.second)*65536/perSecond), 1)
	}
}

// wake lets the loop run a burst, and waits for its end. It returns an error when there was none in time, or the burst broke.
func (c *client) wake(within time.Duration) error {
	if err := c.signal.SetReadDeadline(time.Now().Add(within)); err != nil {
		return fmt.Errorf("set the burst's deadline: %w", err)
	}
	if err := c.command(); err != nil {
		return err
	}
	var report [8]byte
	if _, err := c.signal.Read(report[:]); err != nil {
		hung := &hangError{after: within, deadline: errors.Is(err, os.ErrDeadlineExceeded), cause: err}
		c.abort()
		_ = c.signal.SetReadDeadline(time.Now().Add(endTimeout))
		if _, err := c.signal.Read(report[:]); err != nil {
			return fmt.Errorf("the loop did not end: %w", err)
		}
		hung.step = c.ctl.outcome.step
		return hung
	}
	if o := &c.ctl.outcome; o.step != stepNone {
		return &brokenError{
			step: o.step, errno: o.errno, transaction: o.counters.transactions + 1, status: o.status, failures: o.failures,
		}
	}
	return nil
}

// command lets the loop run, unless the client is being closed.
func (c *client) command() error {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed {
		return errClosed
	}
	atomic.StoreUint32(&c.ctl.stop, 0)
	atomic.AddUint32(&c.ctl.command, 1)
	native.FutexWake(&c.ctl.command)
	return nil
}

var errClosed = errors.New("the client is closed")

// abort asks the loop to give up, and ends whatever it is blocked in.
func (c *client) abort() {
	if c.ctl == nil {
		return // a new connection could not be had
	}
	atomic.StoreUint32(&c.ctl.stop, 1)
	c.shutdown()
}

func (c *client) shutdown() {
	for _, fd := range c.sockets {
		_ = unix.Shutdown(fd, unix.SHUT_RDWR)
	}
}

// Collect implements Client.
func (c *client) Collect(dropLast bool) (Totals, error) {
	c.burst.Lock()
	defer c.burst.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	totals, err := c.tally.Collect(dropLast)
	if err != nil {
		return totals, fmt.Errorf("%s: %w", c.cfg.Workload, err)
	}
	if !c.closed && len(c.sockets) > 0 {
		totals.Sockets, totals.TCP, err = c.last.read(c.sockets, c.cfg.Kind.datagrams())
		if err != nil {
			return totals, fmt.Errorf("%s: %w", c.cfg.Workload, err)
		}
		totals.Sockets.Dropped += c.earlier.dropped
		if totals.TCP != nil {
			totals.TCP.Retransmits += c.earlier.retransmits
		}
		c.earlier = socketCounts{}
	}
	return totals, nil
}

// Threads is the number of the thread that measures.
func (c *client) Threads() []int {
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed || c.ctl == nil {
		return nil
	}
	return []int{int(atomic.LoadInt32(&c.ctl.thread))}
}

// Close implements Client. A burst that runs is given up.
func (c *client) Close() error {
	c.life.Lock()
	if c.closed {
		c.life.Unlock()
		return nil
	}
	c.closed = true
	c.abort()
	c.life.Unlock()
	c.burst.Lock()
	defer c.burst.Unlock()
	if c.failed == nil {
		c.failed = fmt.Errorf("%s: %w", c.cfg.Workload, errClosed)
	}
	return c.release()
}

// release ends the loop and gives back what the client holds.
func (c *client) release() error {
	if c.done != nil {
		if c.cfg.Kind == DatagramRR {
			for _, fd := range c.sockets {
				_ = unix.Send(fd, make([]byte, farewell), unix.MSG_DONTWAIT) // lost, it is no matter
			}
		}
		c.ctl.order.quit = 1
		c.abort()
		atomic.AddUint32(&c.ctl.command, 1)
		native.FutexWake(&c.ctl.command)
		select {
		case <-c.done:
		case <-time.After(endTimeout):
			// Its memory must stay.
			return fmt.Errorf("%s: the loop did not end within %v", c.cfg.Workload, endTimeout)
		}
	}
	errs := gather.Each(c.files, unix.Close)
	if c.signal != nil {
		errs = append(errs, c.signal.Close())
	}
	if c.arena != nil {
		errs = append(errs, c.arena.Free())
	}
	c.sockets, c.files, c.signal, c.arena, c.ctl = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
