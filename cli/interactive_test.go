package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// eventually waits until something has come true, and says whether it has.
func eventually(come func() bool) bool {
	for deadline := time.Now().Add(patience / 4); !come(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// halt stops a process, and waits until none of its threads runs any more.
func halt(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	threads := fmt.Sprintf("/proc/%d/task", pid)
	if !eventually(func() bool {
		all, err := procfile.Processes(threads)
		return err == nil && !slices.ContainsFunc(all, func(id int) bool {
			_, fields, err := procfile.Stat(threads, id)
			return err == nil && fields[0] != "T"
		})
	}) {
		t.Fatalf("process %d does not stop", pid)
	}
}

// terminal is one at which somebody types.
type terminal struct {
	t           *testing.T
	master, end *os.File
	cmd         *exec.Cmd
	mu          sync.Mutex
	text        bytes.Buffer
	read        int // how much of the text was expected already
	done        chan struct{}
}

// foreground waits until a program of this name is what the terminal's keys act on.
func (m *terminal) foreground(name string) {
	m.t.Helper()
	if !eventually(func() bool {
		group, err := unix.IoctlGetInt(int(m.master.Fd()), unix.TIOCGPGRP)
		if err != nil {
			m.t.Fatal(err)
		}
		now, _, err := procfile.Stat("/proc", group)
		return err == nil && now == name
	}) {
		m.t.Fatalf("%s is not in the foreground", name)
	}
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.Need(t, "pseudo terminals (/dev/ptmx)", err == nil)
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.Need(t, "pseudo terminals (/dev/pts)", err == nil)
	return &terminal{t: t, master: master, end: end, done: make(chan struct{})}
}

// start runs a call as the head of the terminal's session.
func (m *terminal) start(cmd *exec.Cmd) {
	m.t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Setctty = true, true
	cmd.Stdin, cmd.Stdout, cmd.Stderr = m.end, m.end, m.end
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.cmd = cmd
	m.t.Cleanup(func() {
		if cmd.ProcessState == nil { // the test has failed before it waited
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	if err := m.end.Close(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		defer close(m.done)
		part := make([]byte, 4096)
		for {
			n, err := m.master.Read(part)
			m.mu.Lock()
			m.text.Write(part[:n])
			m.mu.Unlock()
			if err != nil { // EIO when the last one who had it open has gone
				return
			}
		}
	}()
}

func (m *terminal) write(text string) {
	m.t.Helper()
	if _, err := m.master.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

// expect waits until a text is there, after what was expected before.
func (m *terminal) expect(text string) {
	m.t.Helper()
	if !eventually(func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		at := strings.Index(m.text.String()[m.read:], text)
		if at >= 0 {
			m.read += at + len(text)
		}
		return at >= 0
	}) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.t.Fatalf("the terminal does not show %q:\n%s", text, m.text.String())
	}
}

// wait returns the status of the call, when it has ended.
func (m *terminal) wait() int {
	m.t.Helper()
	e := await(m.t, m.cmd)
	<-m.done
	return e.status
}
