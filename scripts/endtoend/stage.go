package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
)

// stage is where scenes are played.
type stage struct {
	program string // the binary, absolute
	folder  string // for run folders
}

// command prepares a call of the program.
func (s *stage) command(out, complaints *bytes.Buffer, arguments ...string) *exec.Cmd {
	cmd := exec.Command(s.program, arguments...)
	cmd.Dir = s.folder
	cmd.Stdout, cmd.Stderr = out, complaints
	return cmd
}

// call runs the program to its end and returns what it printed.
func (s *stage) call(arguments ...string) ([]byte, error) {
	var out, complaints bytes.Buffer
	if err := s.command(&out, &complaints, arguments...).Run(); err != nil {
		return out.Bytes(), failure(arguments, err, complaints.String())
	}
	return out.Bytes(), nil
}

func failure(arguments []string, err error, complaints string) error {
	return fmt.Errorf("netdelta %s: %w\n%s", strings.Join(arguments, " "), err, strings.TrimSpace(complaints))
}

// patience is how long the kernel may take to remove what nobody holds any more.
const patience = 20 * time.Second

// unchanged plays a scene and holds the machine against what it was before: the host's network and settings, the processes
// that carry a mark of netdelta, the network namespaces of all processes, and shared memory.
func (s *stage) unchanged(play func() error) error {
	before, err := leak.Host()
	if err != nil {
		return err
	}
	old, err := marked()
	if err != nil {
		return err
	}
	spaces := namespaces()
	shared, err := filepath.Glob(sharedMemory)
	if err != nil {
		return err
	}
	played := play()
	var left error
	for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		if left = errors.Join(differs(before, old, spaces), sharing(shared)); left == nil || time.Now().After(deadline) {
			return errors.Join(played, left)
		}
	}
}

// sharedMemory are the files by which programs share memory.
const sharedMemory = "/dev/shm/*"

// sharing says which of them are new.
func sharing(before []string) error {
	now, err := filepath.Glob(sharedMemory)
	if err != nil {
		return err
	}
	if more := slices.DeleteFunc(now, func(f string) bool { return slices.Contains(before, f) }); len(more) > 0 {
		return fmt.Errorf("shared memory is left: %s", strings.Join(more, " "))
	}
	return nil
}

func differs(before leak.Snapshot, old, spaces map[string]bool) error {
	after, err := leak.Host()
	if err != nil {
		return err
	}
	if changes := leak.Diff(before, after); len(changes) > 0 {
		return fmt.Errorf("the host is not as it was: %s", strings.Join(changes, "; "))
	}
	now, err := marked()
	if err != nil {
		return err
	}
	for p := range now {
		if !old[p] {
			return fmt.Errorf("a process is left: %s", p)
		}
	}
	for n := range namespaces() {
		if !spaces[n] {
			return fmt.Errorf("a process sits in the namespace %s, which was not there before", n)
		}
	}
	return nil
}

// marked are the processes that some netdelta started in a pod.
func marked() (map[string]bool, error) {
	processes, err := owner.Processes()
	if err != nil {
		return nil, err
	}
	all := map[string]bool{}
	for _, p := range processes {
		all[fmt.Sprintf("%s (%d)", p.Name, p.PID)] = true
	}
	return all, nil
}

// namespaces are those network namespaces in which a process sits.
func namespaces() map[string]bool {
	all := map[string]bool{}
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, path := range paths {
		if name, err := os.Readlink(path); err == nil {
			all[name] = true
		}
	}
	return all
}
