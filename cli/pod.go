package cli

import (
	"github.com/spf13/cobra"

	"netdelta/testbed/kube/inside"
)

// newPodCommand is netdelta in a pod of a cluster.
func newPodCommand() *cobra.Command {
	return &cobra.Command{
		Use:                inside.Verb,
		Short:              "Keep a pod of a cluster up, and start programs in it",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return inside.Do(args)
		},
	}
}
