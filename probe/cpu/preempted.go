package cpu

import (
	"time"

	"netdelta/engine"
	"netdelta/probe/pressure"
)

const (
	// stalled is how long a burst waits for nothing but packets at least that is taken for one in a network that stalls:
	// what package stalls calls so.
	stalled = 100 * time.Millisecond
	// starved is how long others keep a burst waiting at least that could be taken for a stall but for them.
	starved = stalled / 2
)

// Preempted says whether others took the processor away from a burst for so long that its figures can't be trusted. usual
// has calibrated on the bursts of the same cell, and takes this one in; it has to be given every burst.
//
// It goes by the time for which the ends were ready to run and did not, and so is not deceived by a network that lets nothing
// through: its ends sleep. A burst that waited for packets for most of a long time is not called preempted, whatever else
// happened, so that no stall is hidden by being left out. Where the kernel does not tell (see Delays), the time that both ends
// used has to do, if they share a processor; then a long wait can't be explained, and is not called preempted either.
func (m *Meter) Preempted(b engine.Burst, s Spent, usual *pressure.Share) bool {
	if b.Span <= 0 || !m.Delays() && (len(m.cpus) != 1 || !m.hasServer()) {
		return false
	}
	used := s.Client + s.Server
	if !m.Delays() {
		disturbed := usual.Disturbed(float64(used) / float64(b.Span))
		return disturbed && b.Span-used < stalled
	}
	disturbed := usual.Disturbed(1 - float64(s.Delayed)/float64(b.Span))
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
