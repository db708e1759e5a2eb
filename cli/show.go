package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"netdelta/experiment/imported"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/workload"
)

func newShowCommand(env *environment) *cobra.Command {
	var o shown
	var exact, baseline string
	var failIf []string
	var request requestFlags
	cmd := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Print the deltas of a run folder again",
		Long: `Print the deltas of a run folder again (default: the latest run), computed from its journal: also of a run that was killed or is still
under way.`,
		Example: `  netdelta show
  netdelta show -v runs/latency-20300102-030405`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			var err error
			if o.request, err = request.read(); err != nil {
				return err
			}
			if o.folder, err = runFolder(a); err != nil {
				return err
			}
			files, err := openRun(o.folder)
			if err != nil {
				return err
			}
			return errors.Join(env.show(files, o, exact, baseline, failIf), files.Close())
		},
	}
	cmd.Flags().StringVar(&exact, "exact", "", "`folder` of an exact run of the same study, to set beside this one")
	cmd.Flags().StringVar(&baseline, "baseline", "", "of an imported run: the `network` that the others are held against")
	cmd.Flags().BoolVar(&o.pairs, "pairs", false, "print each two networks of a setting, held directly against one another")
	cmd.Flags().StringArrayVar(&failIf, "fail-if", nil, failIfUsage)
	cmd.Flags().BoolVar(&o.json, "json", false, "print result.json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print what the figures rest on, each claim and all advice")
	request.add(cmd.Flags())
	return cmd
}

// show prints a run folder that is open.
func (env *environment) show(files *result.Files, o shown, exact, baseline string, failIf []string) error {
	defer env.frugal()()
	m, err := env.reloadWithExact(files, exact)
	if err != nil {
		return err
	}
	if baseline != "" {
		if err := env.rebase(&m, baseline); err != nil {
			return err
		}
	}
	if !o.json {
		if printed, err := env.printStrategy(m); err != nil || printed && len(m.Run.Claims) == 0 {
			return err
		}
	}
	goals, err := goalsOf(failIf)
	if err != nil {
		return err
	}
	m.Run.Goals = append(m.Run.Goals, study.Unjudged(goals)...)
	words.Goals(&m.Run)
	return errors.Join(env.print(m.Run, o), missed(m.Run))
}

// runFolder is the run folder that a verb's arguments name; without any it is the one of the latest run.
func runFolder(arguments []string) (string, error) {
	if len(arguments) > 0 {
		return arguments[0], nil
	}
	latest := filepath.Join(session.Runs, "latest")
	if _, err := os.Stat(latest); errors.Is(err, fs.ErrNotExist) {
		return "", usageError{fmt.Errorf("there is no run in %s yet: name a run folder, or make one by netdelta run", session.Runs)}
	}
	return latest, nil
}

// reload takes a run's frame from result.json and its figures from the journal, which is the truth. The path of a result.json
// stands for its folder. A folder without a journal gives the figures of its result.json, with a note and without trials.
func (env *environment) reload(path string) (insight.Measured, error) {
	files, err := openRun(path)
	if err != nil {
		return insight.Measured{}, err
	}
	m, err := env.reloadFrom(files)
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

// readingMost is the memory from which on garbage is collected more often while a run is read and drawn: ten thousand cells in six builds
// then take less than 300 MB. Larger runs take what they need, and up to twice the processor time.
const readingMost = 250 << 20

// readingGarbage is how much garbage there may be below that memory, in percent of what is in use: collecting it takes processor time.
const readingGarbage = 400

// frugal has a run read and drawn in little memory until what it returns is called. What is set stays, be it by the user or by a call around
// this one.
func (env *environment) frugal() (asBefore func()) {
	before := debug.SetMemoryLimit(-1)
	if before != math.MaxInt64 || env.getenv("GOMEMLIMIT")+env.getenv("GOGC") != "" {
		return func() {}
	}
	debug.SetMemoryLimit(readingMost)
	garbage := debug.SetGCPercent(readingGarbage)
	return func() {
		debug.SetMemoryLimit(before)
		debug.SetGCPercent(garbage)
	}
}

// reloadFrom reloads a run folder that is open. Its whole trials can be read for as long as it is.
func (env *environment) reloadFrom(files *result.Files) (insight.Measured, error) {
	defer env.frugal()()
	run, err := files.Record()
	if err != nil {
		return insight.Measured{}, unreadable(err)
	}
	m := insight.Measured{Run: run}
	var notes []string
	m.Trials, notes, err = trialsOf(files, run)
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
	words.NewJudge(env.workloads).ConcludeFrom(&m.Run, m.Trials)
	return m, nil
}

// trialsOf reads the journal of a run, and what its reader must be told of it. After an error there are no trials.
func trialsOf(files *result.Files, run result.Run) (*insight.Summaries, []string, error) {
	var trials insight.Summaries
	stored, err := files.Stored(trials.Add)
	if err != nil {
		return insight.Summarize(result.List(nil)), nil, err
	}
	trials.Trials = stored
	return &trials, stored.Notes(run), nil
}

// rebase holds the networks of an imported run against another of them.
func (env *environment) rebase(m *insight.Measured, baseline string) error {
	if m.Run.Testbed != result.Imported {
		return usageError{fmt.Errorf("--baseline %s: only an imported run can have another baseline than it was measured with; show --pairs holds each two networks against one another", baseline)}
	}
	if err := imported.Rebase(&m.Run, baseline); err != nil {
		return usageError{fmt.Errorf("--baseline: %w", err)}
	}
	words.NewJudge(env.workloads).ConcludeFrom(&m.Run, m.Trials)
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
func (env *environment) reloadWithExact(files *result.Files, exact string) (insight.Measured, error) {
	m, err := env.reloadFrom(files)
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
