package experiment

import (
	"testing"
	"testing/synctest"
	"time"
)

// On others' nodes a run that has measured something is ended a tenth of its budget after it, one that has not some time later.
func TestOvertimeElsewhere(t *testing.T) {
	for measured, want := range map[bool]time.Duration{true: 66 * time.Second, false: 90 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			r := &runner{began: time.Now()}
			r.Rules.Budget, r.Overtime = time.Minute, overtimeElsewhere(time.Minute)
			r.whole.Store(measured)
			within, stop := r.withinOvertime(t.Context())
			defer stop()
			<-within.Done()
			if took := time.Since(r.began); took != want {
				t.Errorf("measured %v: ended after %v, want %v", measured, took, want)
			}
		})
	}
}
