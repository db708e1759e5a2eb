package workload

import (
	"os/exec"
	"slices"
	"strings"
)

// Installation says how to install packages of Debian on this machine: "apt install a b". Of packages that apt has no candidate for it says that,
// and what may help.
func Installation(packages []string) string {
	known := offered(packages)
	var none []string
	packages = slices.DeleteFunc(slices.Clone(packages), func(name string) bool {
		if slices.Contains(known, name) {
			return false
		}
		none = append(none, name)
		return true
	})
	var says []string
	if len(packages) > 0 {
		says = append(says, "apt install "+strings.Join(packages, " "))
	}
	if len(none) > 0 {
		says = append(says, "apt has no candidate for "+strings.Join(none, ", ")+" here: run apt update, add a source that has it, or build it from source")
	}
	return strings.Join(says, "; ")
}

// offered are the packages that apt can install here. Where apt can't be asked they are all, since nothing is known of other package managers.
func offered(packages []string) []string {
	ask := exec.Command("apt-cache", append([]string{"policy"}, packages...)...)
	ask.Env = append(ask.Environ(), "LC_ALL=C")
	said, err := ask.Output()
	if err != nil {
		return packages
	}
	return candidates(string(said))
}

// candidates are the packages that have a candidate by what apt-cache policy says:
//
//	netperf:
//	  Installed: (none)
//	  Candidate: (none)
func candidates(policy string) (names []string) {
	name := ""
	for line := range strings.Lines(policy) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, " ") {
			name = strings.TrimSuffix(line, ":")
		} else if version, is := strings.CutPrefix(strings.TrimSpace(line), "Candidate: "); is && version != "(none)" {
			names = append(names, name)
		}
	}
	return names
}
