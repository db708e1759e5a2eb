package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := os.MkdirAll(a[0], 0o755); err != nil {
				return fmt.Errorf("making the folder for manual pages: %w", err)
			}
			header := &doc.GenManHeader{Title: "NETDELTA", Section: "1", Source: "netdelta", Manual: "netdelta manual"}
			return doc.GenManTree(cmd.Root(), header, a[0])
		},
	}
}
