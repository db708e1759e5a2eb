// Package node is what runs as process 1 of a cluster's node: it makes the node's root out of the machine's, so that nothing that
// the node writes reaches the machine, and then starts, stops and restarts what it is told to, over its standard input.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/reaper"
	"netdelta/testbed/rpc"
)

// Node is a node that runs, seen from outside.
type Node struct {
	name string
	conn *rpc.Conn
	cmd  *exec.Cmd
}

// Start makes a node in a network namespace: program is started with the arguments there, and has to call Main. What it complains
// about goes to log.
func Start(space *netns.Namespace, program string, arguments []string, log *os.File, spec Spec) (*Node, error) {
	cmd := exec.Command(program, arguments...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID,
		Setsid:     true,
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := space.Do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start node %s: %w", spec.Name, err)
	}
	n := &Node{name: spec.Name, conn: rpc.NewConn(ends{out, in}, true), cmd: cmd}
	if err := n.ask(opPrepare, spec); err != nil {
		return nil, errors.Join(err, n.end())
	}
	return n, nil
}

// end ends the node.
func (n *Node) end() error {
	err := errors.Join(n.conn.Close(), n.cmd.Process.Kill())
	_ = n.cmd.Wait() // it was killed
	return err
}

// ends are the two directions of a connection.
type ends struct {
	io.Reader
	io.WriteCloser
}

// Write writes files of the node, each at once or not at all.
func (n *Node) Write(files ...File) error { return n.ask(opWrite, files) }

// StartService starts a service. The error says so if it runs already.
func (n *Node) StartService(s Service) error { return n.ask(opStart, s) }

// StopService ends a service, and returns when it has ended: it is asked to, and killed after ten seconds; or killed at once.
func (n *Node) StopService(name string, now bool) error {
	if now {
		return n.ask(opKill, name)
	}
	return n.ask(opStop, name)
}

// EndServices ends those services that run, at once.
func (n *Node) EndServices(names ...string) error { return n.ask(opEnd, names) }

// Run runs a command in the node to its end, and returns what it printed. The error has that too.
func (n *Node) Run(args ...string) (string, error) { return ask[string](n, opRun, args) }

func (n *Node) ask(op string, args any) error {
	_, err := ask[any](n, op, args)
	return err
}

func ask[R any](n *Node, op string, args any) (R, error) {
	value, err := rpc.Ask[R](context.Background(), n.conn, op, args)
	if err != nil {
		err = fmt.Errorf("node %s: %w", n.name, err)
	}
	return value, err
}

// Spec is what a node is. It is the first thing that its process 1 is told.
type Spec struct {
	// Name is the node's host name.
	Name string
	// Root is an empty folder of the machine. The node's root is mounted on it, where only the node sees it.
	Root string
	// Binds are folders of the machine that the node sees at other places.
	Binds []Bind
	// Memory are folders whose contents live in memory and begin empty.
	Memory []string
	// Links are symbolic links: their targets, by their paths.
	Links map[string]string
	// Files are written before anything is started.
	Files []File
}

// Bind is a folder of the machine that a node sees at To.
type Bind struct {
	From, To string
	ReadOnly bool
}

// File is a file of the node.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// Service is a program that runs until it is stopped, and is started again when it ends by itself.
type Service struct {
	// Name is unique in its node. It is the name of its log, too.
	Name string
	// Args are the program and its arguments.
	Args []string
	// Env are further variables of the environment, as NAME=VALUE.
	Env []string
}

// What process 1 of a node is asked for.
const (
	opPrepare = "prepare" // what a Spec says
	opWrite   = "write"   // a list of File
	opStart   = "start"   // a Service
	opStop    = "stop"    // a service, by its name
	opKill    = "kill"    // likewise, at once
	opEnd     = "end"     // those services of a list of names that run, at once
	opRun     = "run"     // a command; answers what it printed
)

// LogFolder is where services of a node write, a file each.
const LogFolder = "/var/log/netdelta"

const (
	// calm is how long a service that ended by itself stays ended, so that one that can't run does not keep the processors busy.
	calm = time.Second
	// graceful is how long a service may take to end when it is asked to.
	graceful = 10 * time.Second
)

// service is a Service that runs, or is about to run again.
type service struct {
	reaper *reaper.Reaper
	spec   Service
	log    *os.File
	quit   chan struct{} // closed when it shall not run again
	done   chan struct{} // closed when it has ended for good

	mu  sync.Mutex
	cmd *exec.Cmd // nil while it does not run
}

// run starts a service and starts it again when it ends, until it is stopped. It returns the error of the first start.
func run(r *reaper.Reaper, spec Service) (*service, error) {
	log, err := os.OpenFile(filepath.Join(LogFolder, spec.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	s := &service{reaper: r, spec: spec, log: log, quit: make(chan struct{}), done: make(chan struct{})}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go s.keep()
	return s, nil
}

func (s *service) start() error {
	cmd := command(s.spec.Args, s.spec.Env, s.log)
	err := s.reaper.Start(cmd)
	if err == nil {
		s.set(cmd)
	}
	return err
}

// keep starts the service again whenever it has ended.
func (s *service) keep() {
	defer close(s.done)
	defer func() { _ = s.log.Close() }()
	for {
		if cmd := s.cmd; cmd != nil { // it is set by this goroutine
			_ = s.reaper.Wait(cmd) // how it ended is in its state
			s.set(nil)
			fmt.Fprintf(s.log, "--- %s ended: %v\n", s.spec.Name, cmd.ProcessState)
		}
		select {
		case <-s.quit:
			return
		case <-time.After(calm):
		}
		if err := s.start(); err != nil {
			fmt.Fprintf(s.log, "--- %v\n", err)
		}
	}
}

func (s *service) set(cmd *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = cmd
}

// signal sends a signal to the service, if it runs.
func (s *service) signal(sig os.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig) // it may have ended this moment
	}
}

// stop ends the service for good: it is asked to, unless now is true, and killed when it takes too long.
func (s *service) stop(now bool) {
	close(s.quit)
	if !now {
		s.signal(unix.SIGTERM)
		select {
		case <-s.done:
			return
		case <-time.After(graceful):
		}
	}
	// A service that was started this moment, after quit was looked at, is met by a later turn.
	for {
		s.signal(unix.SIGKILL)
		select {
		case <-s.done:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}
