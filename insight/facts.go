package insight

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// facts are what trials say apart from their figures, put together while settings are held, which they are in no order.
type facts struct {
	basis        *basis
	ranks        [][]rank // by setting, as all that follows
	links        [][]result.LinkShare
	replications [][]result.Replicated
	disks        []map[string]time.Duration // by cell, without a network

	lock     sync.Mutex // of what settings share
	ways     map[wayKey]*wayProof
	services map[string]servedLast
}

// servedLast is a daemon as the latest trial has it.
type servedLast struct {
	result.Service
	index int // of the trial
}

func newFacts(b *basis) *facts {
	n := len(b.sets)
	f := &facts{
		basis: b, ranks: make([][]rank, n), links: make([][]result.LinkShare, n), replications: make([][]result.Replicated, n),
		disks: make([]map[string]time.Duration, n), ways: map[wayKey]*wayProof{}, services: map[string]servedLast{},
	}
	return f
}

// add takes the facts of a setting that is held.
func (f *facts) add(t *cellSet) {
	i, all := t.at, f.basis.all
	f.disks[i] = map[string]time.Duration{}
	for _, c := range t.listed {
		f.look(c.ID)
		f.prove(c)
		if disk := diskOf(c.ID, all); disk > 0 {
			f.disks[i][c.ID] = disk
		}
	}
	f.links[i], f.replications[i] = links(t.listed, all), replications(t.listed, all)
	if len(t.cells) > 0 && t.baseline != nil {
		f.ranks[i] = t.ranks(f.basis.metricsOf(t)[0], all, f.basis.options)
	}
}

// look looks at the trials of a cell by themselves.
func (f *facts) look(cell string) {
	for _, batch := range f.basis.all {
		s := batch[cell]
		if s == nil {
			continue
		}
		s.found, s.carry = s.checks(), s.trial.CarryOver
		if s.trial.Failed != "" {
			s.carry = nil
		}
		f.serve(s)
	}
}

// checks are what is wrong with single trials, also of cells in no setting, in the order of builds and cells.
func (f *facts) checks() []Check {
	for _, cell := range f.basis.trials.without(f.basis.cells) {
		release := f.basis.trials.hold(cell)
		f.look(cell)
		release()
	}
	var checks []Check
	for _, batch := range f.basis.all {
		for _, cell := range slices.Sorted(maps.Keys(batch)) {
			checks = append(checks, batch[cell].found...)
		}
	}
	return slices.Concat(checks, carryChecks(f.basis.all))
}

// diskOf is the median latency of the storage behind a cell; see the function.
func (f *facts) diskOf(cell string) time.Duration {
	for _, disks := range f.disks {
		if d := disks[cell]; d > 0 {
			return d
		}
	}
	return 0
}

// inOrder flattens what settings have, each entry of a cell, in the order of the run's cells.
func inOrder[T any](cells []result.Cell, parts [][]T, cell func(T) string) []T {
	place := make(map[string]int, len(cells))
	for i, c := range cells {
		place[c.ID] = i
	}
	all := slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(place[cell(a)], place[cell(b)]) })
	return all
}

// serve counts the daemons behind a trial that counts, each once, by name: what they took at most, and how often they had to be
// started again.
func (f *facts) serve(s *summary) {
	if s.trial.Failed != "" || len(s.trial.Services) == 0 {
		return
	}
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, service := range s.trial.Services {
		now := servedLast{service, s.index}
		if had, known := f.services[service.Name]; known {
			if had.index > now.index {
				now.Service, now.index = had.Service, had.index
			}
			now.Memory, now.Restarts = max(service.Memory, had.Memory), max(service.Restarts, had.Restarts)
		}
		f.services[service.Name] = now
	}
}

// served are the daemons, by name.
func (f *facts) served() []result.Service {
	var all []result.Service
	for _, name := range slices.Sorted(maps.Keys(f.services)) {
		all = append(all, f.services[name].Service)
	}
	return all
}

// wayKey tells what is proved of a network's way apart.
type wayKey struct {
	network   string
	placement result.Placement
	mtu       unit.Bytes
	family    result.Family
}

func wayOf(c result.Cell) wayKey {
	return wayKey{c.Network, c.Placement, c.Params.MTU, c.Params.Family}
}

// wayProof is a proof in the making.
type wayProof struct {
	result.PathProof
	seen int               // the trial that Seen is of
	weak map[string][2]int // the first trial that lacks it, and its place there
}

// prove takes the proofs of a cell. Trials that failed before anything could be proved don't count.
func (f *facts) prove(c result.Cell) {
	f.lock.Lock()
	defer f.lock.Unlock()
	for _, batch := range f.basis.all {
		s := batch[c.ID]
		if s == nil || s.trial.Failed != "" && s.trial.Path == nil {
			continue
		}
		k := wayOf(c)
		if f.ways[k] == nil {
			f.ways[k] = &wayProof{
				PathProof: result.PathProof{Network: k.network, Placement: k.placement, MTU: k.mtu, Family: k.family}, weak: map[string][2]int{},
			}
		}
		f.ways[k].note(s, without(c.Params))
	}
}

// note counts a trial's proof; lacks is what it lacks where there is none.
func (w *wayProof) note(s *summary, lacks string) {
	w.Trials++
	weak := []string{lacks}
	if p := s.trial.Path; p != nil {
		weak = p.Weak
		if p.OK {
			w.Proved++
		}
		if w.Seen == nil || p.OK && !w.Seen.OK || p.OK == w.Seen.OK && s.index > w.seen {
			w.Seen, w.seen = p, s.index
		}
	}
	for i, what := range weak {
		at := [2]int{s.index, i}
		if first, known := w.weak[what]; !known || slices.Compare(at[:], first[:]) < 0 {
			w.weak[what] = at
		}
	}
}

// paths sum up which way the packets of each network went in each placement, in the order of the cells.
func (f *facts) paths() []result.PathProof {
	var all []result.PathProof
	done := map[wayKey]bool{}
	for _, c := range f.basis.cells {
		k := wayOf(c)
		w := f.ways[k]
		if w == nil || done[k] {
			continue
		}
		done[k] = true
		w.Weak = slices.SortedFunc(maps.Keys(w.weak), func(a, b string) int {
			x, y := w.weak[a], w.weak[b]
			return slices.Compare(x[:], y[:])
		})
		all = append(all, w.PathProof)
	}
	return all
}
