package cli

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// What kubectl calls this program: kubectl netdelta runs the file of the first name, and users know it by the second.
const (
	pluginFile = "kubectl-netdelta"
	pluginName = "kubectl netdelta"
)

// asPlugin makes the command line one of kubectl's plugin where the program was called by its name: it calls itself as users do,
// and a testbed that is not named is the cluster.
func asPlugin(root *cobra.Command, called string) {
	if filepath.Base(called) != pluginFile {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	for _, verb := range root.Commands() {
		if flag := verb.Flags().Lookup("testbed"); flag != nil && flag.Value.Set(kubeTestbed) == nil {
			flag.DefValue = kubeTestbed
			flag.Usage, _, _ = strings.Cut(flag.Usage, " (default")
		}
	}
}

// calledAs is how the user calls this program where it is not on the PATH by its name: as a plugin, or by a path from here, as bin/netdelta.
func calledAs() string {
	called := os.Args[0]
	switch {
	case filepath.Base(called) == pluginFile:
		return pluginName
	case strings.Contains(called, "/") && !filepath.IsAbs(called):
		return called
	}
	return ""
}
