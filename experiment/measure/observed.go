package measure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"netdelta/agent"
	"netdelta/internal/gather"
	"netdelta/internal/softirq"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// Observed is the environment as observed on the testbeds, once for each network: devices and kernel settings, and what could not be
// observed. It is safe for concurrent use.
type Observed struct {
	mu         sync.Mutex
	links      []result.Link
	sysctls    map[string]string
	networks   map[string]bool
	notes      []string // on what could not be observed
	said       []string // by testbeds
	broken     []testbed.BrokenError
	versions   map[string]string
	nodes      map[string]result.Environment
	interrupts map[string][]uint64 // as result.Server.InterruptCounts, by node
}

func newObserved() *Observed {
	return &Observed{networks: map[string]bool{}, versions: map[string]string{}, nodes: map[string]result.Environment{}, interrupts: map[string][]uint64{}}
}

// unknown notes what can't be told here.
func (o *Observed) unknown(sentences []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range sentences {
		o.notes = appendOnce(o.notes, "not known here: "+s)
	}
}

// Say keeps sentences of and on testbeds for the run's notes.
func (o *Observed) Say(sentences ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = appendOnce(o.said, sentences...)
}

// Fail keeps what an error says of a network that does not carry what a workload sends, for the run's findings.
func (o *Observed) Fail(err error) {
	broken, is := errors.AsType[*testbed.BrokenError](err)
	if !is {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := *broken
	kept.Tried = "" // it differs from build to build
	o.broken = gather.Once(o.broken, kept)
}

// Notes adds to the notes of a run, each once.
func (o *Observed) Notes(known []string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return appendOnce(appendOnce(known, o.notes...), o.said...)
}

func appendOnce(known []string, more ...string) []string {
	for _, s := range more {
		known = gather.Once(known, s)
	}
	return known
}

// meet asks an agent on another machine what that is, once for each node.
func (o *Observed) meet(ctx context.Context, a *agent.Agent) error {
	node := a.Pod().Node()
	o.mu.Lock()
	_, known := o.nodes[node]
	o.mu.Unlock()
	if known {
		return nil
	}
	about, err := a.Machine(ctx)
	if err != nil {
		return err
	}
	o.mu.Lock()
	o.nodes[node] = about
	o.mu.Unlock()
	if about.SoftirqTime == string(softirq.Separate) {
		o.unknown([]string{fmt.Sprintf("processor time of soft interrupts of node %s: its kernel accounts for them apart", node)})
	}
	return nil
}

// interrupted adds how many interrupts each processor of a node took from one time to another.
func (o *Observed) interrupted(node string, before, after []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for cpu, n := range after {
		if cpu == len(o.interrupts[node]) {
			o.interrupts[node] = append(o.interrupts[node], 0)
		}
		if cpu < len(before) && n > before[cpu] {
			o.interrupts[node][cpu] += n - before[cpu]
		}
	}
}

// Nodes are the machines of pods elsewhere, by node.
func (o *Observed) Nodes() map[string]result.Environment {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.nodes)
}

// Look records a testbed that has just been built or swapped, under the study's name of its network, unless that was seen before.
func (o *Observed) Look(ctx context.Context, tb testbed.Testbed, network string) error {
	shows := tb.Instruments()
	if shows.Notes != nil {
		o.Say(shows.Notes()...)
	}
	var versions map[string]string
	if shows.Versions != nil {
		var err error
		if versions, err = shows.Versions(); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.versions, versions)
	if o.networks[network] {
		return nil
	}
	links, err := tb.Links(ctx)
	if err != nil {
		return err
	}
	if o.sysctls == nil {
		if o.sysctls, err = tb.Sysctls(ctx); err != nil {
			return err
		}
	}
	o.networks[network] = true
	for i := range links {
		if links[i].Network == tb.Spec().Network {
			links[i].Network = network
		}
	}
	o.links = append(o.links, links...)
	return nil
}

// Environment adds what was observed to what is known of the machine. What a resumed run recorded before stays.
func (o *Observed) Environment(e result.Environment) result.Environment {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.links) > 0 {
		e.Links, e.Sysctls = o.links, o.sysctls
	}
	e.Findings = slices.Clone(e.Findings)
	for _, b := range o.broken {
		networks := gather.Each(gather.Where(o.broken, func(other testbed.BrokenError) bool { return other.Says == b.Says }),
			func(other testbed.BrokenError) string { return other.Network })
		e.Findings = gather.Once(e.Findings, result.Finding{Topic: result.TopicBroken, Says: b.Says + ", over network " + strings.Join(networks, ", "), Fix: b.Fix})
	}
	if len(o.versions) > 0 {
		known := maps.Clone(o.versions)
		maps.Copy(known, e.Versions)
		e.Versions = known
	}
	e.Servers = slices.Clone(e.Servers)
	for i := range e.Servers {
		e.Servers[i].InterruptCounts = o.interrupts[network.InNode(i).String()]
	}
	return e
}

