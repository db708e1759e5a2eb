package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"netdelta/testbed/lab/rootless"
)

// rootless has a verb that builds labs carried out in a user namespace where this user lacks the rights for them.
func (env *environment) rootless(cmd *cobra.Command) *cobra.Command {
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		if _, entered := rootless.Entered(); entered {
			if err := rootless.Verify(); err != nil {
				return err
			}
			return inner(cmd, a)
		}
		lacking, err := rootless.Lacking()
		if err != nil {
			return err
		}
		if !lacking {
			return inner(cmd, a)
		}
		// What killed runs of this user left can't be seen from inside: each is in a user namespace of its own.
		sweep(cmd.Context(), env)
		ended, err := rootless.Run(os.Args[1:], os.Stdout)
		if err != nil {
			return err
		}
		if status := rootless.Pass(ended); status != exitDone {
			return withStatus(status, errors.New(""))
		}
		return nil
	}
	return cmd
}
