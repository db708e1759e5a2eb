package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/report/words"
	"netdelta/result"
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
