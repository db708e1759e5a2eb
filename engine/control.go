package engine

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/gather"
	"netdelta/internal/latency"
	"netdelta/internal/native"
)

// control is what a loop and the Go side of its engine share. It lives in an arena. The Go side writes the order before it
// raises command, and reads the outcome after the loop has written to the pipe; only stop and the counters of a server are
// touched while a loop runs.
type control struct {
	command uint32 // counts the orders; the loop sleeps on it
	stop    uint32 // 1 asks the loop to give up
	thread  int32  // the kernel's number of the loop's thread, once it runs
	spent   int64  // nanoseconds of processor time that a server's loop has used; while it runs, minus what its thread had used before

	// What does not change.
	kind       Kind
	done       int32 // the pipe that tells the Go side of a burst's end
	message    uintptr
	conns      int32
	listener   int32
	family     uintptr
	options    options
	clock      clock.Clock
	lossTicks  int64 // until a datagram counts as lost
	local      address
	remote     address
	connection *[MaxConnections]connection // conns of them are there
	out, in    unsafe.Pointer              // one message each
	events     *[eventRoom]unix.EpollEvent
	seconds    *[maxSeconds]second

	order    order
	outcome  outcome
	exchange native.Exchange // on connection 0
	latency  latency.Recorder

	transaction uint32 // counts the datagram transactions within a burst
	port        uint32 // the next source port of a connect loop, from 0
	ports       uint32 // how many it has
	served      counters
	sink        sink
	client      address // that a server of datagrams answers, once one has come
	shared      bool    // it answers all
	domain      uint32  // whose clock this is
	probed      probed
	reported    uint64 // bytes that a stream's receivers had read when they last said so
	stream      streamMarks
	bypassed    bool // a stream's bytes go past TCP
	web         web
	many        many
}

// order says what burst to run. Times are in ticks.
type order struct {
	quit         uint32
	number       uint32 // of the burst
	warmup       int64
	duration     int64 // 0: unlimited
	transactions int64 // 0: unlimited
	probing      bool  // a trial of a search
	gap          int64 // between intended starts, in 1/65536 ticks; 0 is a closed loop
	second       int64 // ticks of a second
}

// outcome is what a burst gave.
type outcome struct {
	start, end  int64    // of the measured part, in ticks
	counters    counters // of the measured part
	unmeasured  counters // of what came before it
	switches    int64
	cpu         int64 // nanoseconds of processor time, of the whole burst
	span        int64 // ticks, of the whole burst
	moved       int64 // bytes that a TCP stream's receiver has acknowledged, or of HTTP both ways, of the whole burst
	secondCount int64
	step        step
	errno       native.Errno
	connection  int32
	status      int32 // of the last response of HTTP that was parsed
	failures    int64 // requests of HTTP that have failed in a row
	failed      step  // at which the last of those that the burst survived failed
	failedErrno native.Errno
}

// counters are sums over transactions.
type counters struct {
	transactions, bytes, sent, lost, reordered, errors int64
}

//go:nosplit
//go:norace
func (c *counters) add(d counters) {
	c.transactions += d.transactions
	c.bytes += d.bytes
	c.sent += d.sent
	c.lost += d.lost
	c.reordered += d.reordered
	c.errors += d.errors
}

//go:nosplit
//go:norace
func (c *counters) sub(d counters) {
	c.transactions -= d.transactions
	c.bytes -= d.bytes
	c.sent -= d.sent
	c.lost -= d.lost
	c.reordered -= d.reordered
	c.errors -= d.errors
}

// second is the state of the counters when a second of a burst had passed.
type second struct{ transactions, bytes, lost int64 }

