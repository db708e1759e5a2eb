package flame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
	"netdelta/internal/procfile"
	"netdelta/testbed"
)

// Rate is how often a second each processor is looked at: not a round number, so that it does not keep step with what the
// kernel does a hundred or a thousand times a second.
const Rate = 997

// Profiler looks at all processors of the machine between Start and Stop. It is not safe for concurrent use. All that it
// holds in the kernel is gone with it, also when the program is killed: nothing of it has a name.
type Profiler struct {
	event   Event
	objects tickObjects
	counts  []int // descriptors of the events, one a processor
	links   []link.Link

	// What has a name keeps it while the profiler is open.
	kernel   symbols
	programs map[uint32]*program

	started time.Time
}

// Open loads the profiler, stopped. Its error is a *testbed.PermissionError where this user may not and a
// *testbed.UnsupportedError where the kernel can't.
func Open() (*Profiler, error) {
	p := &Profiler{programs: map[uint32]*program{}}
	if err := p.open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Try finds out whether this user can profile this machine. Its errors are as in Open.
func Try() error {
	p, err := Open()
	if err != nil {
		return err
	}
	return p.Close()
}

func (p *Profiler) open() error {
	// Kernels before 5.11 charge maps to this limit; younger ones ignore it.
	if err := rlimit.RemoveMemlock(); err != nil {
		return refused(err)
	}
	if err := loadTickObjects(&p.objects, nil); err != nil {
		return refused(err)
	}
	processors, err := procfile.OnlineCPUs()
	if err != nil {
		return err
	}
	for _, processor := range processors {
		if err := p.attach(processor); err != nil {
			return fmt.Errorf("profile processor %d: %w", processor, refused(err))
		}
	}
	p.kernel, err = readKernelSymbols()
	return err
}

// refused puts in the words of testbeds why the kernel does not let itself be profiled.
func refused(err error) error {
	var verifier *ebpf.VerifierError
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &testbed.PermissionError{Doing: "profile the processors", Need: "the capabilities CAP_PERFMON and CAP_BPF", Fix: "run it as root", Err: err}
	case errors.Is(err, ebpf.ErrNotSupported), errors.As(err, &verifier), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOENT), errors.Is(err, unix.EOPNOTSUPP):
		return &testbed.UnsupportedError{
			Feature: "the profile of the processors", Need: "perf events with eBPF and BTF (CONFIG_PERF_EVENTS, CONFIG_BPF_EVENTS, CONFIG_DEBUG_INFO_BTF)",
			Fix: fmt.Sprintf("run it on a kernel that has them (the kernel says: %v)", err), InGuest: true,
		}
	}
	return fmt.Errorf("profile the processors: %w", err)
}

// attach has the program called on one processor: by its cycles if it counts them, else by the clock.
func (p *Profiler) attach(processor int) error {
	events := []Event{Cycles, Clock}
	if p.event != "" {
		events = []Event{p.event} // all processors alike
	}
	var fd int
	var err error
	for _, e := range events {
		if fd, err = openEvent(e, processor); err == nil {
			p.event = e
			break
		}
	}
	if err != nil {
		return err
	}
	p.counts = append(p.counts, fd)
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: fd, Program: p.objects.Tick, Attach: ebpf.AttachPerfEvent})
	if err != nil {
		return err
	}
	p.links = append(p.links, l)
	return nil
}

func openEvent(e Event, processor int) (int, error) {
	attr := unix.PerfEventAttr{
		Size: unix.PERF_ATTR_SIZE_VER1, Sample: Rate, Bits: unix.PerfBitFreq | unix.PerfBitDisabled,
		Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK,
	}
	if e == Cycles {
		attr.Type, attr.Config = unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES
	}
	const anyProcess, noGroup = -1, -1
	return unix.PerfEventOpen(&attr, anyProcess, processor, noGroup, unix.PERF_FLAG_FD_CLOEXEC)
}

// Start begins to look, or goes on.
func (p *Profiler) Start() error {
	p.started = time.Now()
	return p.all(unix.PERF_EVENT_IOC_ENABLE, "start")
}

func (p *Profiler) all(request uint, what string) error {
	for _, fd := range p.counts {
		if err := unix.IoctlSetInt(fd, request, 0); err != nil {
			return fmt.Errorf("%s the profile of the processors: %w", what, err)
		}
	}
	return nil
}

// Stop ends the looking and returns what was seen since Start. names gives the network namespaces of the testbed by the
// number of their inode. The programs must be there still: their functions' names
// are read from their files. That takes seconds on a busy machine: where ctx ends meanwhile its error is returned, and all that is left to do is Close.
func (p *Profiler) Stop(ctx context.Context, names map[uint32]string) (Profile, error) {
	if err := p.all(unix.PERF_EVENT_IOC_DISABLE, "stop"); err != nil {
		return Profile{}, err
	}
	taken := Profile{
		Event: p.event, Period: time.Second / Rate, Duration: time.Since(p.started), Processors: len(p.counts),
	}
	samples, lost, err := p.drain(ctx, names)
	if err != nil {
		return Profile{}, fmt.Errorf("read the profile of the processors: %w", err)
	}
	taken.Samples, taken.Lost = samples, lost
	taken.Samples = join(append(samples, asleep(taken)...))
	return taken, nil
}

// asleep is the time that no tick stands for: sleeping processors count no cycles, and those that sleep deeply take no ticks of
// the clock either. In a virtual machine the time that others took from it is in it too.
func asleep(p Profile) []Sample {
	rest := time.Duration(p.Processors)*p.Duration - p.Total()
	if ticks := int64(rest / p.Period); ticks > 0 {
		return []Sample{{Space: Elsewhere, Process: idleName, Idle: true, Ticks: ticks}}
	}
	return nil
}

