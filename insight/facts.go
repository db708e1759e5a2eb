package insight

import (
	"maps"
	"slices"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/unit"
)

// trialChecks are what is wrong with single trials, also of cells in no setting, in the order of builds and cells.
func trialChecks(all []batch) []Check {
	var checks []Check
	for _, batch := range all {
		for _, cell := range slices.Sorted(maps.Keys(batch)) {
			checks = append(checks, batch[cell].found...)
		}
	}
	return slices.Concat(checks, carryChecks(all))
}

// served are the daemons behind the trials that count, each once, by name: as the latest trial has them, with what they took at most and
// how often they had to be started again.
func served(trials *Summaries) []result.Service {
	last := map[string]result.Service{}
	for _, s := range trials.all {
		if s.failed != "" {
			continue
		}
		for _, service := range s.services {
			if had, known := last[service.Name]; known {
				service.Memory, service.Restarts = max(service.Memory, had.Memory), max(service.Restarts, had.Restarts)
			}
			last[service.Name] = service
		}
	}
	return gather.Each(slices.Sorted(maps.Keys(last)), func(name string) result.Service { return last[name] })
}

// wayKey tells what is proved of a network's way apart.
type wayKey struct {
	network   string
	placement result.Placement
	mtu       unit.Bytes
	family    result.Family
}

// wayProof is a proof in the making.
type wayProof struct {
	result.PathProof
	seen int               // the trial that Seen is of
	weak map[string][2]int // the first trial that lacks it, and its place there
}

// paths sum up which way the packets of each network went in each placement, in the order of the cells. Trials that failed before anything
// could be proved don't count.
func paths(cells []result.Cell, all []batch) []result.PathProof {
	ways := map[wayKey]*wayProof{}
	var order []*wayProof
	for _, c := range cells {
		k := wayKey{c.Network, c.Placement, c.Params.MTU, c.Params.Family}
		if ways[k] == nil {
			ways[k] = &wayProof{
				PathProof: result.PathProof{Network: k.network, Placement: k.placement, MTU: k.mtu, Family: k.family}, weak: map[string][2]int{},
			}
			order = append(order, ways[k])
		}
		for _, batch := range all {
			if s := batch[c.ID]; s != nil && (s.failed == "" || s.path != nil) {
				ways[k].note(s, without(c.Params))
			}
		}
	}
	var list []result.PathProof
	for _, w := range order {
		if w.Trials == 0 {
			continue
		}
		w.Weak = slices.SortedFunc(maps.Keys(w.weak), func(a, b string) int {
			x, y := w.weak[a], w.weak[b]
			return slices.Compare(x[:], y[:])
		})
		list = append(list, w.PathProof)
	}
	return list
}

// note counts a trial's proof; lacks is what it lacks where there is none.
func (w *wayProof) note(s *summary, lacks string) {
	w.Trials++
	weak := []string{lacks}
	if p := s.path; p != nil {
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
