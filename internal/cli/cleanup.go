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
end with the last process inside. Runs that are under way are left alone.`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			removed, err := lab.Cleanup(cmd.Context())
			for _, o := range removed {
				fmt.Fprintf(env.out, "removed %s\n", ui.Clean(o.String()))
			}
			if err != nil {
				return err
			}
			if len(removed) == 0 {
				fmt.Fprintln(env.out, "nothing to clean up")
			}
			return nil
		},
	}
}