// configAudit watches the configuration of one testbed while its sessions are measured.
type configAudit struct {
	began time.Time // the run, from which bursts count
	watch testbed.ConfigWatch
	drops []result.Drop // before the first round
}

// beginConfigAudit begins to watch a testbed. Where it can't, the run says so.
func (m *Context) beginConfigAudit(ctx context.Context, tb testbed.Testbed) *configAudit {
	begin := tb.Instruments().WatchConfig
	if begin == nil {
		return nil
	}
	watch, err := begin(ctx)
	if err != nil {
		if ctx.Err() == nil {
			m.Observed.unknown([]string{fmt.Sprintf("what changes in the configuration while it is measured: %v", err)})
		}
		return nil
	}
	return &configAudit{watch: watch}
}

// endConfigAudits gives each session what changed in the configuration of its testbed, and marks the bursts that were
// measured with it.
func endConfigAudits(ctx context.Context, sessions []*Session) error {
	type found struct {
		changes []result.ConfigChange
		drops   []result.Drop
	}
	known := map[*configAudit]*found{}
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU())
	for _, s := range sessions {
		if a := s.config; a != nil && known[a] == nil {
			f := &found{}
			known[a] = f
			group.Go(func() error {
				changes, err := a.watch.End()
				drops, unread := dropsOf(ctx, s.testbed)
				f.changes, f.drops = changes, since(a.drops, drops)
				return errors.Join(err, unread, a.watch.Close())
			})
		}
	}
	err := group.Wait()
	for _, s := range sessions {
		if s.config != nil {
			s.reconfigured(known[s.config].changes, s.config.began)
			s.drops = known[s.config].drops
		}
	}
	return err
}

// startConfigAudits says when the first round begins of a run that began at a time, and counts what was dropped before.
func startConfigAudits(ctx context.Context, sessions []*Session, began time.Time) (err error) {
	for _, s := range sessions {
		if a := s.config; a != nil && a.began.IsZero() {
			a.began = began
			if a.drops, err = dropsOf(ctx, s.testbed); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropsOf is what a testbed has dropped so far, nothing where it can't tell.
func dropsOf(ctx context.Context, tb testbed.Testbed) ([]result.Drop, error) {
	read := tb.Instruments().Drops
	if read == nil {
		return nil, nil
	}
	return read(ctx)
}

// since is what was dropped between two readings.
func since(before, after []result.Drop) []result.Drop {
	type place struct{ device, queue string }
	was := map[place]uint64{}
	for _, d := range before {
		was[place{d.Device, d.Queue}] = d.Packets
	}
	var all []result.Drop
	for _, d := range after {
		if n := was[place{d.Device, d.Queue}]; d.Packets > n {
			d.Packets -= n
			all = append(all, d)
		}
	}
	return all
}

// close ends the watch of a session that is given up.
func (a *configAudit) close() error {
	if a == nil {
		return nil
	}
	return a.watch.Close()
}

// reconfigured records changes, and marks the bursts during which a setting was not what it was at first.
func (r *recorder) reconfigured(changes []result.ConfigChange, began time.Time) {
	type setting struct{ device, name string }
	first := map[setting]string{}
	for _, c := range changes {
		key := setting{c.Device, c.Setting}
		if _, known := first[key]; !known {
			first[key] = c.Was
		}
	}
	for i, c := range changes {
		key := setting{c.Device, c.Setting}
		from, to := r.burstsSince(c.At, began), len(r.bursts.Round)
		c.After, c.Before = r.roundsAround(from, c.At)
		r.changes = append(r.changes, c)
		if c.Is == first[key] {
			continue
		}
		for _, later := range changes[i+1:] {
			if (setting{later.Device, later.Setting}) == key {
				to = min(to, r.burstsSince(later.At, began)+1)
				break
			}
		}
		for b := from; b < to && b < len(r.bursts.Disturbed); b++ {
			if r.bursts.Disturbed[b] == "" {
				r.bursts.Disturbed[b] = result.Reconfigured
			}
		}
	}
}

// burstsSince is the first burst that was not over at a time: all where it is not known.
func (r *recorder) burstsSince(at, began time.Time) int {
	if at.IsZero() {
		return 0
	}
	since := at.Sub(began).Nanoseconds()
	for i, start := range r.bursts.Start {
		if i < len(r.bursts.Span) {
			start += r.bursts.Span[i]
		}
		if start >= since {
			return i
		}
	}
	return len(r.bursts.Start)
}

// roundsAround are the rounds before and of a burst, -1 where there is none or the time is not known.
func (r *recorder) roundsAround(burst int, at time.Time) (after, before int) {
	after, before = -1, -1
	if at.IsZero() {
		return after, before
	}
	if burst > 0 {
		after = r.bursts.Round[burst-1]
	}
	if burst < len(r.bursts.Round) {
		before = r.bursts.Round[burst]
	}
	return after, before
}
