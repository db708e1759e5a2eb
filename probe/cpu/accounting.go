package cpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/native"
	"netdelta/internal/netns"
	"netdelta/internal/procfile"
)

// Accounting says where a kernel books the time of soft interrupts.
type Accounting string

// The ways of accounting.
const (
	// Threads: to the thread that they interrupt, as part of what it used.
	Threads Accounting = "threads"
	// Separate: to no thread.
	Separate Accounting = "apart"
	// Unknown: the machine was too busy to find out.
	Unknown Accounting = "unknown"
)

// FindAccounting finds out by trying: a thread pinned to a processor sends packets to itself over loopback, so that a good
// part of its time goes by in soft interrupts, and holds its own clock against the wall's. It also holds the clocks
// against each other while it does nothing but count, so that a machine that takes time away by other means is not taken for
// an answer. It takes some 10 ms, in a network namespace of its own where this process may make one.
func FindAccounting(cpu int) (Accounting, error) {
	space, err := netns.New(raiseLoopback)
	if errors.Is(err, unix.EPERM) {
		space, err = netns.Own()
	}
	if err != nil {
		return Unknown, fmt.Errorf("finding out how soft interrupts are accounted for: %w", err)
	}
	found := Unknown
	err = space.DoOnce(func() error {
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("pinning to processor %d: %w", cpu, err)
		}
		var err error
		found, err = try()
		return err
	})
	if err = errors.Join(err, space.Close()); err != nil {
		return Unknown, fmt.Errorf("finding out how soft interrupts are accounted for: %w", err)
	}
	return found, nil
}

func raiseLoopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("finding loopback: %w", err)
	}
	return netlink.LinkSetUp(lo)
}

const (
	// window is how long the clocks are held against each other at a time: short, so that some go by undisturbed.
	window = 400 * time.Microsecond
	// enough undisturbed windows of each sort give an answer; attempts of each sort are made at most.
	enough   = 8
	attempts = 64
	// A thread's clock that runs at this share of the wall's or above counts everything; at the lower share, it leaves
	// something out. Loopback packets spend about a third of their time in soft interrupts.
	whole  = 0.96
	partly = 0.90
)

// shares are how much of each undisturbed window the thread's own clock has counted.
type shares struct{ counting, sending []float64 }

// decide: the best windows count, since whatever disturbs takes time away and never adds it.
func (s shares) decide() Accounting {
	if len(s.counting) < enough || len(s.sending) < enough {
		return Unknown
	}
	counting, sending := best(s.counting), best(s.sending)
	switch {
	case counting < whole:
		return Unknown
	case sending >= whole*counting:
		return Threads
	case sending <= partly*counting:
		return Separate
	}
	return Unknown
}

func best(values []float64) float64 {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// try takes windows of both sorts in turn.
func try() (Accounting, error) {
	fd, err := mirror()
	if err != nil {
		return Unknown, err
	}
	defer func() { _ = unix.Close(fd) }()
	var s shares
	for n := 0; n < attempts && (len(s.counting) < enough || len(s.sending) < enough); n++ {
		if share, ok := compare(func() bool { return true }); ok {
			s.counting = append(s.counting, share)
		}
		if share, ok := compare(func() bool { return reflect(fd) }); ok {
			s.sending = append(s.sending, share)
		}
	}
	return s.decide(), nil
}

// mirror is a UDP socket that is connected to itself.
func mirror() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("opening a socket: %w", err)
	}
	err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	var own unix.Sockaddr
	if err == nil {
		own, err = unix.Getsockname(fd)
	}
	if err == nil {
		err = unix.Connect(fd, own)
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("connecting a socket to itself over loopback: %w", err), unix.Close(fd))
	}
	return fd, nil
}

