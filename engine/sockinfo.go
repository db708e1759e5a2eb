package engine

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/result"
	"netdelta/unit"
)

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
