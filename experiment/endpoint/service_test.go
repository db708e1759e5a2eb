package endpoint

import (
	"strings"
	"testing"
)

// Daemons that end are restarted once; the second time their workload is given up. Each event is noted once, with the beginning of what
// ailed them.
func TestHealth(t *testing.T) {
	h := NewHealth()
	long := strings.Repeat("no quorum\n", 100)
	if !h.Ended("oltp", long) || h.GivenUp("oltp") {
		t.Error("services were given up when they ended for the first time")
	}
	if h.Ended("oltp", long) || !h.GivenUp("oltp") || h.GivenUp("block") || h.Losses() != 1 {
		t.Error("services were not given up when they ended for the second time")
	}
	h.Ended("oltp", long)
	notes := h.Notes()
	if len(notes) != 2 || !strings.HasSuffix(notes[0], " [...]") || strings.Contains(notes[0], "\n") || !strings.Contains(notes[1], "second time") || !strings.Contains(notes[1], "no quorum") {
		t.Errorf("notes: %q", notes)
	}
}