// reflect sends a packet and takes it back. It fails when the packet is not there at once: its soft interrupt was then not
// served in the name of this thread, and the window says nothing.
func reflect(fd int) bool {
	var packet [64]byte
	_, sendErr := native.Send(int32(fd), unsafe.Pointer(&packet), unsafe.Sizeof(packet), 0)
	_, receiveErr := native.Receive(int32(fd), unsafe.Pointer(&packet), unsafe.Sizeof(packet), unix.MSG_DONTWAIT)
	return sendErr == 0 && receiveErr == 0
}

// compare repeats step for a window, and gives the share of it that this thread's clock has counted. A window in which
// another thread ran, or a step failed, is not ok.
func compare(step func() bool) (share float64, ok bool) {
	switches := contextSwitches()
	began := time.Now()
	before := native.ThreadCPU()
	ok = true
	for time.Since(began) < window {
		ok = step() && ok
	}
	used := native.ThreadCPU() - before
	took := time.Since(began)
	return float64(used) / float64(took), ok && contextSwitches() == switches
}

// contextSwitches counts this thread's, forced or not.
func contextSwitches() int64 {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		return -1 // the same each time: then only the best window tells
	}
	return usage.Nvcsw + usage.Nivcsw
}

// delays are open files of threads in which the kernel counts how long they waited for a processor.
type delays struct {
	files []*procfile.File
	// asked is how long each thread ran or waited to run when it was read last, and waited the latter part of it.
	asked, waited []time.Duration
	of            []int               // the end that each is of, in the order of Follow
	most          [ends]time.Duration // by how much the asked of one of an end's threads has grown
}

// open opens the schedstat of threads of a process, and of daemons that it has started. It is an error if the kernel does not
// count (CONFIG_SCHED_INFO), as a thread shows that has run and yet has no figures.
func (d *delays) open(root string, pid int, threads []int, end int) error {
	for _, id := range threads {
		folder := filepath.Join(root, strconv.Itoa(pid), "task", strconv.Itoa(id))
		if daemon := filepath.Join(root, strconv.Itoa(id)); !exists(folder) && exists(daemon) {
			folder = daemon
		}
		f, err := procfile.Open(filepath.Join(folder, "schedstat"), 128)
		if err != nil {
			return err
		}
		d.files, d.asked, d.waited, d.of = append(d.files, f), append(d.asked, 0), append(d.waited, 0), append(d.of, min(end, ends-1))
		if used, _, err := figures(f); err != nil || used == 0 {
			return errors.Join(fmt.Errorf("%s has no figures", f.Name()), err)
		}
	}
	return nil
}

// exists says whether there is a file.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (d *delays) close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.Close())
	}
	d.files, d.asked, d.waited, d.of = nil, nil, nil, nil
	return errors.Join(errs...)
}

// read is the sum of what the threads of each end have waited since they began. It notes how long each of them has asked for a processor.
func (d *delays) read() (sum [ends]time.Duration, err error) {
	d.most = [ends]time.Duration{}
	for i, f := range d.files {
		used, waited, err := figures(f)
		if errors.Is(err, syscall.ESRCH) {
			sum[d.of[i]] += d.waited[i] // a daemon that has died waits no more
			continue
		}
		if err != nil {
			return sum, err
		}
		d.waited[i] = waited
		sum[d.of[i]] += waited
		d.most[d.of[i]] = max(d.most[d.of[i]], used+waited-d.asked[i])
		d.asked[i] = used + waited
	}
	return sum, nil
}

func figures(f *procfile.File) (used, waited time.Duration, err error) {
	text, err := f.Read()
	if err != nil {
		return 0, 0, err
	}
	return parseDelay(string(text))
}

// parseDelay reads a thread's schedstat: nanoseconds that it ran, and that it waited to run, and how often it ran. See the
// kernel's Documentation/scheduler/sched-stats.rst.
func parseDelay(text string) (used, waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("schedstat is %q: not three figures", text)
	}
	var figures [2]int64
	for i := range figures {
		if figures[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil || figures[i] < 0 {
			return 0, 0, fmt.Errorf("schedstat is %q: figure %d is no time", text, i+1)
		}
	}
	return time.Duration(figures[0]), time.Duration(figures[1]), nil
}
