package cli

import (
	"github.com/spf13/cobra"

	"netdelta/agent"
)

func newAgentCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    agent.Subcommand,
		Short:  "Run workloads inside a pod, spoken to over standard input and output",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		Run:    func(*cobra.Command, []string) { agent.Become(env.workloads) },
	}
}
