// Package cause finds what the kernel's own evidence says of a slow or lossy path: counters, reasons of drops, marks of timers in the
// distribution, and settings that differ between ends that should be alike. It is pure: package experiment/causes reads.
//
// A finding needs a comparison. A counter counts only as far as it moves more for each transaction than on the path that it is held
// against, so that what moves on a healthy path, too, is none.
package cause

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat/distuv"

	"netdelta/probe/evidence"
)

// Evidence is one thing that was seen more often than on the other path.
type Evidence struct {
	// What is the counter, "dropped NETFILTER_DROP", or "latency about 40ms"; Where is the namespace, and the device where there is one.
	What        string  `json:"what"`
	Where       string  `json:"where"` // Count is how often it was counted; PerThousand for each 1,000 transactions, and Other on the path that it is held against.
	Count       uint64  `json:"count"`
	PerThousand float64 `json:"per_thousand"`
	Other       float64 `json:"per_thousand_on_healthy"`
}

// Finding is a symptom with what shows it.
type Finding struct {
	Symptom  Symptom    `json:"symptom"`
	Evidence []Evidence `json:"evidence"`
	// Differs are settings that differ and may be the reason.
	Differs []evidence.Difference `json:"differs,omitempty"`
}

// What makes a difference of counts a finding.
const (
	// leastCounts is how many there are at least: fewer may be anything.
	leastCounts = 3
	// chance is the probability, for each comparison, that so many are seen although both paths count alike. A symptom is compared a few
	// dozen times in a run, so that one in a hundred runs of healthy paths has a finding by chance. What names a place and a reason (rank 1)
	// stands still on a healthy path: there chanceOfRare, for what a few stray packets do, is enough.
	chance       = 1e-5
	chanceOfRare = 1e-2
	// leastTimes is how many times as often as on the other path a symptom must be counted, unless it says otherwise.
	leastTimes = 3
)

// Find says what evidence speaks for on a path, against another one that is held to be healthy: what explains most first. Symptoms that
// follow from others (retransmits, after drops) come after them.
func Find(path, healthy evidence.Path, symptoms []Symptom) []Finding {
	own, other, seen := total(path.Visits...), total(healthy.Visits...), seenIn(path.Visits)
	var all []Finding
	for _, s := range symptoms {
		f := Finding{Symptom: s}
		for _, key := range slices.SortedFunc(maps.Keys(own), byCount(own)) {
			if !s.reads(key) {
				continue
			}
			e := compared(key, own[key], path.Transactions, other[counterpart(key, other)], healthy.Transactions)
			if e.stands(s, path.Transactions, healthy.Transactions) && oftenEnough(seen[key], len(path.Visits)) {
				f.Evidence = append(f.Evidence, e)
			}
		}
		f.Evidence = append(f.Evidence, marks(s, path, healthy)...)
		for _, d := range path.Ends {
			if s.names(d) && !slices.ContainsFunc(healthy.Ends, func(o evidence.Difference) bool { return o.Setting == d.Setting && o.Was == d.Was && o.Is == d.Is }) {
				f.Differs = append(f.Differs, d)
			}
		}
		if len(f.Evidence) > 0 || s.Setting && len(f.Differs) > 0 {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Symptom.Rank, b.Symptom.Rank), cmp.Compare(b.most(), a.most()))
	})
	return all
}

// most is how much of a finding's evidence there is for each 1,000 transactions.
func (f Finding) most() float64 {
	most := 0.0
	for _, e := range f.Evidence {
		most = max(most, e.PerThousand)
	}
	return most
}

// key is where something was counted.
type key struct{ what, where string }

// seenIn counts in how many visits each thing was counted.
func seenIn(visits []evidence.Visit) map[key]int {
	all := map[key]int{}
	for _, v := range visits {
		for k := range total(v) {
			all[k]++
		}
	}
	return all
}

// oftenEnough says whether so many of the visits are a third of them, and two at least: one visit may have met something else that the
// machine did.
func oftenEnough(n, visits int) bool { return n >= min(2, visits) && 3*n >= visits }

// total sums visits.
func total(visits ...evidence.Visit) map[key]uint64 {
	all := map[key]uint64{}
	for _, v := range visits {
		for space, counters := range v.Counters {
			for name, n := range counters {
				what, where := name, space
				if device, counter, found := strings.Cut(name, " "); found { // of a device
					what, where = counter, space+" "+device
				}
				all[key{what, where}] += n
			}
		}
		for _, d := range v.Drops {
			all[key{droppedPrefix + d.Reason, strings.TrimSpace(d.Space + " " + d.Device)}] += d.Packets
		}
	}
	return all
}

// droppedPrefix begins what is counted of a reason for drops.
const droppedPrefix = "dropped "

// counterpart is where the other path counts the same: in the same place, or where devices have other names, in the same namespace in the
// place that counts most of it.
func counterpart(k key, other map[key]uint64) key {
	if _, same := other[k]; same {
		return k
	}
	space, _, _ := strings.Cut(k.where, " ")
	best := k
	for o, n := range other {
		if theirs, _, _ := strings.Cut(o.where, " "); o.what == k.what && theirs == space && (best == k || n > other[best]) {
			best = o
		}
	}
	return best
}

func byCount(counts map[key]uint64) func(a, b key) int {
	return func(a, b key) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(a.what, b.what), strings.Compare(a.where, b.where))
	}
}

func compared(k key, n uint64, of int64, other uint64, otherOf int64) Evidence {
	return Evidence{What: k.what, Where: k.where, Count: n, PerThousand: perThousand(n, of), Other: perThousand(other, otherOf)}
}

func perThousand(n uint64, of int64) float64 {
	if of <= 0 {
		return 0
	}
	return 1000 * float64(n) / float64(of)
}

// stands says whether evidence is more than chance, more than the symptom needs, and more than on the other path.
func (e Evidence) stands(s Symptom, own, other int64) bool {
	if e.Count < leastCounts || e.PerThousand < s.Least || e.PerThousand < cmp.Or(s.Times, leastTimes)*e.Other || own <= 0 {
		return false
	}
	if other <= 0 {
		return true // there is nothing to hold it against but rest, at which these counters stand still
	}
	others := math.Round(e.Other * float64(other) / 1000)
	share := float64(own) / float64(own+other)
	least := chance
	if s.Rank == 1 {
		least = chanceOfRare
	}
	split := distuv.Binomial{N: float64(e.Count) + others, P: share} // of the events that both paths had
	return split.Survival(float64(e.Count)-1) < least
}

// marks are the marks of a symptom's timers in the distribution of a path.
func marks(s Symptom, path, healthy evidence.Path) []Evidence {
	own, theirs := bucketsOf(path.Histogram), bucketsOf(healthy.Histogram)
	var all []Evidence
	for _, timer := range s.Timers {
		at := float64(timer)
		n, is := mode(own, at)
		if !is {
			continue
		}
		other, _ := mode(theirs, at)
		e := compared(key{"latency about " + timer.String(), "client"}, n, path.Transactions, other, healthy.Transactions)
		if e.stands(s, path.Transactions, healthy.Transactions) {
			all = append(all, e)
		}
	}
	return all
}
