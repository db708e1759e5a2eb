package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Variable is the environment variable that lists the folders with plugins, as the specification has it.
const Variable = "CNI_PATH"

// Path is the folders that are searched: those that the variable lists, else those that distributions and Kubernetes use.
func Path() []string {
	if listed := filepath.SplitList(os.Getenv(Variable)); len(listed) > 0 {
		return listed
	}
	return []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}
}

// Find is where a plugin is, "" if it is in none of the folders.
func Find(name string, path []string) string {
	for _, dir := range path {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Where says in words where plugins are looked for.
func Where(path []string) string { return fmt.Sprintf("looked for in %s", strings.Join(path, ", ")) }