// connection is one of a client's (or server's) open connections.
type connection struct {
	fd     int32
	active bool
	number uint32 // of the datagram transaction
	sent   uintptr
	got    uintptr
	start  int64 // intended, in ticks
	tried  int64 // when the last datagram of the transaction was sent
	retry  bool
	// Of HTTP:
	own    bool // opened by the loop, which has the only handle on it
	closes bool // the server closes it after this response
	phase  phase
	size   uintptr // of the whole response, 0 until its head is known
	end    int64   // when the response was whole, in ticks
}

// address is a socket address as the kernel takes it.
type address struct {
	raw    [unix.SizeofSockaddrInet6]byte
	length uint32
}

// options are the socket options that a connect loop sets on each new connection.
type options struct {
	one           int32
	timeout       unix.Timeval
	busyPoll      int32
	congestion    [16]byte
	congestionLen uintptr
	bind          bool
	noDelay       bool
}

const (
	// MaxConnections is how many connections a client may keep open.
	MaxConnections = 4096
	eventRoom      = 128
	maxSeconds     = 3600
)

// arenaSize is what a loop of this configuration needs.
func arenaSize(conns int, message uintptr, latencies bool) uintptr {
	size := native.Reserved(unsafe.Sizeof(control{})) +
		native.Reserved(uintptr(conns)*unsafe.Sizeof(connection{})) +
		2*native.Reserved(message) +
		native.Reserved(unsafe.Sizeof([eventRoom]unix.EpollEvent{})) +
		native.Reserved(unsafe.Sizeof([maxSeconds]second{}))
	if latencies {
		size += latency.Memory
	}
	return size
}

// newControl maps the memory of a loop.
func newControl(cfg Config, conns int, buffer uintptr, latencies bool) (*native.Arena, *control, error) {
	size := arenaSize(conns, buffer, latencies)
	if cfg.Kind == HTTPGet {
		size += webArena(conns)
	}
	arena, err := native.NewArena(size)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cfg.Workload, err)
	}
	c := (*control)(arena.Take(unsafe.Sizeof(control{})))
	c.kind = cfg.Kind
	c.message = uintptr(cfg.Params.Message)
	c.conns = int32(conns)
	c.clock = clock.System()
	c.connection = (*[MaxConnections]connection)(arena.Take(uintptr(conns) * unsafe.Sizeof(connection{})))
	c.out = arena.Take(buffer)
	c.in = arena.Take(buffer)
	c.events = (*[eventRoom]unix.EpollEvent)(arena.Take(unsafe.Sizeof([eventRoom]unix.EpollEvent{})))
	c.seconds = (*[maxSeconds]second)(arena.Take(unsafe.Sizeof([maxSeconds]second{})))
	if latencies {
		c.latency.Open(arena, c.clock)
	}
	c.exchange = native.Exchange{Out: uintptr(c.out), In: uintptr(c.in), Size: int64(c.message)}
	// Anything but zeros, so that nothing on the way can treat an empty page specially.
	body := unsafe.Slice((*byte)(c.out), buffer)
	for i := range body {
		body[i] = byte(i*31 + 7)
	}
	return arena, c, nil
}

// stopped says whether the Go side has asked the loop to give up.
//
//go:nosplit
//go:norace
func (c *control) stopped() bool { return atomic.LoadUint32(&c.stop) != 0 }

// fail notes where a burst broke, and returns false.
//
//go:nosplit
//go:norace
func (c *control) fail(at step, errno native.Errno) bool {
	c.outcome.step, c.outcome.errno = at, errno
	return false
}

// openSignal opens a pipe by which a loop says that it has carried out an order: the Go side reads its end through the runtime's poller.
func openSignal() (read *os.File, write int32, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("open a pipe: %w", err)
	}
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open a pipe: %w", err), unix.Close(pipe[0]), unix.Close(pipe[1]))
	}
	return os.NewFile(uintptr(pipe[0]), "burst"), int32(pipe[1]), nil
}

// narrow gives file descriptors the size that the kernel gives them.
func narrow(files []int) []int32 {
	return gather.Each(files, func(fd int) int32 { return int32(fd) })
}
