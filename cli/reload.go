package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime/debug"

	"netdelta/experiment/imported"
	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/workload"
)

// reload takes a run's frame from result.json and its figures from the journal, which is the truth. The path of a result.json
// stands for its folder. A folder without a journal gives the figures of its result.json, with a note and without trials.
func (env *environment) reload(path string) (insight.Measured, error) {
	files, err := openRun(path)
	if err != nil {
		return insight.Measured{}, err
	}
	m, err := env.reloadFrom(files, withTrials)
	return m, errors.Join(err, files.Close())
}

// openRun opens the run folder that a path means.
func openRun(path string) (*result.Files, error) {
	files, err := result.OpenRun(folderOf(path))
	if err != nil {
		return nil, unreadable(err)
	}
	return files, nil
}

// Whether what is reloaded has its trials. Without them a large run takes a fraction of the memory.
const (
	withTrials    = true
	withoutTrials = false
)

// reloadFrom reloads a run folder that is open. Runs with a strategy and imported ones always have their trials.
func (env *environment) reloadFrom(files *result.Files, keep bool) (insight.Measured, error) {
	run, err := files.Record()
	if err != nil {
		return insight.Measured{}, unreadable(err)
	}
	m := insight.Measured{Run: run}
	var trials result.Trials
	var notes []string
	if keep || run.Strategy != nil || run.Testbed == result.Imported {
		var contents result.Contents
		contents, err = files.Trials()
		m.Trials, trials, notes = contents.Trials, result.List(contents.Trials), contents.Notes(run)
	} else {
		var stored *result.Stored
		if stored, err = files.Stored(); err == nil {
			defer func() { _ = stored.Close() }()
			defer debug.SetGCPercent(debug.SetGCPercent(60)) // garbage is what there is most of in memory
			trials, notes = stored, stored.Notes(run)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(run.Deltas)+len(run.Null) > 0:
		m.Notes = append(m.Notes, fmt.Sprintf("%s is missing: the figures are those that %s was left with", result.TrialsFile, result.ResultFile))
		m.Run.Notes = append(m.Run.Notes, m.Notes...)
		m.Run.Bind(workload.Parameters(env.workloads))
		return m, nil
	case err != nil:
		return insight.Measured{}, unreadable(err)
	}
	m.Notes = append(m.Notes, notes...)
	m.Run.Notes = append(m.Run.Notes, m.Notes...)
	words.NewJudge(env.workloads).ConcludeFrom(&m.Run, trials)
	return m, nil
}

// rebase holds the networks of an imported run against another of them.
func (env *environment) rebase(m *insight.Measured, baseline string) error {
	if m.Run.Testbed != result.Imported {
		return usageError{fmt.Errorf("--baseline %s: only an imported run can have another baseline than it was measured with; show --pairs holds each two networks against one another", baseline)}
	}
	if err := imported.Rebase(&m.Run, m.Trials, baseline); err != nil {
		return usageError{fmt.Errorf("--baseline: %w", err)}
	}
	words.NewJudge(env.workloads).Conclude(&m.Run, m.Trials)
	return nil
}

// folderOf is the run folder that a path means.
func folderOf(path string) string {
	if filepath.Base(path) == result.ResultFile {
		return filepath.Dir(path)
	}
	return path
}

// unreadable gives an error of reading a run folder its exit status: bad usage for what is no run, nothing measured for a run
// that was cut off before it had anything to read.
func unreadable(err error) error {
	switch {
	case errors.Is(err, result.ErrNoRun):
		return withStatus(exitUsage, err)
	case errors.Is(err, fs.ErrNotExist):
		return withStatus(exitNothing, err)
	}
	return err
}

// reloadWithExact is reloadFrom, and adds a comparison with an exact run if one is named.
func (env *environment) reloadWithExact(files *result.Files, keep bool, exact string) (insight.Measured, error) {
	m, err := env.reloadFrom(files, keep)
	if err != nil || exact == "" {
		return m, err
	}
	other, err := env.reload(exact)
	if err != nil {
		return m, err
	}
	beside, err := insight.CompareExact(m.Run, other.Run)
	if err != nil {
		return m, usageError{fmt.Errorf("--exact: %w", err)}
	}
	m.Run.ExactComparison = &beside
	return m, nil
}
