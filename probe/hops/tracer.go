package hops

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/internal/netns"
	"netdelta/internal/procfile"
	"netdelta/testbed"
)

// Kind is what happened to a packet.
type Kind uint8

// The kinds of events, as in hops.bpf.c.
const (
	// Sent is when a device is given the packet to transmit.
	Sent Kind = iota + 1
	// Received is when a device has handed the packet to the stack.
	Received
	// Arrived is when TCP has the segment.
	Arrived
	// Ready is when the socket tells who waits for it.
	Ready
	// Written is when TCP begins to take what a program writes.
	Written
	// Repeated is when TCP sends a segment again.
	Repeated
	// Preempted is when another task takes the processor from a thread of this program, or gives it to one; Device is its number.
	Preempted
)

// Event is a packet of a watched connection that passes a place. Its fields are the fields of struct event in hops.bpf.c.
type Event struct {
	// At is nanoseconds of the kernel's monotonic clock.
	At int64
	// Space is the inode of the network namespace, Device the device's index in it; 0 at a socket.
	Space, Device uint32
	// Sequence is TCP's number of the first byte, Length how many bytes of payload there are; both 0 at a socket.
	Sequence, Length uint32
	// Source and Destination are the connection's ports.
	Source, Destination uint16
	Kind                Kind
	// Wraps is how many other packets the packet is wrapped in.
	Wraps uint8
	// Processor is where it happened.
	Processor uint16
}

// Level is how much is traced. More of it costs more.
type Level int

// The levels.
const (
	// Devices traces what passes devices.
	Devices Level = iota
	// Everything traces sockets too.
	Everything
	// Disturbances traces also what comes between: segments that are sent again, and other tasks on the processor.
	Disturbances
)

// Options say what a tracer watches.
type Options struct {
	// First and Last are the range of the servers' ports: packets to and from them are watched.
	First, Last uint16
	Level       Level
	// Skip is the inode of a network namespace whose devices are left out, 0 for none.
	Skip uint32
	// Room is for how many events of each processor there is room between Start and Stop; 0 takes DefaultRoom.
	Room int
}

// DefaultRoom holds a few thousand transactions over the longest way there is.
const DefaultRoom = 1 << 16

// Tracer notes events between Start and Stop. It is not safe for concurrent use. All that it holds in the kernel is gone
// with it, also when the program is killed: nothing of it has a name.
type Tracer struct {
	objects    *ebpf.Collection
	memory     *ebpf.Memory
	room       int
	processors int
	programs   []string // that are attached
	links      []link.Link
}

// Open loads a tracer, stopped. Its error is a *testbed.PermissionError where this user may not and a
// *testbed.UnsupportedError where the kernel can't.
func Open(o Options) (*Tracer, error) {
	t := &Tracer{room: cmp.Or(o.Room, DefaultRoom)}
	if err := t.open(o); err != nil {
		return nil, errors.Join(refused(err), t.Close())
	}
	return t, nil
}

func (t *Tracer) open(o Options) error {
	// Kernels before 5.11 charge maps to this limit; younger ones ignore it.
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	spec, err := loadTracer()
	if err != nil {
		return err
	}
	if t.processors, err = ebpf.PossibleCPU(); err != nil {
		return fmt.Errorf("count the processors: %w", err)
	}
	spec.Maps[tracerMapEvents].MaxEntries = uint32(t.room * t.processors)
	if err := errors.Join(
		spec.Variables[tracerVarFirstPort].Set(o.First), spec.Variables[tracerVarLastPort].Set(o.Last),
		spec.Variables[tracerVarRoom].Set(uint32(t.room)), spec.Variables[tracerVarSkipped].Set(o.Skip),
		spec.Variables[tracerVarProgram].Set(int32(os.Getpid())),
	); err != nil {
		return fmt.Errorf("tell the tracer what to watch: %w", err)
	}
	if t.programs, err = wanted(spec, o.Level); err != nil {
		return err
	}
	if t.objects, err = ebpf.NewCollection(spec); err != nil {
		return err
	}
	t.memory, err = t.objects.Maps[tracerMapEvents].Memory()
	return err
}

