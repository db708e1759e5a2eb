// Package bounds tells what kept a trial from doing more: a link, the processors, the disk, or nothing but that it waits for
// answers.
//
// A resource that is in use for a share u of the time leaves room for at most 1/u as much work, whatever else is made faster.
// From a share of 0.9 on (Full) that is a ninth more, less than most differences that one asks about: the resource is then what
// bounds, and what a network costs is what it takes of this resource. Below it no single resource does. Where two are full, the
// one named first here is the answer, since its share can be trusted more:
//
//   - link: what the devices of the underlay that are held to a rate sent during the bursts, by their counters, against the
//     rate; the fullest of them counts, in its one direction. Without a rate there is no share.
//   - disk: how many operations there were, against how many the server's storage does without a network, which the server has
//     measured before its clients came.
//   - cpu: how long the processors on which the workload may run were not idle, by whatever programs: processors that others
//     use are no less gone. The kernel counts this in ticks of 10 ms, so that it holds for bursts of 100 ms and above. For
//     shorter ones it is the time for which the threads of both ends and the kernel on their behalf ran, or were ready to.
//     Next to it stands the busiest thread of the two ends, against one processor: many idle processors don't help one thread.
//   - latency: none of them. What the workload does hangs on how long it waits for answers, and so on what a network adds to a
//     round trip.
//
// All is read outside of the bursts. Reading the counters of every device takes a while, so that it is done for the first few
// bursts of a trial and for the longer ones.
package bounds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/engine"
	"netdelta/internal/procfile"
	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/probe/procstat"
	"netdelta/result"
	"netdelta/testbed"
)

// Full is the share from which a resource is what bounds a workload. See the package's comment.
const Full = 0.9

const (
	// long is how long a burst is at least of which the kernel's ticks say something.
	long = 10 * procfile.Tick
	// counted is in how many of a trial's bursts the devices are read where bursts are shorter.
	counted = 16
)

// Meter adds up what is in use while the bursts of one trial run. It is for one goroutine. A nil meter does nothing, and has
// no answer.
type Meter struct {
	local  bool             // the processors are this machine's
	stat   *procstat.Reader // nil until the first burst
	cpus   [][]int          // sets of processors, each of which may be what bounds; an empty one is all
	look   testbed.Observer // nil where no link has a rate
	shaped []network.Shape
	bursts []burst
	before reading
	// links says that before has the links' counters.
	links bool
}

// reading is the state of things at one moment.
type reading struct {
	at    time.Time
	times []procstat.Times // of each set of processors
	sent  []uint64         // by the shaped devices
}

// burst is what was in use in one.
type burst struct {
	of     engine.Burst
	spent  cpu.Spent
	own    bool          // spent is known of both ends
	window time.Duration // between the readings
	sets   []set
	sent   []uint64 // nil where it was not read
}

// set is how long the processors of a set were idle, and how many they are.
type set struct {
	idle       time.Duration
	processors int
}

// New makes a meter for a workload between pods of a testbed that is pinned to the given processors; none means that it may
// run on all. A program that makes or serves the load may leave its end unpinned or have more than one thread: then all
// processors may be what bounds, too. Processors are looked at where both ends are on this machine.
func New(tb testbed.Testbed, cpus []int, programs, local bool) *Meter {
	m := &Meter{cpus: [][]int{cpus}, local: local}
	if programs && len(cpus) > 0 {
		m.cpus = append(m.cpus, nil)
	}
	if o := tb.Instruments().Observer; o != nil {
		for _, s := range network.Of[network.Shape](o.Plan().Underlay) {
			if s.Rate > 0 {
				m.look, m.shaped = o, append(m.shaped, s)
			}
		}
	}
	return m
}

// Close closes what the meter reads from. It is idempotent.
func (m *Meter) Close() error {
	if m == nil || m.stat == nil {
		return nil
	}
	err := m.stat.Close()
	m.stat = nil
	return err
}

// Begin reads what is in use, right before a burst of about the given length.
func (m *Meter) Begin(ctx context.Context, length time.Duration) error {
	if m == nil {
		return nil
	}
	if m.local && m.stat == nil {
		var err error
		if m.stat, err = procstat.Open("/proc"); err != nil {
			return fmt.Errorf("looking at what bounds a burst: %w", err)
		}
	}
	m.links = m.look != nil && (length >= long || len(m.bursts) < counted)
	var err error
	m.before, err = m.read(ctx)
	return err
}

// End reads it again, right after the burst. own says that the time spent is known of both ends.
func (m *Meter) End(ctx context.Context, b engine.Burst, spent cpu.Spent, own bool) error {
	if m == nil {
		return nil
	}
	after, err := m.read(ctx)
	if err != nil {
		return err
	}
	used := burst{of: b, spent: spent, own: own, window: after.at.Sub(m.before.at)}
	for i, t := range after.times {
		used.sets = append(used.sets, set{t.Idle - m.before.times[i].Idle, t.Processors})
	}
	for i := range after.sent {
		used.sent = append(used.sent, after.sent[i]-min(after.sent[i], m.before.sent[i]))
	}
	m.bursts = append(m.bursts, used)
	return nil
}

