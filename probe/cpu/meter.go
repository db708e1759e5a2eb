package cpu

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"netdelta/engine"
	"netdelta/internal/gather"
	"netdelta/internal/procfile"
	"netdelta/probe/pressure"
	"netdelta/result"
)

// Process is what serves: an agent.
type Process interface {
	PID() int
	// Local says whether PID is its number on this machine.
	Local() bool
}

// Meter reads the clocks around the bursts of one client and one server. It costs a few microseconds, outside of what is
// measured.
type Meter struct {
	kernel  *Kernel
	server  int   // the process; 0 is another machine's
	told    bool  // that machine tells its time
	cpus    []int // whose soft interrupts count; none is all
	threads []int // their ksoftirqd
	// daemons are processes that serve in the server's place, and spent what each of them had used when it was read last.
	daemons []int
	spent   []time.Duration
	// carriers are processes that do part of the network's work.
	carriers []int
	programs []int // that serve, besides the server's process
	delays   delays
	// followed is how many ends the delays are of.
	followed int
	lacks    []string
	started  bool
	before   reading
	// clientWaited is what the client's threads waited between the last Start and Stop, and carried what the carriers used.
	clientWaited, carried time.Duration
}

// reading is the state of the clocks at one moment.
type reading struct {
	server, kernel, carried time.Duration
	delayed                 [ends]time.Duration
}

// Spent is the processor time that one burst took, its warm-up included. What the meter lacks is zero.
type Spent struct {
	Client time.Duration // the measuring thread
	Server time.Duration // the server's process, and the daemons and other programs that it serves by
	Kernel time.Duration // the kernel, in no thread's name, and the processes that Carriers has named
	// Delayed is the time for which threads of either end were ready to run but had no processor, of those that the meter
	// follows. Unlike a burst's missing processor time it tells others on the processor from a network that lets both ends
	// wait: threads that sleep until a packet comes are not delayed.
	Delayed time.Duration
	// Busiest is how long one of those threads ran or was ready to, of all the one for which it was longest.
	Busiest time.Duration
}

// Meter makes a meter for the bursts of a server. The processors are those that its ends are pinned to; with none they are
// not pinned, and the kernel's work on the whole machine counts.
func (k *Kernel) Meter(server Process, cpus []int) *Meter {
	m := &Meter{kernel: k, cpus: slices.Compact(slices.Sorted(slices.Values(cpus)))}
	if server.Local() {
		m.server = server.PID()
	}
	why := k.lacks
	for cpu, pid := range k.threads {
		if len(cpus) == 0 || slices.Contains(cpus, cpu) {
			m.threads = append(m.threads, pid)
		}
	}
	if why == "" && k.stat == nil && len(m.threads) < len(m.cpus) {
		why = fmt.Sprintf("processor time of the kernel in no thread's name: not each of the processors %v has a thread ksoftirqd", m.cpus)
	}
	if why != "" {
		m.threads = nil
		m.lacks = append(m.lacks, why)
	}
	return m
}

// Told says whether the machine of a server whose clock can't be read from here tells its time, for its caller to fill in: Record then
// leaves room for it. What the kernel here does in no thread's name says nothing of that machine.
func (m *Meter) Told(told bool) {
	if m.told = told; told && m.hasKernel() {
		m.kernel, m.threads = Elsewhere(), nil
		m.lacks = append(m.lacks, m.kernel.lacks)
	}
}

// Programs has the meter count the programs that serve, besides the server's own process: those that these agents of this machine, of
// which the server is one, have started by now. Other agents count as a whole.
func (m *Meter) Programs(agents []Process) error {
	m.daemons, m.spent = nil, nil // which are among them
	pids := gather.Each(agents, func(a Process) int { return a.PID() })
	below, err := procfile.Below(pids...)
	if err != nil {
		return err
	}
	others := slices.DeleteFunc(pids, func(pid int) bool { return pid == m.server })
	m.programs = slices.Compact(slices.Sorted(slices.Values(append(others, below...))))
	return nil
}

// Carriers has the meter count processes that do part of the network's work, such as the ends of a userspace tunnel. Their time
// goes with the kernel's: it belongs to neither client nor server, and is no less the network's price.
func (m *Meter) Carriers(pids []int) { m.carriers = slices.Clone(pids) }

