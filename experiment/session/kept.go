package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"netdelta/experiment/plan"
	"netdelta/result"
)

// Kept is a run folder among others.
type Kept struct {
	Dir string
	Run result.Run
}

// RunsOf returns the runs of a study in a folder, the earliest first. It skips everything that is not a run folder.
func RunsOf(dir, study string) ([]Kept, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into the folder of runs: %w", err)
	}
	var all []Kept
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue // a link to the latest, say
		}
		if run, err := result.Load(path); err == nil && run.Study == study {
			all = append(all, Kept{path, run})
		}
	}
	slices.SortStableFunc(all, func(a, b Kept) int { return a.Run.Started.Compare(b.Run.Started) })
	return all, nil
}

// LatestWhole is the folder of the latest run that measured something and was not cut short, "" where there is none.
func LatestWhole(all []Kept) string {
	cut := []string{plan.Running, plan.EndedFailed, plan.EndedInterrupted, plan.EndedNothing}
	for _, n := range slices.Backward(all) {
		if len(n.Run.Deltas) > 0 && !slices.Contains(cut, n.Run.Ended) {
			return n.Dir
		}
	}
	return ""
}

// Prune removes the earliest runs of a study until so many are left.
func Prune(dir, study string, keep int) error {
	all, err := RunsOf(dir, study)
	if err != nil {
		return err
	}
	var failed []error
	for _, n := range all[:max(0, len(all)-keep)] {
		if err := os.RemoveAll(n.Dir); err != nil {
			failed = append(failed, fmt.Errorf("remove an old run: %w; remove it by hand, or the folder fills up", err))
		}
	}
	return errors.Join(failed...)
}
