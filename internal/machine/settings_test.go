package machine

import (
	"slices"
	"testing"

	"netdelta/result"
)

// What slows a processor down or its clock is named with a fix; what does not has none.
func TestSettings(t *testing.T) {
	for _, c := range []struct {
		clock, idle, governor string
		fixes                 []string // topics
	}{
		{"tsc", "", "", nil},
		{"arch_sys_counter", "C1, 2 µs", "performance", nil},
		{"hpet", "C6, 133 µs", "powersave", []string{"clock", "idle states", "governor"}},
		{"", "", "", nil}, // nothing is known of it
	} {
		var fixes []string
		for _, f := range Settings(result.Environment{Clock: c.clock, CPU: result.CPU{Idle: c.idle, Governor: c.governor}}) {
			if f.Fix != "" {
				fixes = append(fixes, f.Topic)
			}
		}
		if !slices.Equal(fixes, c.fixes) {
			t.Errorf("clock %q, idle state %q, governor %q: fixes of %q, want %q", c.clock, c.idle, c.governor, fixes, c.fixes)
		}
	}
}
