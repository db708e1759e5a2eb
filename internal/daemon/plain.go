package daemon

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
)

// markVariable is the environment variable by which the processes of a plain sandbox are known, with the sandbox's folder.
const markVariable = "NETDELTA_HOME"

// mark is what the processes of a plain sandbox have in their environment.
func (h *Sandbox) mark() string { return markVariable + "=" + h.folder }

// prepare readies a plain sandbox. What its programs leave behind becomes a child of this process, so that it is found, and the
// container's first process tells it from orphans.
func (h *Sandbox) prepare() error {
	anywhere()
	return errors.Join(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), os.Mkdir(h.Path(temporary), 0o700))
}

// clearWithin is how long processes of a plain sandbox that were killed may take to be gone.
const clearWithin = 5 * time.Second

// clear ends what runs in a plain sandbox, and removes it.
func (h *Sandbox) clear() {
	killed := map[int]bool{}
	for end := time.Now().Add(clearWithin); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		for _, pid := range marked("/proc", h.mark()) {
			_ = unix.Kill(pid, unix.SIGKILL) // that it has just ended is as good
			killed[pid] = true
		}
		for pid := range killed {
			// It is a child by now, unless it is one of a process that is ending.
			if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid || errors.Is(err, unix.ECHILD) && unix.Kill(pid, 0) != nil {
				delete(killed, pid)
			}
		}
		if len(killed) == 0 {
			break
		}
	}
	_ = os.RemoveAll(h.folder) // it is in memory, and goes with the container
}

// EndOrphans ends the processes of plain sandboxes whose owner was killed: those that the container's first process, which calls this, has
// for children.
func EndOrphans() {
	for _, pid := range marked("/proc", markVariable+"=") {
		if _, fields, err := procfile.Stat("/proc", pid); err == nil && fields[procfile.StatParent] == strconv.Itoa(os.Getpid()) {
			_ = unix.Kill(pid, unix.SIGKILL) // that it has just ended is as good
		}
	}
}

// marked are the living processes that have a word in their environment that begins with mark.
func marked(proc, mark string) (pids []int) {
	files, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "environ")) // the pattern is right
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains("\x00"+string(text), "\x00"+mark) {
			continue // it has ended, or is somebody else's
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
