package workload

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestCandidates(t *testing.T) {
	t.Parallel()
	const policy = `fio:
  Installed: 3.33-3
  Candidate: 3.33-3
  Version table:
 *** 3.33-3 500
        500 http://deb.debian.org/debian bookworm/main amd64 Packages
netperf:
  Installed: (none)
  Candidate: (none)
  Version table:
nginx-light:
  Installed: (none)
  Candidate: 1.22.1-9
`
	if got := candidates(policy); !slices.Equal(got, []string{"fio", "nginx-light"}) {
		t.Errorf("apt has candidates for %q", got)
	}
	if got := candidates(""); len(got) != 0 {
		t.Errorf("apt has candidates for %q", got)
	}
}

// What apt does not know is not to be installed by it.
func TestInstallation(t *testing.T) {
	t.Parallel()
	says := Installation([]string{"no-such-package"})
	if _, err := exec.LookPath("apt-cache"); err == nil && (strings.Contains(says, "apt install") || !strings.Contains(says, "no candidate for no-such-package")) {
		t.Errorf("to install no-such-package: %q", says)
	}
}