// Follow has the meter tell also how long threads of one end were ready to run without a processor. It may be called for both
// ends, whose threads must have run already. Where it can't be told, Lacks says so and Delays is false.
func (m *Meter) Follow(end Process, threads []int) {
	why := ""
	switch {
	case !end.Local():
		why = "it is counted on another machine"
	case len(threads) == 0:
		why = "its threads are not known"
	default:
		if end.PID() == m.server {
			m.serveBy(threads)
		}
		if m.delays.open(m.kernel.root, end.PID(), threads, m.followed) != nil {
			why = "the kernel does not tell; it needs CONFIG_SCHED_INFO" // one sentence for all ends
		}
	}
	if why == "" {
		m.followed++
		return
	}
	m.lacks = append(m.lacks, "time that an end waited for its processor: "+why)
}

// serveBy has the time of those processes among threads that are not the server's own count as the server's: daemons that it
// has started.
func (m *Meter) serveBy(threads []int) {
	own := filepath.Join(m.kernel.root, strconv.Itoa(m.server), "task")
	for _, id := range threads {
		if exists(filepath.Join(own, strconv.Itoa(id))) || slices.Contains(m.daemons, id) {
			continue
		}
		if used, err := m.kernel.clock(id); err == nil {
			m.daemons, m.spent = append(m.daemons, id), append(m.spent, used)
		}
	}
}

// Unfollow lets go of the threads of both ends, which have ended: Follow those that took their place.
func (m *Meter) Unfollow() error {
	m.followed = 0
	return m.delays.close()
}

// Delays says whether Spent.Delayed is known, of both ends.
func (m *Meter) Delays() bool { return m.followed == ends }

// Whole says whether all of Spent is known but for what the kernel does in no thread's name: of both ends, what they used and what they
// waited for.
func (m *Meter) Whole() bool { return m.Delays() && m.hasServer() }

// ends is how many a workload has.
const ends = 2

// The ends, in the order in which a session has them followed.
const clientEnd, serverEnd = 0, 1

// Close closes what Follow has opened.
func (m *Meter) Close() error { return m.delays.close() }

// Lacks says what the meter can't tell here, and why: a sentence for each part.
func (m *Meter) Lacks() []string {
	if m.hasServer() || m.told {
		return m.lacks
	}
	return append([]string{"processor time of the server: its clock can only be read on its own machine"}, m.lacks...)
}

func (m *Meter) hasServer() bool { return m.server != 0 }
func (m *Meter) hasKernel() bool { return m.kernel.stat != nil || len(m.threads) > 0 }

// read reads all clocks that there are.
func (m *Meter) read() (reading, error) {
	var now reading
	var err error
	if m.hasServer() {
		if now.server, err = m.kernel.clock(m.server); err != nil {
			return now, fmt.Errorf("processor time of the server: %w", err)
		}
	}
	for i, pid := range m.daemons {
		if used, err := m.kernel.clock(pid); err == nil { // one that has died uses no more
			m.spent[i] = used
		}
		now.server += m.spent[i]
	}
	used, err := procfile.FamilyCPU(m.programs)
	if err != nil {
		return now, fmt.Errorf("processor time of the programs that serve: %w", err)
	}
	now.server += used
	for _, pid := range m.threads {
		used, err := m.kernel.clock(pid)
		if err != nil {
			return now, fmt.Errorf("processor time of the kernel's threads: %w", err)
		}
		now.kernel += used
	}
	if m.kernel.stat != nil {
		times, err := m.kernel.stat.Read(m.cpus)
		if err != nil {
			return now, fmt.Errorf("processor time of the kernel: %w", err)
		}
		now.kernel = times.Softirq
	}
	for _, pid := range m.carriers {
		used, err := m.kernel.clock(pid)
		if err != nil {
			return now, fmt.Errorf("processor time of the network's own processes: %w", err)
		}
		now.carried += used
	}
	if now.delayed, err = m.delays.read(); err != nil {
		return now, fmt.Errorf("time that threads waited for a processor: %w", err)
	}
	return now, nil
}

// Start reads the clocks, right before a burst.
func (m *Meter) Start() error {
	var err error
	m.before, err = m.read()
	m.started = err == nil
	return err
}