// Skip takes the place of End after a burst that failed: the meter has the bursts of the trial, in the same order.
func (m *Meter) Skip() {
	if m != nil {
		m.bursts = append(m.bursts, burst{})
	}
}

// read reads all that there is.
func (m *Meter) read(ctx context.Context) (reading, error) {
	now := reading{at: time.Now()}
	var errStat, errLinks error
	for _, cpus := range m.cpus {
		if m.stat == nil || errStat != nil {
			break
		}
		var times procstat.Times
		times, errStat = m.stat.Read(cpus)
		now.times = append(now.times, times)
	}
	if m.links {
		var counters map[network.Device]testbed.Counters
		counters, errLinks = m.look.Counters(ctx)
		for _, s := range m.shaped {
			now.sent = append(now.sent, counters[s.Device].SentBytes)
		}
	}
	if err := errors.Join(errStat, errLinks); err != nil {
		return now, fmt.Errorf("looking at what bounds a burst: %w", err)
	}
	return now, nil
}

// Bound says what bounded the trial, by its bursts that were not disturbed. disk is what the server's storage does by
// itself, nil for a workload without. It is nil where that is unknown: no burst counts, or nothing could be read.
func (m *Meter) Bound(disturbed []string, disk *result.Disk) *result.Bound {
	if m == nil {
		return nil
	}
	var good []burst
	for i, b := range m.bursts {
		if b.of.Duration > 0 && (i >= len(disturbed) || disturbed[i] == "") {
			good = append(good, b)
		}
	}
	if len(good) == 0 {
		return nil
	}
	found := result.Bound{Link: m.link(good), CPU: processors(good), Disk: storage(good, disk)}
	switch {
	case found.Link >= Full:
		found.By = result.BoundLink
	case found.Disk >= Full:
		found.By = result.BoundDisk
	case found.CPU >= Full:
		found.By = result.BoundCPU
	case found.CPU < 0:
		return nil // it may be the processors
	default:
		found.By = result.BoundLatency
	}
	return &found
}

// unknown is a share that could not be read.
const unknown = -1

// link is the share that was in use of the fullest link's rate.
func (m *Meter) link(bursts []burst) float64 {
	sum := make([]float64, len(m.shaped))
	took := 0.0
	for _, b := range bursts {
		if b.sent == nil {
			continue
		}
		for i, bytes := range b.sent {
			sum[i] += float64(bytes)
		}
		took += onWire(b.of).Seconds()
	}
	if took == 0 {
		return unknown
	}
	most := 0.0
	for i, s := range m.shaped {
		const bits = 8
		most = max(most, sum[i]*bits/took/float64(s.Rate))
	}
	return min(most, 1)
}

// onWire is how long a burst kept its links: the measured part, and as much more as there was work outside of it. A program
// that makes the load may take long to start and to end, and sends nothing meanwhile.
func onWire(b engine.Burst) time.Duration {
	done, all := b.Transactions, b.Work
	if b.Bytes > 0 && b.Moved > b.Bytes {
		done, all = b.Bytes, b.Moved
	}
	if done <= 0 || all <= done {
		return max(b.Duration, b.Span)
	}
	return time.Duration(float64(b.Duration) * float64(all) / float64(done))
}

// processors is the share that was in use of the processors, or of one of them by the busiest thread.
func processors(bursts []burst) float64 {
	var span, used, busiest, window time.Duration
	known := true
	sets := make([]set, len(bursts[0].sets))
	for _, b := range bursts {
		span += max(b.of.Span, b.of.Duration)
		window += b.window
		known = known && b.own
		used += b.spent.Client + b.spent.Server + b.spent.Kernel + b.spent.Delayed
		busiest += b.spent.Busiest
		for i := range min(len(sets), len(b.sets)) {
			sets[i].idle += b.sets[i].idle
			sets[i].processors = b.sets[i].processors
		}
	}
	share := float64(unknown)
	for _, s := range sets {
		switch n := float64(s.processors); {
		case n == 0:
		case span >= long*time.Duration(len(bursts)):
			share = max(share, 1-float64(s.idle)/(n*float64(window)), 0)
		case known:
			share = max(share, float64(used)/(n*float64(span)))
		}
	}
	if share == unknown {
		return unknown
	}
	return min(max(share, float64(busiest)/float64(span)), 1)
}

// storage is the share of what a disk does by itself.
func storage(bursts []burst, disk *result.Disk) float64 {
	if disk == nil || disk.Rate <= 0 {
		return unknown
	}
	operations, took := int64(0), time.Duration(0)
	for _, b := range bursts {
		operations += b.of.Transactions
		took += b.of.Duration
	}
	return min(float64(operations)/took.Seconds()/disk.Rate, 1)
}
