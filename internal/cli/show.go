package cli

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"netdelta/insight"
	"netdelta/result"
)

func newShowCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print the deltas of a run folder again",
		Long:  `Print the deltas of a run folder again, computed from its journal: also of a run that was killed or is still under way.`,
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			run, err := env.reload(a[0])
			if err != nil {
				return err
			}
			return env.print(run, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print result.json")
	return cmd
}

// reload takes a run's frame from result.json and its figures from the journal, which is the truth.
func (env *environment) reload(dir string) (result.Run, error) {
	run, err := result.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return run, withStatus(exitUsage, err)
	}
	if err != nil {
		return run, err
	}
	contents, err := result.LoadTrials(dir)
	if err != nil {
		return run, err
	}
	if contents.Torn != "" {
		run.Notes = append(run.Notes, contents.Torn)
	}
	insight.NewJudge(env.workloads).Conclude(&run, contents.Trials)
	return run, nil
}
