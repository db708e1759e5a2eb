package path_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"netdelta/internal/property"
	"netdelta/network"
	"netdelta/probe/path"
	"netdelta/unit"
)

// opaque is the same observation with a load of which only the sum is known.
func opaque(o path.Observation) path.Observation {
	o.Load.Opaque, o.Load.Both = true, o.Load.Requests+o.Load.Responses
	o.Load.Requests, o.Load.Responses = 0, 0
	o.Shared = shared(o.Request, o.Response)
	return o
}

// shared are the devices of both ways.
func shared(request, response []network.Hop) []network.Device {
	var all []network.Device
	for _, h := range request {
		if slices.ContainsFunc(response, func(o network.Hop) bool { return o.Device == h.Device }) {
			all = append(all, h.Device)
		}
	}
	return all
}

// A truthful observation proves an opaque load too, whatever it is said to have been at least; and without amounts the proof still
// finds a device off the way, and one on it that carried nothing.
func TestOpaque(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		o := opaque(w.observation(t))
		o.Load.Both = unit.Bytes(rapid.Int64Range(0, int64(o.Load.Both)).Draw(t, "known"))
		if p := path.Judge(o); !p.OK {
			t.Fatalf("a truthful observation: %q", p.Findings)
		}
		stray := node(0, "eth9")
		o.Before.Counters[stray] = plus(o.Before.Counters[stray], true, 0, 0)
		o.After.Counters[stray] = plus(o.Before.Counters[stray], true, 100_000, 100_000_000)
		if p := path.Judge(o); p.OK || !strings.Contains(strings.Join(p.Findings, ";"), "node0/eth9 carried") {
			t.Fatalf("a device off the way: %q", p.Findings)
		}
		o.Background = []network.Hop{{Device: stray, Sends: true}}
		if p := path.Judge(o); !p.OK {
			t.Fatalf("a device on the way of daemons: %q", p.Findings)
		}
		if len(o.Shared) == 0 {
			return
		}
		silent := o.Shared[0]
		o.After.Counters[silent] = o.Before.Counters[silent]
		if p := path.Judge(o); p.OK || !strings.Contains(strings.Join(p.Findings, ";"), silent.String()+" carried nothing") {
			t.Fatalf("a silent device: %q", p.Findings)
		}
	})
}

// The least that an opaque load was must have passed the devices that it can't get round.
func TestOpaqueBound(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		o := opaque(w.observation(t))
		if len(o.Shared) == 0 {
			return
		}
		o.Load.Both *= 1000
		if p := path.Judge(o); p.OK || !strings.Contains(strings.Join(p.Findings, ";"), "the plan has at least") {
			t.Fatalf("a thousandth of the load: %q", p.Findings)
		}
	})
}

// An audit holds devices against the least that opaque flows were, and leaves daemons their talk.
func TestOpaqueBalance(t *testing.T) {
	t.Parallel()
	property.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		o := opaque(w.observation(t))
		chatty := node(0, "eth9")
		o.Before.Counters[chatty] = plus(o.Before.Counters[chatty], true, 0, 0)
		o.After.Counters[chatty] = plus(o.Before.Counters[chatty], true, 100_000, 100_000_000)
		flow := path.Flow{Request: o.Request, Response: o.Response, Both: o.Load.Both, Shared: o.Shared}
		aside := []network.Hop{{Device: chatty, Sends: true}}
		got := path.Balance(o.Before.Counters, o.After.Counters, nil, []path.Flow{flow}, aside)
		if len(got.Findings) > 0 {
			t.Fatalf("the truth: %q", got.Findings)
		}
		if got := path.Balance(o.Before.Counters, o.After.Counters, nil, []path.Flow{flow}, nil); len(got.Findings) != 1 || !strings.Contains(got.Findings[0], "node0/eth9") {
			t.Fatalf("a device on no way: %q", got.Findings)
		}
		flow.Both *= 1000
		if got := path.Balance(o.Before.Counters, o.After.Counters, nil, []path.Flow{flow}, aside); len(o.Shared) > 0 && len(got.Findings) == 0 {
			t.Fatal("a thousandth of the load balances")
		}
	})
}