// wanted chooses the programs of a level, and takes out of the collection all others: among them those for tracepoints that
// this kernel does not have yet.
func wanted(spec *ebpf.CollectionSpec, level Level) ([]string, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, fmt.Errorf("read the kernel's types: %w", err)
	}
	programs := []string{tracerProgSent, tracerProgReceived}
	if level >= Everything {
		optionals := []string{tracerProgArrived, tracerProgReady, tracerProgWritten}
		if level == Disturbances {
			optionals = append(optionals, tracerProgRepeated, tracerProgPreempted)
		}
		for _, optional := range optionals {
			point := spec.Programs[optional].AttachTo
			var traced *btf.Typedef
			if err := kernel.TypeByName("btf_trace_"+point, &traced); err == nil {
				programs = append(programs, optional)
			} else if !errors.Is(err, btf.ErrNotFound) {
				return nil, fmt.Errorf("look for the tracepoint %s: %w", point, err)
			}
		}
	}
	for name := range spec.Programs {
		if !slices.Contains(programs, name) {
			delete(spec.Programs, name)
		}
	}
	return programs, nil
}

// refused puts in the words of testbeds why the kernel does not let itself be traced.
func refused(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &testbed.PermissionError{Doing: "trace packets", Need: "the capabilities CAP_BPF and CAP_PERFMON", Fix: "run it as root", Err: err}
	case errors.Is(err, ebpf.ErrNotSupported), errors.As(err, &verifier), errors.Is(err, btf.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOSYS):
		return &testbed.UnsupportedError{
			Feature: "tracing packets", Need: "BTF and tracepoints for eBPF (CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_EVENTS), Linux 6.2",
			Fix: fmt.Sprintf("run it on a kernel that has them (the kernel says: %v)", err), InGuest: true,
		}
	}
	return fmt.Errorf("trace packets: %w", err)
}

// Start begins to note events.
func (t *Tracer) Start() error {
	if err := t.reset(); err != nil {
		return err
	}
	for _, name := range t.programs {
		l, err := link.AttachTracing(link.TracingOptions{Program: t.objects.Programs[name]})
		if err != nil {
			return errors.Join(refused(fmt.Errorf("attach the program %s: %w", name, err)), t.detach())
		}
		t.links = append(t.links, l)
	}
	return nil
}

func (t *Tracer) detach() error {
	errs := gather.Each(t.links, func(l link.Link) error { return l.Close() })
	t.links = nil
	return errors.Join(errs...)
}

// reset forgets what was noted.
func (t *Tracer) reset() error {
	if err := t.objects.Maps[tracerMapCounts].Put(uint32(0), make([]uint64, t.processors)); err != nil {
		return fmt.Errorf("reset the tracer: %w", err)
	}
	return nil
}

// Noted is what happened between Start and Stop.
type Noted struct {
	// Events are in the order of time. None is missing up to Until.
	Events []Event
	// Until is when the first processor had no more room, in nanoseconds of the kernel's monotonic clock; the end of time where
	// each had.
	Until int64
	// Lost is how many more events there were.
	Lost int
}

