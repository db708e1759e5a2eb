package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/internal/native"
	"netdelta/result"
	"netdelta/unit"
)

// Connect opens the connections of a client without the client: another process may take them over (Borrow), which then
// uses connections of this process's network namespace and control group. The caller closes the files.
func Connect(ctx context.Context, cfg Config) ([]int, error) {
	fds, err := connections(ctx, &cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %v to %v: %w", cfg.Workload, cfg.Local, cfg.Remote, err)
	}
	return fds, nil
}

// connections are the client's, connected, or those that ctx brings.
func connections(ctx context.Context, cfg *Config) ([]int, error) {
	if brought, ok := ctx.Value(socketsKey{}).([]int); ok {
		if len(brought) != cfg.connections() {
			return nil, fmt.Errorf("take over %d connections: %d are needed", len(brought), cfg.connections())
		}
		return brought, nil
	}
	var fds []int
	for i := range cfg.connections() {
		fd, err := dial(ctx, cfg, i)
		if err != nil {
			return nil, errors.Join(err, CloseAll(fds))
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

type sharedKey struct{}

// Shared has Serve answer datagrams of all clients. Otherwise a server answers its own alone, the first that sends it something.
func Shared(ctx context.Context) context.Context { return context.WithValue(ctx, sharedKey{}, true) }

func isShared(ctx context.Context) bool {
	shared, _ := ctx.Value(sharedKey{}).(bool)
	return shared
}

type socketsKey struct{}

// WithSockets has Dial and Reconnect take these connections for the client's, which closes them, in place of its own.
func WithSockets(ctx context.Context, fds []int) context.Context {
	return context.WithValue(ctx, socketsKey{}, fds)
}

// Borrow gets handles on another process's files, by pidfd_getfd(2). It needs the right to trace that process.
func Borrow(pid int, files []int) (own []int, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("find process %d to take its connections over: %w", pid, err)
	}
	for _, f := range files {
		fd, err := unix.PidfdGetfd(process, f, 0)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("take a connection over from process %d: %w", pid, err), CloseAll(own), unix.Close(process))
		}
		own = append(own, fd)
	}
	return own, unix.Close(process)
}

// CloseAll closes files.
func CloseAll(fds []int) error {
	return errors.Join(gather.Each(fds, unix.Close)...)
}

// Renewable is a client whose connections can be replaced. Its figures go on: totals, histogram, and what the kernel counted at its
// sockets.
type Renewable interface {
	// Disconnect closes the connections. dropLast is as in BurstSpec.
	Disconnect(dropLast bool) error
	// Reconnect opens others between the same addresses, or takes the ones that WithSockets brings, and warms them. After an error the
	// client is of no more use.
	Reconnect(ctx context.Context) error
}

// Disconnect implements Renewable.
func (c *client) Disconnect(dropLast bool) error {
	c.burst.Lock()
	defer c.burst.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	if c.failed != nil {
		return c.failed
	}
	c.tally.Settle(dropLast)
	if len(c.sockets) > 0 {
		sockets, tcp, err := c.last.read(c.sockets, c.cfg.Kind.datagrams())
		if err != nil {
			return err
		}
		c.earlier.dropped += sockets.Dropped
		if tcp != nil {
			c.earlier.retransmits += tcp.Retransmits
		}
	}
	err := c.release()
	c.failed = fmt.Errorf("%s: it has no connection now", c.cfg.Workload)
	return err
}

// Reconnect implements Renewable.
func (c *client) Reconnect(ctx context.Context) error {
	c.burst.Lock()
	defer c.burst.Unlock()
	c.life.Lock()
	defer c.life.Unlock()
	if c.closed || c.ctl != nil {
		return fmt.Errorf("%s: %v: only a client that was disconnected connects again", c.cfg.Workload, c.cfg.Remote)
	}
	fresh, err := dialWarm(ctx, c.cfg)
	if err != nil {
		c.failed = err
		return err
	}
	c.sockets, c.files, c.signal, c.done, c.arena, c.ctl, c.last = fresh.sockets, fresh.files, fresh.signal, fresh.done, fresh.arena, fresh.ctl, fresh.last
	c.failed = nil
	return nil
}

