package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"netdelta/internal/machine"
)

func newVersionCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which netdelta this is, and what it was built from",
		Example: `  netdelta version
  netdelta version --json`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error { return env.printVersion(asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// printVersion prints what this program was built from, and which file it sends to where it measures.
func (env *environment) printVersion(asJSON bool) error {
	sent, err := machine.SentProgram()
	if err != nil {
		sent = err.Error()
	}
	b := machine.ThisBuild()
	if asJSON {
		return json.NewEncoder(env.out).Encode(struct {
			machine.Build
			Agent string `json:"agent"`
		}{b, sent})
	}
	revision := b.Revision
	switch {
	case revision == "":
		revision = "unknown"
	case b.Modified:
		revision += ", " + b.Time + ", with changes"
	default:
		revision += ", " + b.Time
	}
	fmt.Fprintf(env.out, "netdelta %s\nrevision  %s\nbuilt by  %s for %s\nagent     %s\n", b.Version, revision, b.Go, b.Platform, sent)
	return nil
}
