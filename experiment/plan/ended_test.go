package plan_test

import (
	"testing"
	"time"

	"netdelta/experiment/plan"
)

// A run is resolved only if nothing that it was to resolve was given up; its baselines alone resolve nothing.
func TestSchedulerDoesNotCallLostCellsResolved(t *testing.T) {
	for name, c := range map[string]struct {
		drop []string
		want string
	}{
		"none": {nil, plan.EndedResolved}, "one": {[]string{"net1/0"}, plan.EndedPartly},
		"all": {[]string{"net1/0", "net0/0"}, plan.EndedFailed}, "the baseline": {[]string{"host/0"}, plan.EndedFailed},
	} {
		s := plan.NewScheduler(settings(1, 2), rules(time.Hour), costs())
		for _, id := range c.drop {
			s.Drop(id)
		}
		s.Resolve(map[string]bool{"net1/0": true, "net0/0": true})
		now := time.Duration(0)
		step := s.Next(now)
		for ; step.Kind != plan.StepEnd; step = s.Next(now) {
			now += 10 * time.Millisecond
			switch step.Kind {
			case plan.StepBuild:
				s.Built(now)
			case plan.StepRound:
				s.Measured(now, nil)
			case plan.StepCollect:
				s.Collected(now)
			case plan.StepEnd:
			}
		}
		if step.Ended != c.want {
			t.Errorf("with %s lost the run ended %q, want %q", name, step.Ended, c.want)
		}
	}
}
