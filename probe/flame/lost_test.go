package flame

import (
	"errors"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/testbed"
)

// Ticks for which there is no room are counted. With room for one place, all others are without; which they are is the
// machine's choice, so that it is tried until there have been two.
func TestLostTicksAreCounted(t *testing.T) {
	spec, err := loadTick()
	if err != nil {
		t.Fatal(err)
	}
	spec.Maps["ticks"].MaxEntries = 1
	p := &Profiler{programs: map[uint32]*program{}}
	if err := spec.LoadAndAssign(&p.objects, nil); err != nil {
		require.Need(t, "the right to load eBPF programs (root)", !errors.Is(refused(err), testbed.ErrUnsupported))
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.attach(0); err != nil {
		t.Fatal(err)
	}
	lost := int64(0)
	for deadline := time.Now().Add(time.Minute); lost == 0 && time.Now().Before(deadline); {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 20*time.Millisecond; { // a place of its own
			continue
		}
		time.Sleep(20 * time.Millisecond) // and samples of all other threads, if only idle ones
		taken, err := p.Stop(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		lost += taken.Lost
	}
	if lost == 0 {
		t.Error("no tick was lost of a profiler with room for one place")
	}
}
