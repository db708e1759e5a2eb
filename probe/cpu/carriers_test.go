package cpu

import (
	"os"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/require"
)

// TestCarriersCount: what a process of the network uses while a burst runs is in the kernel's figure, and only there.
func TestCarriersCount(t *testing.T) {
	cpu, k := allowed(t)
	m := k.Meter(process{pid: os.Getpid(), local: true}, []int{cpu})
	require.Need(t, "a kernel that tells what it does in no thread's name", m.hasKernel())
	busy := start(t, "forever", cpu)
	spent := func() Spent {
		t.Helper()
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		s, err := m.Stop(engine.Burst{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	without := spent()
	m.Carriers([]int{busy.PID()})
	with := spent()
	// On a busy machine the process gets a part of the time only.
	if with.Kernel < without.Kernel+20*time.Millisecond {
		t.Errorf("the kernel's figure is %v with a busy process of the network, %v without", with.Kernel, without.Kernel)
	}
	if with.Client != 0 {
		t.Errorf("the client's figure is %v", with.Client)
	}
}
