// Package reaper starts programs from the first process of a PID namespace, and reaps the processes that others leave to it.
package reaper

import (
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
)

// Reaper knows the programs that were started through it, which Wait waits for. It reaps all other children of this process.
type Reaper struct {
	mu   sync.Mutex // held while a program is started, so that it is not reaped before it is known
	ours map[int]bool
}

// New reaps from now on, as long as this process runs.
func New() *Reaper {
	r := &Reaper{ours: map[int]bool{}}
	ended := make(chan os.Signal, 16)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			r.reap()
		}
	}()
	return r
}

func (r *Reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	pids, err := procfile.Processes("/proc")
	if err != nil {
		return
	}
	self := strconv.Itoa(os.Getpid())
	for _, pid := range pids {
		if r.ours[pid] {
			continue
		}
		// A process that can't be read has ended meanwhile.
		if _, fields, err := procfile.Stat("/proc", pid); err == nil && fields[procfile.StatState] == "Z" && fields[procfile.StatParent] == self {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // nothing else waits for it
		}
	}
}

// Start starts a program at the head of a session of its own.
func (r *Reaper) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.ours[cmd.Process.Pid] = true
	return nil
}

// Wait waits for a program that Start has started.
func (r *Reaper) Wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	r.mu.Lock()
	delete(r.ours, cmd.Process.Pid)
	r.mu.Unlock()
	r.reap() // what it left behind may have ended before it
	return err
}
