package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// children are the processes of a process 1. Those that others left to it are waited for too, and so package exec can't be used:
// its waiting and this one would take each other's children away.
type children struct {
	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
}

// newChildren waits for children from now on, as long as the program runs.
func newChildren() *children {
	c := &children{waiting: map[int]chan<- syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	go func() {
		for range ended {
			for c.reap() {
			}
		}
	}()
	return c
}

// reap waits for one child that has ended, and tells whether there was one.
func (c *children) reap() bool {
	// Held also while a child is started: one that ends at once must be known here before it is waited for.
	c.mu.Lock()
	defer c.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, unix.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if told, ok := c.waiting[pid]; ok {
		delete(c.waiting, pid)
		told <- status
	}
	return true
}

// start starts a program in a session of its own. How it ended arrives once.
func (c *children) start(args, env []string, output *os.File) (pid int, ended <-chan syscall.WaitStatus, err error) {
	if len(args) == 0 {
		return 0, nil, errors.New("a program without a name")
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return 0, nil, err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = nothing.Close() }()

	c.mu.Lock()
	defer c.mu.Unlock()
	pid, err = syscall.ForkExec(path, args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(os.Environ(), env...),
		Files: []uintptr{nothing.Fd(), output.Fd(), output.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", path, err)
	}
	told := make(chan syscall.WaitStatus, 1)
	c.waiting[pid] = told
	return pid, told, nil
}
