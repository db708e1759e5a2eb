package cli

import (
	"context"
	"fmt"
	"os"

	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/insight/history"
	"netdelta/internal/owner"
	"netdelta/result"
	"netdelta/testbed/docker"
)

// earlierRuns is what a run takes from those before it on the same machine, and leaves to those after it. Where the user has no home folder,
// nothing is taken or left; what goes wrong is a warning.
type earlierRuns struct {
	env    *environment
	on     study.Testbed
	folder string
	place  string // "" of a run that is not measured from here
}

func (env *environment) earlierRuns(on study.Testbed) *earlierRuns {
	r := &earlierRuns{env: env, on: on}
	if folder, err := owner.StateFolder(env.getenv, history.Folder); err == nil {
		if _, err := os.Stat(env.getenv("HOME")); err == nil || env.getenv(owner.StateVariable) != "" {
			r.folder = folder
		}
	}
	return r
}

// begin says in the head of a run what runs here differ by.
func (r *earlierRuns) begin(run *result.Run) {
	var measured []result.RunSpread
	if run.Testbed == labTestbed || run.Testbed == docker.Kind { // networks of this machine's kernel, as those that were measured
		measured = insight.MeasuredSpreads()
	}
	earlier, err := r.read(run)
	if err != nil {
		printError(r.env.err, fmt.Sprintf("intervals are made without earlier runs of this machine: %v", err))
	}
	run.Repeating = insight.Repeating(measured, earlier)
}

func (r *earlierRuns) read(run *result.Run) (earlier [][]insight.PastDelta, err error) {
	if r.folder == "" {
		return nil, nil
	}
	if r.place, err = history.Place(run.Environment, r.on); err != nil {
		return nil, err
	}
	return history.Earlier(r.folder, r.place)
}

// end leaves a run to later ones.
func (r *earlierRuns) end(ctx context.Context, run result.Run) {
	if r.place == "" {
		return
	}
	if err := history.Keep(ctx, r.folder, r.place, run); err != nil {
		printError(r.env.err, err.Error())
	}
}
