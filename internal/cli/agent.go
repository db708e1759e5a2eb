package cli

import (
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"

	"netdelta/internal/agent"
)

// agentMemory is where an agent's collector steps in: far above what bursts need, so that it never does within one.
const agentMemory = 256 << 20

func newAgentCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    agent.Subcommand,
		Short:  "Run workloads inside a pod, spoken to over standard input and output",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			debug.SetGCPercent(-1)
			debug.SetMemoryLimit(agentMemory)
			if err := agent.Serve(env.in, env.out, env.workloads); err != nil {
				return err
			}
			// The controller has gone. A burst may still be under way in another goroutine: it must not keep the process.
			os.Exit(exitDone)
			return nil
		},
	}
}
