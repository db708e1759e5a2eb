package leak

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/owner"
	"netdelta/internal/procfile"
)

// patience is how long threads and goroutines that are about to end may take.
const patience = 3 * time.Second

// Main runs the tests of a package and fails if they leave file descriptors of namespaces or of eBPF programs, threads inside
// namespaces, control groups, or processes. A TestMain calls it and exits with what it returns.
func Main(m *testing.M) int {
	code := m.Run()
	found := Own()
	for deadline := time.Now().Add(patience); len(found) > 0 && time.Now().Before(deadline); found = Own() {
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
	}
	for _, f := range found {
		fmt.Fprintln(os.Stderr, "leak:", f)
	}
	if code == 0 && len(found) > 0 {
		code = 1
	}
	return code
}

// Own lists what this program holds of other network namespaces and of eBPF programs, the control groups that it made, and the
// processes that it started and that run still.
func Own() []string {
	var found []string
	home, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return []string{err.Error()}
	}
	for _, fd := range entries("/proc/self/fd/*") {
		target, err := os.Readlink(fd)
		switch {
		case err != nil:
		case strings.HasPrefix(target, "net:[") && target != home:
			found = append(found, "file descriptor "+filepath.Base(fd)+" of namespace "+target)
		case slices.Contains([]string{"anon_inode:bpf-prog", "anon_inode:bpf-map", "anon_inode:bpf_link"}, target):
			found = append(found, "file descriptor "+filepath.Base(fd)+" of "+target)
		}
	}
	for _, task := range entries("/proc/self/task/*") {
		if target, err := os.Readlink(task + "/ns/net"); err == nil && target != home {
			found = append(found, "thread "+filepath.Base(task)+" in namespace "+target)
		}
	}
	marked, err := owner.Processes()
	if err != nil {
		return append(found, err.Error())
	}
	self, err := owner.Self()
	if err != nil {
		return append(found, err.Error())
	}
	for _, g := range groups() {
		if strings.Contains(filepath.Base(g), self.String()) {
			found = append(found, "control group "+g)
		}
	}
	for _, p := range marked {
		if p.Owner == self {
			found = append(found, fmt.Sprintf("process %s (%d)", p.Name, p.PID))
		}
	}
	return append(found, children()...)
}

// children lists the processes whose parent is this one, those not waited for too.
func children() []string {
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return []string{err.Error()}
	}
	var found []string
	for _, pid := range pids {
		if _, fields, err := procfile.Stat("/proc", pid); err == nil && fields[procfile.StatParent] == fmt.Sprint(os.Getpid()) {
			found = append(found, fmt.Sprintf("child process %d in state %s", pid, fields[procfile.StatState]))
		}
	}
	return found
}

// groups lists all control groups.
func groups() []string {
	var found []string
	// What can't be seen was not made here.
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			found = append(found, path)
		}
		return nil
	})
	return found
}

func entries(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		panic(err) // the patterns are constants
	}
	return found
}
