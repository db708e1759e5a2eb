package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"netdelta/internal/ui"
	"netdelta/testbed/lab"
)

func newCleanupCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "cleanup",
		Short: "Remove whatever a killed run left",
		Long: `Remove whatever a killed run left: processes in its pods and temporary folders. Namespaces and links need no removal: they
end with the last process inside. Runs that are under way, and labs that are up, are left alone.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			labs, err := env.forgetLabs()
			if err != nil {
				printError(env.err, err.Error()) // what is left of runs must not stay for that
			}
			removed, err := lab.Cleanup(cmd.Context())
			for _, o := range removed {
				fmt.Fprintf(env.out, "removed %s\n", ui.Clean(o.String()))
			}
			if err != nil {
				return err
			}
			if len(removed)+labs == 0 {
				fmt.Fprintln(env.out, "nothing to clean up")
			}
			return nil
		},
	}
}

// forgetLabs removes what is recorded of labs whose keepers were killed, and says how many they were.
func (env *environment) forgetLabs() (int, error) {
	folder, err := env.labs()
	if err != nil {
		return 0, err
	}
	removed, err := folder.Clean()
	for _, name := range removed {
		fmt.Fprintf(env.out, "removed the record of lab %s, whose process has died\n", name)
	}
	return len(removed), err
}
