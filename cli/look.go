package cli

import (
	"github.com/spf13/cobra"

	"netdelta/testbed/kube/nodeagent"
)

// newLookCommand looks at the network namespace that it is started in, for a run on a cluster.
func newLookCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    nodeagent.Verb,
		Short:  "Look at devices and packets inside a pod or on a node, asked over standard input and output",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE:   func(*cobra.Command, []string) error { return nodeagent.Serve(env.in, env.out) },
	}
}
