package endtoend

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
	"netdelta/internal/require"
)

// user uses the program.
type user struct {
	program string // the binary, absolute
	folder  string // for run folders
}

// command prepares a call of the program.
func (u *user) command(out, complaints *bytes.Buffer, arguments ...string) *exec.Cmd {
	cmd := exec.Command(u.program, arguments...)
	cmd.Dir = u.folder
	cmd.Stdout, cmd.Stderr = out, complaints
	return cmd
}

// call runs the program to its end and returns what it printed.
func (u *user) call(arguments ...string) ([]byte, error) {
	var out, complaints bytes.Buffer
	if err := u.command(&out, &complaints, arguments...).Run(); err != nil {
		return out.Bytes(), failure(arguments, err, complaints.String())
	}
	return out.Bytes(), nil
}

func failure(arguments []string, err error, complaints string) error {
	return fmt.Errorf("netdelta %s: %w\n%s", strings.Join(arguments, " "), err, strings.TrimSpace(complaints))
}

// How long the kernel may take to remove what no process holds any more, and services may take to start.
const (
	patience    = 20 * time.Second
	startWithin = 2 * time.Minute
)

// killed starts the program, kills it once a process of this name runs for it, and cleans up.
func (u *user) killed(name string, arguments []string) error {
	var out, complaints bytes.Buffer
	cmd := u.command(&out, &complaints, arguments...)
	if err := cmd.Start(); err != nil {
		return err
	}
	err := awaits(name, cmd.Process.Pid)
	if errKill := cmd.Process.Kill(); errKill != nil {
		err = errors.Join(err, fmt.Errorf("it ended by itself before %s ran: %w\n%s", name, errKill, complaints.String()))
	}
	_ = cmd.Wait() // it was killed, and says so
	_, errCleanup := u.call("cleanup")
	return errors.Join(err, errCleanup)
}

// awaits waits until a process of this name runs for a run.
func awaits(name string, run int) error {
	return require.Await(startWithin, fmt.Sprintf("process %s runs", name), func() error {
		all, err := owner.Processes()
		if err == nil && !slices.ContainsFunc(all, func(p owner.Process) bool { return p.Name == name && p.Owner.PID == run }) {
			err = errors.New("there is none")
		}
		return err
	})
}

// unchanged carries something out and compares the machine with what it was before: the host's network and settings, and what netdelta
// may leave.
func unchanged(do func() error) error {
	host, err := leak.Host()
	if err != nil {
		return err
	}
	old, err := leftovers()
	if err != nil {
		return err
	}
	done := do()
	return errors.Join(done, require.Await(patience, "nothing is left", func() error { return differs(host, old) }))
}

func differs(host leak.Snapshot, old map[string]bool) error {
	now, err := leak.Host()
	if err != nil {
		return err
	}
	if changes := leak.Diff(host, now); len(changes) > 0 {
		return fmt.Errorf("the host is not as it was: %s", strings.Join(changes, "; "))
	}
	left, err := leftovers()
	if err != nil {
		return err
	}
	maps.DeleteFunc(left, func(what string, _ bool) bool { return old[what] })
	if len(left) > 0 {
		return fmt.Errorf("this is left: %s", strings.Join(slices.Sorted(maps.Keys(left)), "; "))
	}
	return nil
}

// leftovers are what a run could leave: processes that carry netdelta's mark, network namespaces that a process is in, and shared memory.
func leftovers() (map[string]bool, error) {
	processes, err := owner.Processes()
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, p := range processes {
		all[fmt.Sprintf("process %s (%d)", p.Name, p.PID)] = true
	}
	spaces, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return nil, err
	}
	for _, path := range spaces {
		if name, err := os.Readlink(path); err == nil { // the process may have ended
			all["a process in the namespace "+name] = true
		}
	}
	shared, err := filepath.Glob("/dev/shm/*")
	for _, path := range shared {
		all["shared memory "+path] = true
	}
	return all, err
}
