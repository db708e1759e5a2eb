package bounds

import (
	"context"
	"math"
	"os"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/network"
	"netdelta/probe/cpu"
	"netdelta/result"
	"netdelta/testbed"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

const ms = time.Millisecond

// bed is a testbed whose one link carries what it is told.
type bed struct {
	testbed.Observer
	plan network.Plan
	sent uint64 // in each step
	at   uint64
}

func (b *bed) Plan() network.Plan { return b.plan }

func (b *bed) Instruments() testbed.Instruments { return testbed.Instruments{Observer: b} }

func (b *bed) Counters(context.Context) (map[network.Device]testbed.Counters, error) {
	b.at += b.sent
	return map[network.Device]testbed.Counters{
		port():                                {SentBytes: b.at},
		{In: network.InSwitch(), Name: "p0"}:  {SentBytes: b.at / 50}, // acknowledgements
		{In: network.InNode(0), Name: "br0"}:  {SentBytes: 100 * b.at},
		{In: network.InNode(0), Name: "eth1"}: {SentBytes: 100 * b.at},
	}, nil
}

func port() network.Device { return network.Device{In: network.InNode(0), Name: "eth0"} }

// shaped is a bed whose link has 100 Mbit/s, 12.5 MB a second.
func shaped(sent uint64) *bed {
	return &bed{sent: sent, plan: network.Plan{Underlay: []network.Op{
		network.Shape{Device: port(), Rate: 100e6}, network.Shape{Device: network.Device{In: network.InSwitch(), Name: "p0"}, Rate: 100e6},
	}}}
}

// The link's share is the share of its rate that was used under load, in its fuller direction.
func TestLink(t *testing.T) {
	for _, c := range []struct {
		name  string
		sent  uint64
		burst engine.Burst
		want  float64
		by    string
	}{
		{"full", 12_000_000, engine.Burst{Duration: time.Second, Span: time.Second, Transactions: 1}, 0.96, result.BoundLink},
		{"half", 6_250_000, engine.Burst{Duration: time.Second, Span: time.Second, Transactions: 1}, 0.5, result.BoundLatency},
		{
			"full, of a program that starts for a second", 12_000_000,
			engine.Burst{Duration: 800 * ms, Span: 2 * time.Second, Transactions: 80, Work: 100}, 0.96, result.BoundLink,
		},
		{
			"full, of a stream with a warm-up", 12_000_000,
			engine.Burst{Duration: 800 * ms, Span: 2 * time.Second, Transactions: 80, Bytes: 8, Moved: 10, Work: 80}, 0.96, result.BoundLink,
		},
		{"more than there is", 99_000_000, engine.Burst{Duration: time.Second, Span: time.Second, Transactions: 1}, 1, result.BoundLink},
	} {
		m := New(shaped(c.sent), nil, false, false)
		for range 3 {
			// Idle processors, as its own clocks would have it.
			if err := m.Begin(t.Context(), c.burst.Duration); err != nil {
				t.Fatal(err)
			}
			if err := m.End(t.Context(), c.burst, cpu.Spent{}, true); err != nil {
				t.Fatal(err)
			}
		}
		for i := range m.bursts {
			m.bursts[i].window, m.bursts[i].sets = c.burst.Span, []set{{2 * c.burst.Span, 2}}
		}
		got := m.Bound(nil, nil)
		if got == nil || math.Abs(got.Link-c.want) > 1e-9 || got.By != c.by || got.CPU != 0 || got.Disk != unknown {
			t.Errorf("%s: %+v, want %v of the link, bounded by %s", c.name, got, c.want, c.by)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Devices are read around a few bursts only where those are short.
func TestShortBurstsAreSampled(t *testing.T) {
	b := shaped(1000)
	m := New(b, nil, false, false)
	for range 100 {
		if err := m.Begin(t.Context(), 5*ms); err != nil {
			t.Fatal(err)
		}
		if err := m.End(t.Context(), engine.Burst{Duration: 5 * ms}, cpu.Spent{}, true); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := b.at/b.sent, uint64(2*counted); got != want {
		t.Errorf("the devices were read %d times, want %d", got, want)
	}
}

// What bounds follows from the shares, and those from bursts that were not disturbed.
func TestBound(t *testing.T) {
	long := func(idle time.Duration, spent cpu.Spent) burst {
		return burst{
			of: engine.Burst{Duration: time.Second, Span: time.Second, Transactions: 1000}, spent: spent, own: true, window: time.Second,
			sets: []set{{idle, 2}},
		}
	}
	short := func(spent cpu.Spent, own bool) burst {
		return burst{of: engine.Burst{Duration: 5 * ms, Span: 6 * ms}, spent: spent, own: own, window: 7 * ms, sets: []set{{0, 1}}}
	}
	for _, c := range []struct {
		name      string
		bursts    []burst
		disturbed []string
		disk      *result.Disk
		want      *result.Bound
	}{
		{"idle", []burst{long(1500*ms, cpu.Spent{})}, nil, nil, &result.Bound{By: result.BoundLatency, Link: -1, CPU: 0.25, Disk: -1}},
		{"all busy", []burst{long(100*ms, cpu.Spent{})}, nil, nil, &result.Bound{By: result.BoundCPU, Link: -1, CPU: 0.95, Disk: -1}},
		{
			"one thread", []burst{long(time.Second, cpu.Spent{Busiest: 980 * ms})}, nil, nil,
			&result.Bound{By: result.BoundCPU, Link: -1, CPU: 0.98, Disk: -1},
		},
		{
			"the disk, which goes before the processors that drive it", []burst{long(0, cpu.Spent{})}, nil, &result.Disk{Rate: 1050},
			&result.Bound{By: result.BoundDisk, Link: -1, CPU: 1, Disk: 1000.0 / 1050},
		},
		{
			"a disk with room", []burst{long(1500*ms, cpu.Spent{})}, nil, &result.Disk{Rate: 4000},
			&result.Bound{By: result.BoundLatency, Link: -1, CPU: 0.25, Disk: 0.25},
		},
		{
			"disturbed bursts don't count", []burst{long(0, cpu.Spent{}), long(1500*ms, cpu.Spent{})}, []string{"cpu-pressure", ""}, nil,
			&result.Bound{By: result.BoundLatency, Link: -1, CPU: 0.25, Disk: -1},
		},
		{"none counts", []burst{long(0, cpu.Spent{})}, []string{"cpu-pressure"}, nil, nil},
		{"no burst", nil, nil, nil, nil},
		{
			"short bursts by their own clocks", []burst{short(cpu.Spent{Client: 1 * ms, Server: 1 * ms, Delayed: 1 * ms}, true)}, nil, nil,
			&result.Bound{By: result.BoundLatency, Link: -1, CPU: 0.5, Disk: -1},
		},
		{
			"others who take the processor are not idle", []burst{short(cpu.Spent{Client: 1 * ms, Server: 1 * ms, Delayed: 4 * ms}, true)}, nil, nil,
			&result.Bound{By: result.BoundCPU, Link: -1, CPU: 1, Disk: -1},
		},
		{"short bursts of unknown cost", []burst{short(cpu.Spent{}, false)}, nil, nil, nil},
		{
			"processors of another machine", []burst{{of: engine.Burst{Duration: time.Second, Transactions: 9}}}, nil, nil, nil,
		},
	} {
		m := &Meter{bursts: c.bursts}
		got := m.Bound(c.disturbed, c.disk)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A meter that is not there does nothing.
func TestNoMeter(t *testing.T) {
	var m *Meter
	m.Skip()
	if m.Begin(t.Context(), ms) != nil || m.End(t.Context(), engine.Burst{}, cpu.Spent{}, true) != nil || m.Bound(nil, nil) != nil || m.Close() != nil {
		t.Error("a meter that is not there did something")
	}
}
