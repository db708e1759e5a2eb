package cli

import (
	"math"
	"runtime/debug"
	"testing"
)

// A run is read in little memory, and the process is as it was afterwards. A limit of the user's own stays, also one that is switched off.
func TestFrugal(t *testing.T) {
	before := debug.SetMemoryLimit(math.MaxInt64)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	const own = 1 << 40
	for name, c := range map[string]struct {
		variable string
		limit    int64 // that the runtime begins with
		within   int64
	}{
		"no limit": {"", math.MaxInt64, readingMost}, "the user's": {"1TiB", own, own}, "off": {"off", math.MaxInt64, math.MaxInt64},
	} {
		debug.SetMemoryLimit(c.limit)
		env := &environment{getenv: func(string) string { return c.variable }}
		asBefore := env.frugal()
		again := env.frugal() // as reading does within showing
		again()
		if now := debug.SetMemoryLimit(-1); now != c.within {
			t.Errorf("%s: while a run is read it is %d, want %d", name, now, c.within)
		}
		if asBefore(); debug.SetMemoryLimit(-1) != c.limit {
			t.Errorf("%s: afterwards it is %d, want %d", name, debug.SetMemoryLimit(-1), c.limit)
		}
	}
}