// Stop reads the clocks again, right after the burst, and says what it took.
func (m *Meter) Stop(b engine.Burst) (Spent, error) {
	if !m.started {
		return Spent{}, errors.New("processor time of a burst: the meter was not started before it")
	}
	m.started = false
	after, err := m.read()
	if err != nil {
		return Spent{}, err
	}
	m.carried = after.carried - m.before.carried
	spent := Spent{Client: b.CPU, Server: max(after.server-m.before.server, 0), Kernel: after.kernel - m.before.kernel + m.carried}
	m.clientWaited = after.delayed[clientEnd] - m.before.delayed[clientEnd]
	for end, delayed := range after.delayed {
		spent.Delayed += delayed - m.before.delayed[end]
		spent.Busiest = max(spent.Busiest, m.delays.most[end])
	}
	return spent, nil
}

// Share makes of what was spent while a client's thread visited several servers what was spent on each: meters are the servers', in the
// order of the bursts and of what each found. The thread's waits for a processor, and what the kernel did in no thread's name, are
// parted by the time of the visits in which, as far as is known, neither end used the processor; where both share one, that is what
// these two things are.
func Share(meters []*Meter, bursts []engine.Burst, spent []Spent) {
	weights, all := make([]float64, len(spent)), 0.0
	for i, m := range meters {
		s := &spent[i]
		waited := max(s.Delayed-m.clientWaited, 0)
		weights[i] = max(bursts[i].Span-s.Client-s.Server-waited-m.carried, 0).Seconds()
		all += weights[i]
	}
	for i, m := range meters {
		s, part := &spent[i], 0.0
		if all > 0 {
			part = weights[i] / all
		}
		waited := time.Duration(float64(m.clientWaited) * part)
		s.Kernel = m.carried + time.Duration(float64(s.Kernel-m.carried)*part)
		s.Delayed = max(s.Delayed-m.clientWaited, 0) + waited
		s.Busiest = max(m.delays.most[serverEnd], s.Client+waited)
	}
}

// Record appends what a burst took, and what it did, to the columns of its trial: a row to each column that the meter has
// figures for. It has to be called for every burst of the trial.
func (m *Meter) Record(into *result.Bursts, b engine.Burst, s Spent) {
	into.ClientCPU = append(into.ClientCPU, s.Client.Nanoseconds())
	if m.hasServer() || m.told {
		into.ServerCPU = append(into.ServerCPU, s.Server.Nanoseconds())
	}
	if m.hasKernel() {
		into.KernelCPU = append(into.KernelCPU, s.Kernel.Nanoseconds())
	}
	into.Work = append(into.Work, b.Work)
	into.Moved = append(into.Moved, b.Moved)
}

const (
	// stalled is how long a burst waits for nothing but packets at least that is taken for one in a network that stalls:
	// what package stalls calls so.
	stalled = 100 * time.Millisecond
	// starved is how long others keep a burst waiting at least that could be taken for a stall but for them.
	starved = stalled / 2
)

// Preempted says whether others took the processor away from a burst for so long that its figures can't be trusted. usual
// has calibrated on the bursts of the same cell, and takes this one in; it has to be given every burst. least is the share of its
// time that a burst must miss at least; 0 is a tenth.
//
// It goes by the time for which the ends were ready to run and did not, and so is not deceived by a network that lets nothing
// through: its ends sleep. A burst that waited for packets for most of a long time is not called preempted, whatever else
// happened, so that no stall is hidden by being left out. Where the kernel does not tell (see Delays), the time that both ends
// used has to do, if they share a processor; then a long wait can't be explained, and is not called preempted either.
func (m *Meter) Preempted(b engine.Burst, s Spent, usual *pressure.Share, least float64) bool {
	if b.Span <= 0 || !m.Delays() && (len(m.cpus) != 1 || !m.hasServer()) {
		return false
	}
	used := s.Client + s.Server
	if !m.Delays() {
		disturbed := usual.Disturbed(float64(used)/float64(b.Span), least)
		return disturbed && b.Span-used < stalled
	}
	disturbed := usual.Disturbed(1-float64(s.Delayed)/float64(b.Span), least)
	// While one end waits for the other's turn on the processor, that one uses the time.
	others := s.Delayed - used
	silent := b.Span - used - s.Delayed
	switch {
	case silent >= stalled && silent >= b.Span/2:
		return false
	case others >= starved && others >= b.Span/2:
		return true // whatever is usual
	}
	return disturbed
}
