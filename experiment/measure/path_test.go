package measure

import (
	"testing"

	"netdelta/probe/path"
	"netdelta/workload"
)

// What another program moved while it warmed up is an estimate, which may be more than has crossed the devices.
func TestLoadOfAProgramIsWhatWasMeasured(t *testing.T) {
	s := Session{demand: workload.Demand{Opaque: true}}
	for _, tc := range []struct{ moved, delivered, want int64 }{{130, 100, 100}, {100, 130, 100}, {130, 0, 130}, {0, 100, 100}, {0, 0, 0}} {
		var load path.Load
		s.addLoad(&load, tc.moved, tc.delivered)
		if got := int64(load.Both); got != tc.want {
			t.Errorf("of %d bytes moved and %d measured at least %d crossed, want %d", tc.moved, tc.delivered, got, tc.want)
		}
	}
}
