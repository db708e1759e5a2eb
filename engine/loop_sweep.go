package engine

import (
	"sync/atomic"
	"unsafe"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

const (
	// MaxSweep is how many clients one thread visits at most, and maxOrder how many visits a sweep has.
	MaxSweep = 256
	maxOrder = 2 * MaxSweep
	// maxVisits is how many visits one order holds: when they are used up, it ends before its time.
	maxVisits = 1 << 15
	// maxSlice is how many transactions of a visit are measured at most.
	maxSlice = 64
	// leastSweeps is how many sweeps an order has however little time it is given.
	leastSweeps = 2
	// outside is where the thread is between visits.
	outside = -1
)

// visit is what one visit to a client gave.
type visit struct {
	sweep  int32
	client int32
	median int64 // of its measured transactions, in ticks
}

// sweeper is what the thread of a sweep and the Go side share. It lives in an arena, as the controls of its clients do in theirs.
type sweeper struct {
	command, quit uint32 // as in control
	at            int32  // the client that is visited now, or outside
	thread        int32
	done          int32
	clock         clock.Clock
	client        [MaxSweep]*control

	// The order.
	length       int64 // ticks for all sweeps
	slice        int64 // ticks after which a visit ends
	transactions int64 // that are measured in a visit
	warmup       int64 // transactions before them
	random       uint64
	order        [maxOrder]int32 // one sweep's visits, shuffled for each
	orders       int32

	// The visit that is under way.
	sweep, place int32
	before       counters // of its client
	recorded     int64
	start, until int64 // ticks, of its part
	last         int64 // when the last sweep ends
	due          int64 // when the next request is to begin, whichever client has it, where requests have a rate

	visits int32
	visit  *[maxVisits]visit
	sorted [maxSlice]int64
}

// runSweep is the thread of a sweep: it sleeps until there is an order, carries it out, says so, and sleeps again. What transactions
// call is deep, and the stack small: nothing but this function lies above them.
//
//go:nosplit
//go:norace
//go:nocheckptr
func runSweep(s *sweeper) {
	native.EnterSyscall()
	atomic.StoreInt32(&s.thread, native.ThreadID())
	s.report() // that it runs
	for known := uint32(0); ; {
		for atomic.LoadUint32(&s.command) == known {
			native.FutexWait(&s.command, known)
		}
		known++
		if atomic.LoadUint32(&s.quit) != 0 {
			break
		}
		for s.begin(); s.next(); s.end() {
			s.due = s.now().visit(s.warmup, s.until, s.due, false)
			s.warm()
			if s.now().outcome.step == stepNone {
				s.due = s.now().visit(s.transactions, s.until, s.due, true)
			}
		}
		s.report()
	}
	native.ExitSyscall()
}

// now is the client that is visited. Its pointer is never written here: that would be the garbage collector's business.
//
//go:nosplit
//go:norace
func (s *sweeper) now() *control { return s.client[s.at&(MaxSweep-1)] }

//go:nosplit
//go:norace
//go:nocheckptr
func (s *sweeper) report() {
	report := uint64(1)
	native.Write(s.done, unsafe.Pointer(&report), 8)
}

//go:nosplit
//go:norace
func (s *sweeper) begin() {
	s.last = s.clock.Ticks() + s.length
	s.visits, s.sweep, s.place = 0, -1, s.orders
}

// next chooses the client that is visited next, and notes when that begins. It is false when the time is over.
//
//go:nosplit
//go:norace
func (s *sweeper) next() bool {
	// As often as clients are passed over that broke, and once more to see that all did.
	for range 2 * maxOrder {
		if s.place >= s.orders {
			s.place = 0
			s.sweep++
			if s.sweep >= leastSweeps && s.clock.Ticks() >= s.last || s.visits+s.orders > maxVisits {
				break
			}
			s.shuffle()
		}
		at := s.order[s.place&(maxOrder-1)]
		s.place++
		c := s.client[at&(MaxSweep-1)]
		o := &c.outcome
		if o.step != stepNone {
			continue
		}
		atomic.StoreInt32(&s.at, at)
		s.before, s.recorded = o.counters, c.latency.Count()
		o.cpu -= native.ThreadCPU()
		s.start = s.clock.Ticks()
		o.span -= s.start
		s.until = s.start + s.slice
		if s.due < s.start { // the client before was late, which is nothing to this one
			s.due = s.start + c.order.gap>>16
		}
		return true
	}
	atomic.StoreInt32(&s.at, outside)
	return false
}

// warm ends the part of a visit that is not measured.
//
//go:nosplit
//go:norace
func (s *sweeper) warm() {
	o := &s.now().outcome
	o.unmeasured.add(o.counters)
	o.unmeasured.sub(s.before)
	o.counters = s.before
	s.start = s.clock.Ticks()
	s.until = s.start + s.slice
	if o.start == 0 {
		o.start, o.end = s.start, s.start
	}
}

// end ends a visit. The end of a client's burst moves on by what was measured, without what lies between its visits.
//
//go:nosplit
//go:norace
func (s *sweeper) end() {
	o := &s.now().outcome
	now := s.clock.Ticks()
	o.end += now - s.start
	o.span += now
	o.cpu += native.ThreadCPU()
	if measured := s.now().latency.Count() - s.recorded; o.step == stepNone && measured > 0 {
		s.visit[s.visits&(maxVisits-1)] = visit{sweep: s.sweep, client: atomic.LoadInt32(&s.at), median: s.median(measured)}
		s.visits++
	}
}

// shuffle draws the next sweep's order (Fisher and Yates, with xorshift64*).
//
//go:nosplit
//go:norace
func (s *sweeper) shuffle() {
	for i := s.orders - 1; i > 0; i-- {
		s.random ^= s.random >> 12
		s.random ^= s.random << 25
		s.random ^= s.random >> 27
		j := int32(s.random * 0x2545f4914f6cdd1d >> 33 % uint64(i+1))
		a, b := &s.order[i&(maxOrder-1)], &s.order[j&(maxOrder-1)]
		*a, *b = *b, *a
	}
}

// median takes the median of the last so many latencies of the client, by insertion: they are few.
//
//go:nosplit
//go:norace
func (s *sweeper) median(measured int64) int64 {
	n := min(measured, maxSlice)
	for i := range n {
		v := s.now().latency.Recent(n - i)
		j := i
		for ; j > 0 && s.sorted[(j-1)&(maxSlice-1)] > v; j-- {
			s.sorted[j&(maxSlice-1)] = s.sorted[(j-1)&(maxSlice-1)]
		}
		s.sorted[j&(maxSlice-1)] = v
	}
	return (s.sorted[(n-1)/2&(maxSlice-1)] + s.sorted[n/2&(maxSlice-1)]) / 2
}

// visit runs so many transactions, at least one, until a moment at the latest, or until one fails. Where requests have a rate, the first
// begins when it is due, all of them are run, and latency counts from when each was due. It returns when the next one is due.
//
//go:nosplit
//go:norace
func (c *control) visit(transactions, last, due int64, measured bool) int64 {
	gap := c.order.gap >> 16
	for ; transactions > 0; transactions-- {
		if gap > 0 {
			c.waitUntil(due)
		}
		if !c.transact() {
			return due
		}
		begin := c.exchange.Start
		if gap > 0 {
			begin, due = due, due+gap
		}
		c.outcome.counters.transactions++
		c.outcome.counters.bytes += 2 * int64(c.message)
		if measured {
			c.latency.Record(c.exchange.End - begin)
		}
		if c.stopped() {
			c.fail(stepStopped, 0)
			return due
		}
		if gap == 0 && c.exchange.End >= last {
			return due
		}
	}
	return due
}
