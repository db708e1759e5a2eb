package keep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/rpc"
)

// Start builds a lab and leaves it to a keeper of its own: this program again, called with the arguments and the name, which
// must call Hold. It returns when the lab is up, or an error that says why it is not.
func (f *Folder) Start(ctx context.Context, name string, spec testbed.Spec, args ...string) (Status, error) {
	fail := func(err error) (Status, error) { return Status{}, fmt.Errorf("start lab %s: %w", name, err) }
	if err := CheckName(name); err != nil {
		return fail(err)
	}
	if err := f.make(); err != nil {
		return fail(err)
	}
	lock, err := f.lock(name)
	if errors.Is(err, errTaken) {
		return Status{}, &UnknownError{fmt.Sprintf("there is a lab %s already; take it down with netdelta lab down --name %s, or give the new one another name with --name", name, name)}
	}
	if err != nil {
		return fail(err)
	}
	status, err := f.start(ctx, order{Name: name, Folder: f.path, Spec: spec}, lock, args)
	if err != nil {
		return Status{}, errors.Join(err, f.forget(name, lock))
	}
	return status, lock.Close() // the keeper has it
}

// start starts the keeper and waits for its first answer.
func (f *Folder) start(ctx context.Context, o order, lock *os.File, args []string) (Status, error) {
	fail := func(err error) (Status, error) { return Status{}, fmt.Errorf("start lab %s: %w", o.Name, err) }
	self, err := os.Executable()
	if err != nil {
		return Status{}, fmt.Errorf("find this program's file: %w", err)
	}
	// A keeper that was killed may have left its socket.
	if err := os.Remove(f.file(o.Name, socketEnd)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fail(err)
	}
	log, err := os.OpenFile(f.file(o.Name, logEnd), os.O_CREATE|os.O_TRUNC|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = log.Close() }()
	text, err := json.Marshal(o)
	if err != nil {
		return fail(err)
	}
	cmd := exec.CommandContext(ctx, self, append(args, o.Name)...)
	cmd.Dir, cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = "/", bytes.NewReader(text), log, []*os.File{lock}
	if err := detach(cmd); err != nil {
		return Status{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fail(err)
	}
	if err := cmd.Start(); err != nil {
		return Status{}, rootless.Refusal(err)
	}
	var said rpc.Answer
	if err = json.NewDecoder(out).Decode(&said); err == nil && said.Error == nil {
		var s Status
		return s, errors.Join(json.Unmarshal(said.Value, &s), cmd.Process.Release())
	}
	_ = cmd.Wait() // what counts is what it said
	switch {
	case ctx.Err() != nil:
		return fail(ctx.Err())
	case err != nil:
		return fail(fmt.Errorf("its keeper ended without a word (%s): %s", cmd.ProcessState, tail(f.file(o.Name, logEnd))))
	}
	return Status{}, fromKeeper(said.Error)
}

// detach gives the keeper a session of its own, which outlives the terminal, and where it is needed a user namespace.
func detach(cmd *exec.Cmd) error {
	lacking, err := rootless.Lacking()
	if err != nil {
		return err
	}
	cmd.SysProcAttr, cmd.Env = &syscall.SysProcAttr{}, os.Environ()
	if lacking {
		cmd.SysProcAttr, cmd.Env = rootless.Attributes(), rootless.Environment(cmd.Env)
	}
	cmd.SysProcAttr.Setsid = true
	return nil
}

// tail is the end of what a keeper complained about.
func tail(path string) string {
	const most = 2000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}

// order is what a keeper is started with, on its standard input. Its first answer, on its standard output, is the lab's status.
type order struct {
	Name   string       `json:"name"`
	Folder string       `json:"folder"`
	Spec   testbed.Spec `json:"spec"`
}

// The operations of a keeper. A client has a connection for each request, and greets the keeper first.
const (
	opStatus = "status"
	opEnter  = "enter" // takes the name of a pod or node
	opSwap   = "swap"  // takes the name of a network
	opDown   = "down"  // removes the lab and ends the keeper
)

// entrance is the answer to opEnter: files of the keeper, which stay open as long as the connection, and the lab's mark.
type entrance struct {
	User    string `json:"user"`
	Network string `json:"network"`
	Mark    string `json:"mark"`
}

// Status is what a keeper tells of its lab.
type Status struct {
	Name    string        `json:"name"`
	Network string        `json:"network"`
	Family  result.Family `json:"family,omitempty"`
	Nodes   int           `json:"nodes"`
	Started time.Time     `json:"started"`
	PID     int           `json:"pid"` // of the keeper
	// Rootless tells a lab in a user namespace from one of root.
	Rootless bool  `json:"rootless"`
	Pods     []Pod `json:"pods"`
	// Path lists the devices from the first pod to the last, "" where there is only one pod.
	Path string `json:"path,omitempty"`
	// Trouble says why the keeper does not answer; only the name is known then.
	Trouble string `json:"trouble,omitempty"`
}

// Pod is an endpoint of a lab that is up.
type Pod struct {
	Name    string `json:"name"`
	Node    string `json:"node"`
	Address string `json:"address"`
	// Reached is where the first pod reaches a server of this one that listens on Port, the first port that is open to all.
	Reached string `json:"reached"`
	Port    uint16 `json:"port"`
}

// UnknownError says that there is no lab, pod, node or network of a name.
type UnknownError struct{ msg string }

// Error implements error.
func (e *UnknownError) Error() string { return e.msg }

const kindUnknown = "unknown"

// Kind implements rpc.Kinder.
func (e *UnknownError) Kind() (string, any) { return kindUnknown, nil }
