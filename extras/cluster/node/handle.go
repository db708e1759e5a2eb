package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"

	"netdelta/internal/netns"
)

// Node is a node that runs, seen from outside.
type Node struct {
	name string
	cmd  *exec.Cmd

	mu       sync.Mutex // held during a request
	requests *json.Encoder
	answers  *json.Decoder
	in       io.Closer
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
	n := &Node{name: spec.Name, cmd: cmd, requests: json.NewEncoder(in), answers: json.NewDecoder(out), in: in}
	if _, err := n.ask(request{Operation: opSpec, Spec: &spec}); err != nil {
		return nil, errors.Join(err, in.Close(), cmd.Process.Kill())
	}
	return n, nil
}

// Name is the node's host name.
func (n *Node) Name() string { return n.name }

// Write writes files of the node, each at once or not at all.
func (n *Node) Write(files ...File) error {
	_, err := n.ask(request{Operation: opWrite, Files: files})
	return err
}

// StartService starts a service. The error says so if it runs already.
func (n *Node) StartService(s Service) error {
	_, err := n.ask(request{Operation: opStart, Service: &s})
	return err
}

// StopService ends a service, and returns when it has ended: it is asked to, and killed after ten seconds; or killed at once.
func (n *Node) StopService(name string, now bool) error {
	op := opStop
	if now {
		op = opKill
	}
	_, err := n.ask(request{Operation: op, Name: name})
	return err
}

// Run runs a command in the node to its end, and returns what it printed. The error has that too.
func (n *Node) Run(args ...string) (string, error) {
	return n.ask(request{Operation: opRun, Args: args})
}

func (n *Node) ask(r request) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.requests.Encode(r); err != nil {
		return "", fmt.Errorf("ask node %s: %w", n.name, err)
	}
	var a answer
	if err := n.answers.Decode(&a); err != nil {
		return "", fmt.Errorf("node %s has ended: %w", n.name, err)
	}
	if a.Error != "" {
		return "", fmt.Errorf("node %s: %w", n.name, errors.New(a.Error))
	}
	return a.Output, nil
}