// Close lets go of all that the profiler holds. It is idempotent.
func (p *Profiler) Close() error {
	errs := gather.Each(p.links, func(l link.Link) error { return l.Close() })
	for _, fd := range p.counts {
		errs = append(errs, unix.Close(fd))
	}
	p.links, p.counts = nil, nil
	if p.objects.Tick != nil {
		errs = append(errs, p.objects.Close())
		p.objects = tickObjects{}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("let go of the profiler: %w", err)
	}
	return nil
}

// depth is how many functions of a stack the kernel keeps, as in profile.bpf.c.
const depth = 127

// idleName is the name of the task that runs when no other does.
const idleName = "idle"

// softIRQs are the functions below which the kernel does the work of soft interrupts: their names since Linux 6.7 and before.
func softIRQs() []string {
	return []string{"handle_softirqs", "__do_softirq", "__softirqentry_text_start"}
}

// drain empties the maps into samples.
func (p *Profiler) drain(ctx context.Context, names map[uint32]string) (samples []Sample, lost int64, err error) {
	r := reader{stacks: p.objects.Stacks, kernel: p.kernel, programs: p.programs, names: names}
	var at tickPlace
	var ticks uint64
	var seen []tickPlace
	for all := p.objects.Ticks.Iterate(); all.Next(&at, &ticks); {
		seen = append(seen, at)
		s, err := r.sample(at)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, 0, err
		}
		s.Ticks = int64(ticks)
		samples = append(samples, s)
	}
	if err := p.empty(seen); err != nil {
		return nil, 0, err
	}
	lost, err = p.lost()
	return samples, lost, err
}

// empty makes room for the next profile.
func (p *Profiler) empty(seen []tickPlace) error {
	for _, at := range seen {
		if err := p.objects.Ticks.Delete(at); err != nil {
			return fmt.Errorf("empty the map of ticks: %w", err)
		}
		for _, stack := range []int32{at.Kernel, at.User} {
			if stack < 0 {
				continue
			}
			// Several places share a stack, which then is gone already.
			if err := p.objects.Stacks.Delete(uint32(stack)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("empty the map of stacks: %w", err)
			}
		}
	}
	return nil
}

// lost reads how many ticks there was no room for, and begins to count anew.
func (p *Profiler) lost() (int64, error) {
	var each []uint64
	if err := p.objects.Lost.Lookup(uint32(0), &each); err != nil {
		return 0, fmt.Errorf("read the number of lost ticks: %w", err)
	}
	sum := int64(0)
	for i, n := range each {
		sum += int64(n)
		each[i] = 0
	}
	if err := p.objects.Lost.Put(uint32(0), each); err != nil {
		return 0, fmt.Errorf("reset the number of lost ticks: %w", err)
	}
	return sum, nil
}

// reader turns what the eBPF program noted into samples.
type reader struct {
	stacks   *ebpf.Map
	kernel   symbols
	programs map[uint32]*program
	names    map[uint32]string
}

// sample is one place, without its ticks.
func (r *reader) sample(at tickPlace) (Sample, error) {
	s := Sample{Space: r.names[at.Space], Process: string(bytes.TrimRight(int8s(at.Name[:]), "\x00"))}
	switch {
	case at.Own != 0:
		s.Space = Kernel
	case s.Space == "":
		s.Space = Elsewhere
	}
	user, err := r.stack(at.User)
	if err != nil {
		return s, err
	}
	kernel, err := r.stack(at.Kernel)
	if err != nil {
		return s, err
	}
	for _, a := range user {
		s.Stack = append(s.Stack, Frame{Function: r.program(at.Process).name(a)})
	}
	if at.User == noRoom {
		s.Stack = append(s.Stack, Frame{Function: unknown})
	}
	for _, a := range kernel {
		s.Stack = append(s.Stack, Frame{Function: r.kernel.name(a), Kernel: true})
	}
	if at.Kernel == noRoom {
		s.Stack = append(s.Stack, Frame{Function: unknown, Kernel: true})
	}
	s.SoftIRQ = slices.ContainsFunc(s.Stack, func(f Frame) bool { return f.Kernel && slices.Contains(softIRQs(), f.Function) })
	if s.Idle = at.Process == 0 && !s.SoftIRQ; at.Process == 0 {
		s.Process, s.Space = idleName, Elsewhere
	}
	return s, nil
}

// noRoom is in place of a stack that fell on the place of another: EEXIST.
const noRoom = -17

// unknown is the function of a stack that was not kept.
const unknown = "[stack not kept]"

// stack reads a stack, the outermost function first. There is none for a negative number: a thread of the kernel has no
// program, and a program that computes is not in the kernel.
func (r *reader) stack(id int32) ([]uint64, error) {
	if id < 0 {
		return nil, nil
	}
	var raw [depth]uint64
	if err := r.stacks.Lookup(uint32(id), &raw); err != nil {
		return nil, fmt.Errorf("read stack %d: %w", id, err)
	}
	end := slices.Index(raw[:], 0)
	if end < 0 {
		end = depth
	}
	addresses := slices.Clone(raw[:end])
	slices.Reverse(addresses)
	return addresses, nil
}

func (r *reader) program(process uint32) *program {
	p := r.programs[process]
	if p == nil {
		p = readProgram(int(process))
		r.programs[process] = p
	}
	return p
}

func int8s(name []int8) []byte {
	return gather.Each(name, func(c int8) byte { return byte(c) })
}
