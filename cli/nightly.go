package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"netdelta/experiment/session"
	"netdelta/report/annotations"
	"netdelta/report/ui"
)

// nightly runs a study on a cluster, compares it with the last run, and removes the oldest.
func (env *environment) nightly(ctx context.Context, name string, o nightlyOptions, forRun []string) error {
	comparing, err := o.check()
	if err != nil {
		return err
	}
	how, err := comparing.check(o.margin != "")
	if err != nil {
		return usageError{err}
	}
	s, err := env.readStudy(name)
	if err != nil {
		return badInput(err)
	}
	earlier, err := session.RunsOf(o.runs, s.Name)
	if err != nil {
		return err
	}
	folder, err := session.FreshFolder(o.runs, nightName(s.Name, time.Now()))
	if err != nil {
		return err
	}
	ran := env.runInto(ctx, name, folder, forRun)
	if err := endsNight(ran); err != nil {
		_ = os.Remove(folder) // where the run did not begin it is empty, and no run's
		return err
	}
	last := session.LatestWhole(earlier)
	if last == "" {
		fmt.Fprintf(env.out, "\nThere is no earlier run of %s in %s: the next one is compared with this.\n", ui.Clean(s.Name), ui.Clean(o.runs))
		return ran
	}
	fmt.Fprintln(env.out)
	c, err := env.compared(last, folder, how)
	if err != nil {
		return errors.Join(ran, err)
	}
	if err := env.writeComparison(env.out, c, comparing.format); err != nil {
		return err
	}
	if err := annotations.WriteComparison(env.out, c); err != nil {
		return err
	}
	if err := session.Prune(o.runs, s.Name, o.keep); err != nil {
		printError(env.err, err.Error()) // the next night tries again, and what was found must not be hidden by it
	}
	return cmp.Or(verdict(c), ran)
}

// runInto carries out netdelta run on a cluster, as a user would call it.
func (env *environment) runInto(ctx context.Context, study, folder string, flags []string) error {
	root := newRoot(env)
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.err)
	root.SetArgs(slices.Concat([]string{"run", study, "--testbed", kubeTestbed, "--out", folder}, flags))
	return root.ExecuteContext(ctx)
}

// endsNight is the error of a run after which there is nothing to compare: any but that some of its trials failed.
func endsNight(ran error) error {
	if exit, is := errors.AsType[*exitError](ran); is && exit.status == exitFailed {
		return nil
	}
	return ran
}
