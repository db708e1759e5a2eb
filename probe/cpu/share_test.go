package cpu

import (
	"testing"
	"time"

	"netdelta/engine"
)

// TestShare: of what the kernel and the thread that waits did for all networks, each gets the part that its own visits leave open; what
// its own processes used is its own.
func TestShare(t *testing.T) {
	const ms = time.Millisecond
	// Both ends on one processor. The kernel used 3 ms and the thread waited for 6: of both, the first network met a third.
	meters := []*Meter{{clientWaited: 6 * ms}, {clientWaited: 6 * ms, carried: 2 * ms}}
	bursts := []engine.Burst{{Span: 13 * ms}, {Span: 20 * ms}}
	spent := []Spent{
		{Client: 5 * ms, Server: 4 * ms, Delayed: 7 * ms, Kernel: 3 * ms}, // its server waited for 1 ms
		{Client: 6 * ms, Server: 6 * ms, Delayed: 6 * ms, Kernel: 5 * ms},
	}
	Share(meters, bursts, spent)
	want := []Spent{
		{Client: 5 * ms, Server: 4 * ms, Delayed: 3 * ms, Kernel: ms, Busiest: 7 * ms},
		{Client: 6 * ms, Server: 6 * ms, Delayed: 4 * ms, Kernel: 4 * ms, Busiest: 10 * ms},
	}
	for i, s := range spent {
		for _, d := range []time.Duration{
			s.Client - want[i].Client, s.Server - want[i].Server, s.Delayed - want[i].Delayed, s.Kernel - want[i].Kernel, s.Busiest - want[i].Busiest,
		} {
			if d.Abs() > time.Microsecond {
				t.Errorf("network %d: %+v, want %+v", i, s, want[i])
				break
			}
		}
	}
}
