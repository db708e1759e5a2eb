package record_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/result"
)

// judge counts how often it is asked.
type judge struct{ asked int }

func (j *judge) Conclude(run *result.Run, _ []result.Trial) {
	j.asked++
	run.Notes = []string{"judged"}
}

// However measuring ends, the folder has the trials, the conclusions, and how the run ended.
func TestConduct(t *testing.T) {
	lost := errors.New("a node is lost")
	for name, c := range map[string]struct {
		measure func(cancel func(), r *record.Record) error
		ended   string
		err     error
	}{
		"done":     {func(func(), *record.Record) error { return nil }, plan.EndedBuilds, nil},
		"resolved": {func(_ func(), r *record.Record) error { r.Run.Ended = plan.EndedResolved; return nil }, plan.EndedResolved, nil},
		"failed":   {func(func(), *record.Record) error { return lost }, plan.EndedFailed, lost},
		"nothing measured": {func(_ func(), r *record.Record) error {
			r.Trials[0].Failed, r.Run.Ended = "too many open files", plan.EndedResolved
			return nil
		}, plan.EndedNothing, nil},
		"stopped": {func(cancel func(), _ *record.Record) error {
			cancel()
			return fmt.Errorf("build 2: %w", context.Canceled)
		}, plan.EndedInterrupted, nil},
		"stopped and failed": {func(cancel func(), _ *record.Record) error {
			cancel()
			return errors.Join(fmt.Errorf("build 2: %w", context.Canceled), lost)
		}, plan.EndedFailed, lost},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			folder, err := result.Create(dir, []byte("study: small\n"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var j judge
			_, err = record.Conduct(ctx, result.Run{Seed: 7}, folder, &j, func(_ context.Context, r *record.Record) error {
				if begun, err := result.Load(dir); err != nil || begun.Ended != plan.Running || begun.Started.IsZero() {
					t.Errorf("while it is measured the folder has %+v: %v", begun, err)
				}
				err := r.Add(result.Cell{ID: "a", Role: result.RoleCell}, result.Trial{Build: 3})
				return errors.Join(err, c.measure(cancel, r))
			})
			if c.err == nil && err != nil || c.err != nil && (!errors.Is(err, c.err) || strings.Contains(err.Error(), "build 2")) {
				t.Errorf("it gives %v", err)
			}
			if err := folder.Close(); err != nil {
				t.Error(err)
			}
			run, err := result.Load(dir)
			trials, trialsErr := result.LoadTrials(dir)
			if err := errors.Join(err, trialsErr); err != nil || run.Ended != c.ended || run.Finished.IsZero() || len(run.Notes) != 1 || j.asked != 1 || len(trials.Trials) != 1 {
				t.Errorf("ended %q, notes %q, judged %d times, %d trials: %v", run.Ended, run.Notes, j.asked, len(trials.Trials), err)
			}
		})
	}
}
