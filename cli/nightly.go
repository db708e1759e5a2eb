package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netdelta/experiment/plan"
	"netdelta/experiment/session"
	"netdelta/report/annotations"
	"netdelta/report/ui"
	"netdelta/result"
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
	earlier, err := nights(o.runs, s.Name)
	if err != nil {
		return err
	}
	folder, err := session.FreshFolder(o.runs, nightName(s.Name, time.Now()))
	if err != nil {
		return err
	}
	ran := env.runInto(ctx, name, folder, forRun)
	if err := endsNight(ran); err != nil {
		return err
	}
	last := latestWhole(earlier)
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
	if err := prune(o.runs, s.Name, o.keep); err != nil {
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
	var exit *exitError
	if errors.As(ran, &exit) && exit.status == exitFailed {
		return nil
	}
	return ran
}

// night is a run folder of an earlier night.
type night struct {
	dir string
	run result.Run
}

// nights returns the runs of a study in a folder, the earliest first. It skips everything that is not a run folder.
func nights(dir, study string) ([]night, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into the folder of runs: %w", err)
	}
	var all []night
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue // a link to the latest, say
		}
		if run, err := result.Load(path); err == nil && run.Study == study {
			all = append(all, night{path, run})
		}
	}
	slices.SortStableFunc(all, func(a, b night) int { return a.run.Started.Compare(b.run.Started) })
	return all, nil
}

// latestWhole is the folder of the latest run that measured something and was not cut short, "" where there is none.
func latestWhole(all []night) string {
	cut := []string{plan.Running, plan.EndedFailed, plan.EndedInterrupted}
	for _, n := range slices.Backward(all) {
		if len(n.run.Deltas) > 0 && !slices.Contains(cut, n.run.Ended) {
			return n.dir
		}
	}
	return ""
}

// prune removes the earliest runs of a study until so many are left.
func prune(dir, study string, keep int) error {
	all, err := nights(dir, study)
	if err != nil {
		return err
	}
	var failed []error
	for _, n := range all[:max(0, len(all)-keep)] {
		if err := os.RemoveAll(n.dir); err != nil {
			failed = append(failed, fmt.Errorf("remove an old run: %w; remove it by hand, or the folder fills up", err))
		}
	}
	return errors.Join(failed...)
}
