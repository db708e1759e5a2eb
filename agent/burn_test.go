package agent

import (
	"testing"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// An agent burns about half of a processor, as long as it is told to, and nothing afterwards.
func TestBurn(t *testing.T) {
	a := start(t)
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	spent := func() time.Duration {
		t.Helper()
		cpu, err := procfile.ProcessCPU(a.PID())
		if err != nil {
			t.Fatal(err)
		}
		return cpu
	}
	const span, enough = 100 * time.Millisecond, 75 * time.Millisecond
	idle := func() time.Duration {
		before := spent()
		time.Sleep(span)
		return spent() - before
	}
	b := Burning{CPUs: cpus[len(cpus)-1:], Seed: 1, Turn: time.Millisecond, Longest: time.Minute}
	for range 2 { // it can be begun again
		began, before := time.Now(), spent()
		if err := a.Burn(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		// Others may use the processor as well.
		require.Eventually(t, 20*time.Second, "it has burnt something", func() bool { return spent()-before >= enough })
		if err := a.Rest(t.Context()); err != nil {
			t.Fatal(err)
		}
		burnt, took := spent()-before, time.Since(began)
		if share := float64(burnt) / float64(took); share > 0.8 {
			t.Errorf("it used %.2f of a processor, want about a half", share)
		}
		if rest := idle(); rest > burnt/5 {
			t.Errorf("it used %v at rest, and %v burning", rest, burnt)
		}
	}
	b.Longest = time.Millisecond
	if err := a.Burn(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, 20*time.Second, "it has ended by itself", func() bool { return idle() <= span/10 })
	if err := a.Burn(t.Context(), Burning{}); err == nil {
		t.Error("it burns on no processor")
	}
	if err := a.Burn(t.Context(), Burning{CPUs: []int{100_000}, Turn: 1}); err == nil {
		t.Error("it burns on a processor that is not there")
	}
}
