package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"netdelta/internal/require"
)

// Limits under which the runtime can't go on are said in a sentence before anything is begun. A limit that leaves room is none.
func TestSmallLimits(t *testing.T) {
	prlimit := require.Tool(t, "prlimit")
	u := ordinaryUser(t)
	require.Need(t, "root, to become a user who runs nothing else", os.Geteuid() == 0)
	for name, c := range map[string]struct {
		limit  string
		status int
		says   string
	}{
		"address space": {"--as=1900000000", statusFailed, "ulimit -v unlimited"},
		"processes":     {"--nproc=60", statusFailed, "ulimit -u 4096"},
		"room":          {"--nproc=4000", statusDone, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := u.command(t, "list", "networks")
			cmd.Args = append([]string{prlimit, c.limit}, cmd.Args...)
			cmd.Path = prlimit
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: ordinaryID + 1, Gid: ordinaryID + 1}
			finish(t, cmd).want(t, c.status).says(t, c.says)
		})
	}
}

// The room of a control group counts too. The group is one of the test's own, in the hierarchy that the machine has mounted, or else one that
// the program sees in a mount namespace of the test's own.
func TestSmallControlGroup(t *testing.T) {
	require.Namespaces(t)
	sh := require.Tool(t, "sh")
	seen := t.TempDir() // stands for the program's group
	write(t, filepath.Join(seen, "pids.max"), "20\n")
	write(t, filepath.Join(seen, "pids.current"), "11\n")
	cmd := exec.Command(sh, "-c", `for at in $(awk '$3 ~ /^cgroup/ && ($3 == "cgroup2" || $4 ~ /pids/) {print $2}' /proc/mounts); do
		group=$(awk -F: -v two="$(stat -f -c %T $at)" '(two == "cgroup2fs" && $1 == 0) || $2 ~ /pids/ {print $3; exit}' /proc/self/cgroup)
		[ -d "$at$group" ] || group=
		mount --bind "$0" "$at$group" && exec "$1" list networks
	done; exit 77`, seen, os.Getenv(tested))
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} // whose mounts stay there
	e := finish(t, cmd)
	require.Need(t, "control groups that are mounted", e.status != 77)
	e.want(t, statusFailed).says(t, "allows 20 processes and threads", "of which 11", "pids.max")
}
