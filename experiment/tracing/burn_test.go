package tracing_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"netdelta/experiment/tracing"
	"netdelta/insight/hops"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/network"
	probe "netdelta/probe/hops"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// burnt is the name of the network in which a program burns time at a device.
const burnt = "burnt"

// burningDriver opens labs in which each packet that the first node gets from its first pod is held up.
type burningDriver struct {
	testbed.Provider
	program *ebpf.Program
}

// Open implements testbed.Provider.
func (d burningDriver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Provider.Open(ctx, spec)
	if err != nil || spec.Network != burnt {
		return tb, err
	}
	l := tb.(*lab.Testbed)
	held, err := d.attach(ctx, l)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return burning{l, held}, nil
}

// attach puts the program at the node's end of the first pod's link, where packets come in.
func (d burningDriver) attach(ctx context.Context, l *lab.Testbed) (held link.Link, err error) {
	counters, err := l.Counters(ctx)
	if err != nil {
		return nil, err
	}
	device := counters[network.Device{In: network.InNode(0), Name: "veth0"}].Index
	err = l.Within("node0", func(fd int) error {
		return netns.Within(fd, func() error {
			var err error
			held, err = link.AttachTCX(link.TCXOptions{Interface: device, Program: d.program, Attach: ebpf.AttachTCXIngress})
			return err
		})
	})
	return held, err
}

// burning is a lab with a program attached.
type burning struct {
	*lab.Testbed
	held link.Link
}

// Close implements testbed.Testbed.
func (b burning) Close() error { return errors.Join(b.held.Close(), b.Testbed.Close()) }

// loadBurner makes a program that looks at the clock so many times, and lets each packet on.
func loadBurner(t *testing.T, looks int) *ebpf.Program {
	t.Helper()
	var code asm.Instructions
	for range looks {
		code = append(code, asm.FnKtimeGetNs.Call())
	}
	const next = -1 // TCX_NEXT
	code = append(code, asm.Mov.Imm(asm.R0, next), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: code, License: "GPL"})
	if errors.Is(err, ebpf.ErrNotSupported) {
		require.Need(t, "eBPF programs at devices (CONFIG_NET_XGRESS)", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// burns is how long a run of the program takes, in nanoseconds: the kernel's own measure, over many runs in turn.
func burns(t *testing.T, p *ebpf.Program) float64 {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	packet := make([]byte, 64)
	var times []float64
	for range 20 {
		_, each, err := p.Benchmark(packet, 2000, nil)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, float64(each))
	}
	slices.Sort(times)
	return times[len(times)/4]
}

// The known cost of a program at a device is found at the hop behind that device, of its size.
func TestBurningProgram(t *testing.T) {
	program := loadBurner(t, 120)
	bridge := find(t, "bridge")
	same := bridge
	same.Name = burnt
	said := 0.0
	for range attempts {
		c := configureWith(t, []network.Network{bridge, same}, result.CrossNode, func(d testbed.Provider) testbed.Provider { return burningDriver{d, program} })
		c.Level, c.Lasting = probe.Devices, 4*time.Second
		want := burns(t, program)
		ways := sum(t, c, tracing.Trace)
		there := 0.0
		for _, l := range hops.Compare(ways[0].Request, ways[1].Request) {
			if l.Other != nil && l.Other.Where == "node0" && l.Other.Step == string(probe.StepForward) {
				there += l.Difference
			}
		}
		t.Logf("the program takes %.0f ns; its hop is %.0f ns longer, the round trip %.0f ns", want, there, ways[1].Untraced-ways[0].Untraced)
		if said = there / want; math.Abs(said-1) <= 0.15 {
			return
		}
	}
	t.Errorf("in %d attempts the program's time was never found at its hop to within 15%%: last %.2f of it", attempts, said)
}
