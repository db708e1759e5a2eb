package agent

import (
	"testing"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/procfile"
)

// An agent burns about half of a processor, as long as it is told to, and nothing afterwards.
func TestBurn(t *testing.T) {
	a := start(t)
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	used := func(f func()) time.Duration {
		t.Helper()
		before, err := procfile.ProcessCPU(a.PID())
		if err != nil {
			t.Fatal(err)
		}
		f()
		after, err := procfile.ProcessCPU(a.PID())
		if err != nil {
			t.Fatal(err)
		}
		return after - before
	}
	const span = 300 * time.Millisecond
	b := Burning{CPUs: cpus[len(cpus)-1:], Seed: 1, Turn: time.Millisecond, Longest: time.Minute}
	for range 2 { // it can be begun again
		var took time.Duration
		burnt := used(func() {
			began := time.Now()
			if err := a.Burn(t.Context(), b); err != nil {
				t.Fatal(err)
			}
			time.Sleep(span)
			if err := a.Rest(t.Context()); err != nil {
				t.Fatal(err)
			}
			took = time.Since(began)
		})
		// Others may use the processor as well.
		if share := float64(burnt) / float64(took); share < 0.02 || share > 0.8 {
			t.Errorf("it used %.2f of a processor, want about a half", share)
		}
		if rest := used(func() { time.Sleep(span) }); rest > burnt/5 {
			t.Errorf("it used %v at rest, and %v burning", rest, burnt)
		}
	}
	b.Longest = time.Millisecond
	if err := a.Burn(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	time.Sleep(span)
	if after := used(func() { time.Sleep(span) }); after > span/10 {
		t.Errorf("it used %v though it should have ended long ago", after)
	}
	if err := a.Burn(t.Context(), Burning{}); err == nil {
		t.Error("it burns on no processor")
	}
	if err := a.Burn(t.Context(), Burning{CPUs: []int{100_000}, Turn: 1}); err == nil {
		t.Error("it burns on a processor that is not there")
	}
}
