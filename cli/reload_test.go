package cli

import (
	"math"
	"runtime/debug"
	"testing"
)

// A run is read in little memory, with garbage collected rarely, and the process is as it was afterwards. What the user has set stays, also
// where it is switched off.
func TestFrugal(t *testing.T) {
	limit, garbage := debug.SetMemoryLimit(math.MaxInt64), debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetMemoryLimit(limit)
		debug.SetGCPercent(garbage)
	})
	type settings struct {
		limit   int64
		garbage int
	}
	now := func() settings {
		s := settings{debug.SetMemoryLimit(-1), debug.SetGCPercent(-1)}
		debug.SetGCPercent(s.garbage)
		return s
	}
	for name, c := range map[string]struct {
		variable, value string
		begin, within   settings
	}{
		"as usual": {"", "", settings{math.MaxInt64, 100}, settings{readingMost, readingGarbage}},
		"a limit":  {"GOMEMLIMIT", "1TiB", settings{1 << 40, 100}, settings{1 << 40, 100}},
		"no limit": {"GOMEMLIMIT", "off", settings{math.MaxInt64, 100}, settings{math.MaxInt64, 100}},
		"garbage":  {"GOGC", "50", settings{math.MaxInt64, 50}, settings{math.MaxInt64, 50}},
	} {
		debug.SetMemoryLimit(c.begin.limit)
		debug.SetGCPercent(c.begin.garbage)
		env := &environment{getenv: func(variable string) string { return map[string]string{c.variable: c.value}[variable] }}
		asBefore := env.frugal()
		again := env.frugal() // as reading does within showing
		again()
		if now() != c.within {
			t.Errorf("%s: while a run is read it is %v, want %v", name, now(), c.within)
		}
		if asBefore(); now() != c.begin {
			t.Errorf("%s: afterwards it is %v, want %v", name, now(), c.begin)
		}
	}
}
