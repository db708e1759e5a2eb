package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

func newShowCommand(env *environment) *cobra.Command {
	var asJSON bool
	var exact string
	cmd := &cobra.Command{
		Use:   "show DIR",
		Short: "Print the deltas of a run folder again",
		Long:  `Print the deltas of a run folder again, computed from its journal: also of a run that was killed or is still under way.`,
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			files, err := openRun(a[0])
			if err != nil {
				return err
			}
			m, err := env.reloadWithExact(files, exact)
			if err = errors.Join(err, files.Close()); err != nil {
				return err
			}
			if !asJSON {
				if printed, err := env.printStrategy(m); err != nil || printed && len(m.Run.Claims) == 0 {
					return err
				}
			}
			return env.print(m.Run, asJSON)
		},
	}
	cmd.Flags().StringVar(&exact, "exact", "", "`folder` of an exact run of the same study, to set beside this one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print result.json")
	return cmd
}
