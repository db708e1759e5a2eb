package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// refused fails unless a run was refused before anything was built, and said why and what to do.
func (c *chaos) refused(e ending, began time.Time, words ...string) {
	c.Helper()
	c.ended(began)
	e.want(c.T, statusNothing).says(c.T, append(words, "--networks")...)
	if left := entries(c.T, filepath.Join(c.dir, "run")); len(left) > 0 {
		c.Errorf("the run that did not begin has left %q", left)
	}
	_, c.said, _ = strings.Cut(strings.TrimSpace(e.stderr), "measured here: its ")
}

// limited runs a study under limits of the shell.
func (c *chaos) limited(limit string) ending {
	c.Helper()
	cmd := exec.Command("sh", append([]string{"-c", "ulimit " + limit + ` && exec "$0" "$@"`, os.Getenv(tested)}, three("--out", "run", "--quiet")...)...)
	cmd.Dir = c.dir
	return finish(c.T, cmd)
}

// Too few descriptors are said before anything is built.
func fewDescriptors(c *chaos) {
	began := time.Now()
	c.refused(c.limited("-n 100"), began, "open files at once, and the limit is 100", "ulimit -n")
}

// Descriptors that this user may have are taken without a word.
func fewDescriptorsAtFirst(c *chaos) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		c.Fatal(err)
	}
	require.Need(c.T, "a limit of open files above 1000", limit.Max > 1000)
	c.limited("-S -n 100").want(c.T, statusDone).shows(c.T, "bridge", "macvlan")
	if _, failed := c.count("run"); failed > 0 {
		c.Errorf("%d trials failed", failed)
	}
	c.said = "the soft limit is raised"
}

// Too few network namespaces are said before anything is built. The limit is of a user namespace of the test's own.
func fewNamespaces(c *chaos) {
	unshare := require.Tool(c.T, "unshare")
	began := time.Now()
	cmd := exec.Command(unshare, append([]string{
		"-Urnm", "sh", "-c", `echo 12 >/proc/sys/user/max_net_namespaces && exec "$0" "$@"`, os.Getenv(tested)}, three("--out", "run", "--quiet")...)...)
	cmd.Dir = c.dir
	c.refused(finish(c.T, cmd), began, "network namespaces at once, and the limit is 12", "sysctl -w user.max_net_namespaces")
}

// Too little memory is said before anything is built: here a control group limits it, as a container does.
func lowMemory(c *chaos) {
	t := c.T
	group, limit := memoryGroup(c)
	t.Cleanup(func() {
		if !eventually(func() bool { return os.Remove(group) == nil }) {
			t.Errorf("%s is left", group)
		}
	})
	if err := os.WriteFile(filepath.Join(group, limit), []byte(strconv.Itoa(100<<20)), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	cmd := exec.Command("sh", append([]string{
		"-c", `echo $$ >"` + group + `/cgroup.procs" && exec "$0" "$@"`, os.Getenv(tested)}, three("--out", "run", "--quiet")...)...)
	cmd.Dir = c.dir
	c.refused(finish(t, cmd), began, "of memory at once, and ", " are free", "control group")
}

// memoryGroup makes a control group that can limit memory, below the test's own, and gives the name of its limit.
func memoryGroup(c *chaos) (path, limit string) {
	self, err := procfs.Self()
	if err != nil {
		c.Fatal(err)
	}
	groups, err1 := self.Cgroups()
	mounts, err2 := procfs.GetMounts()
	if err := errors.Join(err1, err2); err != nil {
		c.Fatal(err)
	}
	for _, m := range mounts {
		for _, g := range groups {
			_, memory := m.SuperOptions["memory"]
			limit = map[string]string{"cgroup": "memory.limit_in_bytes", "cgroup2": "memory.max"}[m.FSType]
			if limit == "" || m.FSType == "cgroup" && !(memory && slices.Contains(g.Controllers, "memory")) || m.FSType == "cgroup2" && g.HierarchyID != 0 {
				continue
			}
			path = filepath.Join(m.MountPoint, g.Path, "netdelta-chaos-"+strconv.Itoa(os.Getpid()))
			if os.Mkdir(path, 0o755) != nil {
				continue
			}
			if _, err := os.Stat(filepath.Join(path, limit)); err == nil {
				return path, limit
			}
			_ = os.Remove(path) // it was made above
		}
	}
	require.Need(c.T, "a control group of its own that limits memory", false)
	return "", ""
}

// Without /proc nothing can be known of the machine, which is said.
func noProc(c *chaos) {
	began := time.Now()
	e := c.inPrivate(`umount -l /proc || exit 77
		exec "$0" "$@"`, three("--out", "run", "--quiet")...)
	c.ended(began)
	e.want(c.T, statusFailed).says(c.T, "/proc is not mounted", "mount -t proc proc /proc")
	c.said = "/proc is not mounted; mount it"
}
