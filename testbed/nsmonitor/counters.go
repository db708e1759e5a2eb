package nsmonitor

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"netdelta/result"
	"netdelta/testbed"
)

// CounterReader reads what the kernel counts in a namespace. Its socket and its files stay open, so that a reading needs no thread
// in the namespace: it is taken just before and after a load, and has to be quick. It is safe for concurrent use.
type CounterReader struct {
	mu     sync.Mutex
	socket *netlinkSocket
	stack  []*os.File
	buffer []byte
	names  map[int]string // of the devices, by number, as last read
	closed bool
}

// ErrClosed is the error of a namespace that was given up meanwhile.
var ErrClosed = errors.New("the namespace is closed")

// NewCounterReader opens a counter reader in the namespace of the calling thread.
func NewCounterReader() (*CounterReader, error) {
	socket, err := openNetlink(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	g := &CounterReader{socket: socket, buffer: make([]byte, 16<<10), names: map[int]string{}}
	for _, path := range []string{"/proc/thread-self/net/snmp", "/proc/thread-self/net/snmp6"} {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open the counters of the IP stack: %w", err), g.Close())
		}
		g.stack = append(g.stack, f)
	}
	return g, nil
}

// Close lets go of the namespace. It is idempotent.
func (g *CounterReader) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	err := g.socket.close()
	for _, f := range g.stack {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Counted is a device with what it has counted.
type Counted struct {
	Name string
	testbed.Counters
}

// Devices reads the counters of all devices. A list that the kernel changed while it was being read is read again, a few
// times.
func (g *CounterReader) Devices() ([]Counted, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	devices, err := List(g.dump)
	if errors.Is(err, unix.EINTR) {
		return nil, errors.New("the list of devices kept changing while it was read")
	}
	if err != nil {
		return nil, err
	}
	clear(g.names)
	for _, d := range devices {
		g.names[d.Index] = d.Name
	}
	return devices, nil
}

// NameOf is the name of the device with this number. One that is gone and was never read has its number for a name.
func (g *CounterReader) NameOf(index int) string {
	known := func() (string, bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		name, ok := g.names[index]
		return name, ok
	}
	name, ok := known()
	if !ok {
		_, _ = g.Devices() // without a new list it is not known either
		name, ok = known()
	}
	if !ok {
		return "device-" + strconv.Itoa(index)
	}
	return name
}

// dump asks for all links once. It is unix.EINTR where the answer does not hang together.
func (g *CounterReader) dump() ([]Counted, error) {
	var devices []Counted
	err := g.socket.dump(unix.RTM_GETLINK, linkQuestion(), func(body []byte) {
		if d, ok := parseLink(body); ok {
			devices = append(devices, d)
		}
	})
	if err != nil && !errors.Is(err, unix.EINTR) {
		err = fmt.Errorf("read the devices: %w", err)
	}
	return devices, err
}

// skipStats is RTEXT_FILTER_SKIP_STATS: leave out the counters that IPv6 keeps for each device, which cost more than all the rest.
const skipStats = 1 << 3

// parseLink takes the name and the 64-bit counters (struct rtnl_link_stats64) from a message about a link.
func parseLink(body []byte) (Counted, bool) {
	if len(body) < unix.SizeofIfInfomsg {
		return Counted{}, false
	}
	d := Counted{Counters: testbed.Counters{Index: int(nl.DeserializeIfInfomsg(body).Index)}}
	complete := false
	for kind, value := range attributes(body[unix.SizeofIfInfomsg:]) {
		switch kind {
		case unix.IFLA_IFNAME:
			d.Name = string(bytes.TrimRight(value, "\x00"))
		case unix.IFLA_STATS64:
			complete = d.fill(value)
		}
	}
	return d, complete && d.Name != ""
}

// fill takes the counters over. They are packets, bytes, errors and drops, each received first, then sent.
func (d *Counted) fill(stats []byte) bool {
	const fields = 8
	if len(stats) < 8*fields {
		return false
	}
	var v [fields]uint64
	for i := range v {
		v[i] = binary.NativeEndian.Uint64(stats[8*i:])
	}
	d.ReceivedPackets, d.SentPackets, d.ReceivedBytes, d.SentBytes = v[0], v[1], v[2], v[3]
	d.Errors, d.Dropped = v[4]+v[5], v[6]+v[7]
	return true
}

// Stack reads what the IP stack has counted.
func (g *CounterReader) Stack() (testbed.Stack, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var s testbed.Stack
	if g.closed {
		return s, ErrClosed
	}
	for _, f := range g.stack {
		n, err := f.ReadAt(g.buffer, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return s, fmt.Errorf("read the counters of the IP stack: %w", err)
		}
		if err := addStack(&s, g.buffer[:n]); err != nil {
			return s, fmt.Errorf("read the counters of the IP stack: %w", err)
		}
	}
	return s, nil
}

// addStack adds the counters of /proc/net/snmp, which has a line of names and a line of values for each protocol, or of
// /proc/net/snmp6, which has a name and a value on each line.
func addStack(s *testbed.Stack, text []byte) error {
	var names, values [][]byte
	if _, rest, found := bytes.Cut(text, []byte("Ip: ")); found {
		line, rest, _ := bytes.Cut(rest, []byte("\nIp: "))
		names = bytes.Fields(line)
		line, _, _ = bytes.Cut(rest, []byte("\n"))
		values = bytes.Fields(line)
	} else {
		for _, name := range []string{"Ip6FragCreates", "Ip6ReasmOKs", "Ip6FragFails"} {
			_, rest, _ := bytes.Cut(text, []byte(name))
			line, _, _ := bytes.Cut(rest, []byte("\n"))
			names, values = append(names, []byte(name[len("Ip6"):])), append(values, bytes.TrimSpace(line))
		}
	}
	if len(names) != len(values) {
		return fmt.Errorf("%d values for %d names", len(values), len(names))
	}
	sums := map[string]*uint64{"FragCreates": &s.FragmentsMade, "ReasmOKs": &s.Reassembled, "FragFails": &s.FragmentationRefused}
	for i, name := range names {
		sum := sums[string(name)]
		if sum == nil {
			continue
		}
		n, err := strconv.ParseUint(string(values[i]), 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*sum += n
	}
	return nil
}

// Drops are the packets that each device, and each queueing discipline that is no part of another, has dropped so far. What dropped
// nothing is not in it.
func (g *CounterReader) Drops() ([]result.Drop, error) {
	devices, err := g.Devices()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	var all []result.Drop
	for _, d := range devices {
		if d.Dropped > 0 {
			all = append(all, result.Drop{Device: d.Name, Packets: d.Dropped})
		}
	}
	queues, err := g.queues()
	for _, q := range queues {
		if q.root && q.Dropped > 0 {
			all = append(all, result.Drop{Device: q.Device, Queue: q.Kind, Packets: q.Dropped})
		}
	}
	return all, err
}

// Queue is a queueing discipline of a device with what it has counted in packets.
type Queue struct {
	Device, Kind                 string
	Dropped, Requeued, Overlimit uint64

	root bool // it is no part of another
}

// Queues reads the queueing disciplines of the calling thread's namespace. Devices without a queue are not among them.
func Queues() (queues []Queue, err error) {
	g, err := NewCounterReader()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if _, err := g.Devices(); err != nil {
		return nil, err
	}
	all, err := g.queues()
	if err != nil {
		return nil, fmt.Errorf("read the queueing disciplines: %w", err)
	}
	return slices.DeleteFunc(all, func(q Queue) bool { return q.Device == "" || q.Kind == "noqueue" }), nil
}

// queues reads the queueing disciplines, and names their devices as they were last read. The lock must be held, or the reader be the
// caller's own.
func (g *CounterReader) queues() ([]Queue, error) {
	return List(func() ([]Queue, error) {
		var all []Queue
		err := g.socket.dump(unix.RTM_GETQDISC, new(nl.TcMsg).Serialize(), func(body []byte) {
			if q, ok := parseQueue(body, g.names); ok {
				all = append(all, q)
			}
		})
		return all, err
	})
}

// parseQueue takes what a queueing discipline counts from a message about it (struct gnet_stats_queue).
func parseQueue(body []byte, names map[int]string) (Queue, bool) {
	if len(body) < nl.SizeofTcMsg {
		return Queue{}, false
	}
	const droppedAt, requeuedAt, overlimitAt = 8, 12, 16
	m := nl.DeserializeTcMsg(body)
	q, counted := Queue{Device: names[int(m.Ifindex)], root: m.Parent == netlink.HANDLE_ROOT}, false
	for kind, value := range attributes(body[nl.SizeofTcMsg:]) {
		switch kind {
		case unix.TCA_KIND:
			q.Kind = string(bytes.TrimRight(value, "\x00"))
		case unix.TCA_STATS2:
			for k, v := range attributes(value) {
				if k == nl.TCA_STATS_QUEUE && len(v) >= overlimitAt+4 {
					order := binary.NativeEndian
					q.Dropped, q.Requeued = uint64(order.Uint32(v[droppedAt:])), uint64(order.Uint32(v[requeuedAt:]))
					q.Overlimit, counted = uint64(order.Uint32(v[overlimitAt:])), true
				}
			}
		}
	}
	return q, counted
}
