package agent

import (
	"os"
	"strings"
)

// place is the same for two processes if and only if a process number means the same process to both: they run under the
// same boot of a kernel and in the same PID namespace. It is "" where that can't be told.
func place() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + namespace
}