// tcpInfo is what the kernel says of connections since they were opened: the sums of segments, retransmits and delivery rates; the
// smallest round trip; the mean of the rest.
func tcpInfo(fds []int) (*result.TCPInfo, error) {
	var sum result.TCPInfo
	var cwnd uint64
	for i, fd := range fds {
		info, congestion, err := infoOf(fd)
		if err != nil {
			return nil, err
		}
		micro := time.Microsecond
		sum.Retransmits += uint64(info.Total_retrans)
		sum.Segments += uint64(info.Data_segs_out)
		sum.RTT += time.Duration(info.Rtt) * micro
		sum.RTTVar += time.Duration(info.Rttvar) * micro
		if least := time.Duration(info.Min_rtt) * micro; i == 0 || least < sum.MinRTT {
			sum.MinRTT = least
		}
		cwnd += uint64(info.Snd_cwnd)
		sum.DeliveryRate += unit.BitsPerSecond(info.Delivery_rate * 8)
		sum.MSS = info.Snd_mss
		sum.CongestionControl = congestion
	}
	n := len(fds)
	sum.RTT /= time.Duration(n)
	sum.RTTVar /= time.Duration(n)
	sum.Cwnd = uint32(cwnd / uint64(n))
	return &sum, nil
}

// dropsOf is how many packets a socket has turned away since it was opened: a datagram socket those for which its receive
// buffer had no room, a listening one connections. An established TCP connection counts packets that came twice there too,
// and its window keeps its buffer from overflowing: of it the figure says nothing. Kernels before 4.12 don't tell; then it is 0.
func dropsOf(fd int) uint64 {
	const placeDrops = 8 // SK_MEMINFO_DROPS
	var info [placeDrops + 1]uint32
	length := uint32(unsafe.Sizeof(info))
	if native.Option(int32(fd), unix.SOL_SOCKET, unix.SO_MEMINFO, unsafe.Pointer(&info), &length) != 0 {
		return 0
	}
	return uint64(info[placeDrops])
}

// buffersOf are the sizes of a socket's buffers now, as the kernel counts them: twice of what a program asks for.
func buffersOf(fd int) (send, receive unit.Bytes, err error) {
	s, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		return 0, 0, fmt.Errorf("read SO_SNDBUF: %w", err)
	}
	r, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return 0, 0, fmt.Errorf("read SO_RCVBUF: %w", err)
	}
	return unit.Bytes(s), unit.Bytes(r), nil
}

// overflows counts the connections that full listen queues have turned away, in the namespace that it was opened in: reading
// the open file goes on telling of that one.
type overflows struct {
	file *os.File // nil where the kernel's counters can't be read
	base uint64
}

// openOverflows begins to count. A server serves no worse where that can't be had.
func openOverflows() *overflows {
	f, err := os.Open("/proc/thread-self/net/netstat")
	if err != nil {
		return &overflows{}
	}
	o := &overflows{file: f}
	if o.base, err = o.read(); err != nil {
		_ = f.Close() // it was only read
		return &overflows{}
	}
	return o
}

func (o *overflows) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// read is the counter since the namespace was made.
func (o *overflows) read() (uint64, error) {
	text, err := io.ReadAll(io.NewSectionReader(o.file, 0, 1<<20))
	if err != nil {
		return 0, err
	}
	return counter(string(text), "ListenOverflows")
}

// since is how many connections a listening socket has turned away because its queue was full. The namespace counts those
// of all its sockets since the beginning, the socket itself counts what it turned away for any reason: the smaller figure is
// neither another's nor of another kind.
func (o *overflows) since(listener int) uint64 {
	turnedAway := dropsOf(listener)
	if o.file == nil {
		return turnedAway
	}
	now, err := o.read()
	if err != nil {
		return turnedAway
	}
	return min(now-min(o.base, now), turnedAway)
}

// counter finds a counter of TCP in /proc/net/netstat: a line of names, and under it one of figures, both with the
// group's name in front.
func counter(text, name string) (uint64, error) {
	var names []string
	for line := range strings.Lines(text) {
		fields, found := strings.CutPrefix(strings.TrimSpace(line), "TcpExt:")
		switch {
		case !found:
		case names == nil:
			names = strings.Fields(fields)
		default:
			figures := strings.Fields(fields)
			for i, n := range names {
				if n == name && i < len(figures) {
					return strconv.ParseUint(figures[i], 10, 64)
				}
			}
		}
	}
	return 0, fmt.Errorf("it has no %s of TcpExt", name)
}
