package procfile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Groups is where a pod sees its own control groups.
const Groups = "/sys/fs/cgroup"

// Starved is how many processes of a control group the kernel has killed for want of memory, 0 where it does not say. The group is the one
// that the folder shows: see Groups.
func Starved(groups string) int {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} {
		text, err := os.ReadFile(filepath.Join(groups, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if count, is := strings.CutPrefix(line, "oom_kill "); is {
				n, _ := strconv.Atoi(strings.TrimSpace(count)) // the kernel's own number
				return n
			}
		}
	}
	return 0
}