// Stop ends the noting and returns what was noted.
func (t *Tracer) Stop() (n Noted, err error) {
	n.Until = math.MaxInt64
	if err := t.detach(); err != nil {
		return n, fmt.Errorf("stop the tracer: %w", err)
	}
	var counts []uint64
	if err := t.objects.Maps[tracerMapCounts].Lookup(uint32(0), &counts); err != nil {
		return n, fmt.Errorf("read how many events the tracer noted: %w", err)
	}
	total := 0
	for processor, count := range counts {
		total += int(count)
		read, err := t.read(processor*t.room, min(int(count), t.room))
		if err != nil {
			return n, fmt.Errorf("read the events of processor %d: %w", processor, err)
		}
		if int(count) > t.room {
			n.Until = min(n.Until, read[t.room-1].At)
		}
		n.Events = append(n.Events, read...)
	}
	slices.SortStableFunc(n.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	// What another processor noted afterwards is half of the truth: a packet would seem to have passed nothing of what is missing.
	whole := sort.Search(len(n.Events), func(i int) bool { return n.Events[i].At > n.Until })
	n.Events = n.Events[:whole]
	n.Lost = total - whole
	return n, nil
}

// Whole are the transactions of which all events were noted.
func (n Noted) Whole(transactions []Transaction) []Transaction {
	return transactions[:sort.Search(len(transactions), func(i int) bool { return transactions[i].Ended > n.Until })]
}

// read takes events out of the memory that is shared with the programs.
func (t *Tracer) read(from, count int) ([]Event, error) {
	size := binary.Size(Event{})
	raw, events := make([]byte, count*size), make([]Event, count)
	if _, err := t.memory.ReadAt(raw, int64(from*size)); err != nil {
		return nil, err
	}
	_, err := binary.Decode(raw, binary.NativeEndian, events)
	return events, err
}

// Close lets go of all that the tracer holds. It is idempotent.
func (t *Tracer) Close() error {
	err := t.detach()
	if t.objects != nil {
		t.objects.Close()
		t.objects = nil
	}
	if err != nil {
		return fmt.Errorf("let go of the tracer: %w", err)
	}
	return nil
}

// watchRoom is for how many events of each processor there is room while a program is watched.
const watchRoom = 1 << 18

// Watched is what the connections of a running program did.
type Watched struct {
	Events []Event // of its namespace; none where it moved nothing
	Names  Names   // of the namespaces and devices that they passed
	Lost   int     // events that there was no room for
}

// Watch traces the connections to and from a port of a running process, which are not touched, for a while or until ctx ends.
func Watch(ctx context.Context, pid int, port uint16, lasting time.Duration) (w Watched, err error) {
	own, err := spaceOf(pid)
	if err != nil {
		return w, err
	}
	tracer, err := Open(Options{First: port, Last: port, Room: watchRoom})
	if err != nil {
		return w, err
	}
	if err = tracer.Start(); err == nil {
		select {
		case <-time.After(lasting):
		case <-ctx.Done(): // what was seen so far is shown
		}
		var noted Noted
		noted, err = tracer.Stop()
		w.Events, w.Lost = noted.Events, noted.Lost
	}
	if err := errors.Join(err, tracer.Close()); err != nil {
		return w, err
	}
	if w.Names, err = mapSpaces(w.Events, pid); err != nil {
		return w, err
	}
	w.Events = OfSpace(w.Events, own)
	return w, nil
}

// spaceOf is the number of a process's network namespace.
func spaceOf(pid int) (uint32, error) {
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"), &s); err != nil {
		return 0, fmt.Errorf("find the network namespace of process %d: %w", pid, err)
	}
	return uint32(s.Ino), nil
}

// mapSpaces names the namespaces in which something was seen, each by a process in it, and their devices: this program's own
// is the host, and the watched program's is named after that program. Namespaces that have vanished or have no process keep
// their numbers.
func mapSpaces(events []Event, watched int) (Names, error) {
	names := Names{Spaces: map[uint32]string{}, Devices: map[Address]string{}}
	wanted := map[uint32]bool{}
	for _, e := range events {
		wanted[e.Space] = true
	}
	processes, err := procfile.Processes("/proc")
	if err != nil {
		return names, fmt.Errorf("look for the processes of namespaces: %w", err)
	}
	for i, pid := range append([]int{os.Getpid(), watched}, processes...) {
		space, err := spaceOf(pid)
		if err != nil || !wanted[space] {
			continue // it has ended, or has nothing to do with it
		}
		delete(wanted, space)
		names.Spaces[space] = "host"
		if i > 0 {
			names.Spaces[space] = "process " + strconv.Itoa(pid)
			if name, _, err := procfile.Stat("/proc", pid); err == nil {
				names.Spaces[space] = fmt.Sprintf("%s[%d]", name, pid)
			}
		}
		devices, err := devicesOf(pid)
		if err != nil {
			continue // gone with the process
		}
		for _, d := range devices {
			names.Devices[Address{Space: space, Device: uint32(d.Index)}] = d.Name
		}
	}
	return names, nil
}

// devicesOf lists the devices of a process's network namespace.
func devicesOf(pid int) (devices []net.Interface, err error) {
	space, err := netns.Of(pid)
	if err != nil {
		return nil, err
	}
	err = space.DoOnce(func() (err error) {
		devices, err = net.Interfaces()
		return err
	})
	return devices, errors.Join(err, space.Close())
}
