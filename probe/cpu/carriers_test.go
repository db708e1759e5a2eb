package cpu

import (
	"errors"
	"os"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// TestCarriersCount: what a process of the network uses while a burst runs is in the kernel's figure, and only there.
func TestCarriersCount(t *testing.T) {
	const carried = 50 * time.Millisecond
	cpu, k := allowed(t)
	self := process{pid: os.Getpid(), local: true}
	with, without := k.Meter(self, []int{cpu}), k.Meter(self, []int{cpu})
	require.Need(t, "a kernel that tells what it does in no thread's name", with.hasKernel())
	busy := start(t, "forever", cpu)
	with.Carriers([]int{busy.PID()})
	used := func() time.Duration {
		t.Helper()
		d, err := procfile.ProcessCPU(busy.PID())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// Both tell of the same time, which lasts until the process has got some of the processor, so that what else runs there weighs nothing.
	if err := errors.Join(with.Start(), without.Start()); err != nil {
		t.Fatal(err)
	}
	began := used()
	require.Eventually(t, time.Minute, "the process has got some of the processor", func() bool { return used() >= began+carried })
	alone, err1 := without.Stop(engine.Burst{})
	both, err2 := with.Stop(engine.Burst{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if both.Kernel < alone.Kernel+carried {
		t.Errorf("the kernel's figure is %v with a process of the network that used %v, %v without", both.Kernel, carried, alone.Kernel)
	}
	if both.Client != 0 {
		t.Errorf("the client's figure is %v", both.Client)
	}
}
