package keep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/rootless"
	"netdelta/testbed/rpc"
)

// Variable is the environment variable that names the folder where labs are recorded, instead of the usual places.
const Variable = "NETDELTA_LABS"

// Folder is where the labs of one user are recorded: for each a file to lock, a socket, and what its keeper complained about.
type Folder struct{ path string }

// The ends of the files' names; a lab's name stands before.
const (
	lockEnd   = ".lock"
	socketEnd = ".sock"
	logEnd    = ".log"
)

// OpenFolder finds this user's folder, which need not be there yet: below $XDG_RUNTIME_DIR, for root below /run, and failing that in the folder
// for temporary files. Other users can't read it; a folder of that name that belongs to another user is refused.
func OpenFolder(getenv func(string) string) (*Folder, error) {
	path := getenv(Variable)
	if path == "" {
		path = owner.RuntimeFolder(getenv, "netdelta")
	}
	path, err := filepath.Abs(path) // the keeper works in another folder
	if err != nil {
		return nil, fmt.Errorf("find the folder of labs: %w", err)
	}
	if err := private(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return &Folder{path}, nil
}

// make makes the folder if it is not there.
func (f *Folder) make() error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make the folder of labs: %w; name another in the variable %s", err, Variable)
	}
	return private(f.path)
}

// private refuses a folder that others can have put things into.
func private(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("look at the folder of labs: %w", err)
	}
	if !result.IsPrivate(info) {
		return fmt.Errorf("the folder of labs %s must be a folder of this user's that no other user can look into (mode 0700): "+
			"remove it, or name another in the variable %s", path, Variable)
	}
	return nil
}

// MaxName is the greatest length of a lab's name.
const MaxName = 32

// CheckName refuses names of labs that could be mistaken for flags or paths, or that a terminal would obey.
func CheckName(name string) error {
	allowed := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
	}
	if name == "" || len(name) > MaxName || name[0] == '-' || strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) }) {
		return fmt.Errorf("the lab's name %.64q: take 1 to %d letters, digits, dashes and underscores, and no dash in front", name, MaxName)
	}
	return nil
}

func (f *Folder) file(name, end string) string { return filepath.Join(f.path, name+end) }

// Names returns the names of all recorded labs, alive or not.
func (f *Folder) Names() ([]string, error) {
	entries, err := os.ReadDir(f.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the labs: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), lockEnd); ok && CheckName(name) == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// errTaken says that the lab's keeper lives.
var errTaken = errors.New("it is locked")

// lock takes the lock of a lab. The error is errTaken while a keeper, or a process that is about to start one, holds it.
func (f *Folder) lock(name string) (*os.File, error) {
	path := f.file(name, lockEnd)
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock the lab %s: %w", name, err)
		}
		if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			_ = file.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, errTaken
			}
			return nil, fmt.Errorf("lock the lab %s: %w", name, err)
		}
		// The previous holder may have removed the file meanwhile: then this lock protects nothing.
		if current(file, path) {
			return file, nil
		}
		_ = file.Close()
	}
}

// current tells whether an open file is still the one at the path.
func current(file *os.File, path string) bool {
	mine, err1 := file.Stat()
	now, err2 := os.Lstat(path)
	return err1 == nil && err2 == nil && os.SameFile(mine, now)
}

// forget removes the files of a lab whose lock is held, the lock last, and lets go of it.
func (f *Folder) forget(name string, lock *os.File) error {
	var failed error
	for _, end := range []string{socketEnd, logEnd, lockEnd} {
		if err := os.Remove(f.file(name, end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = errors.Join(failed, fmt.Errorf("remove what is recorded of the lab %s: %w", name, err))
		}
	}
	return errors.Join(failed, lock.Close())
}

// Clean removes what is recorded of labs whose keepers have died, and returns their names. The labs themselves went with their
// keepers.
func (f *Folder) Clean() ([]string, error) {
	names, err := f.Names()
	if err != nil {
		return nil, err
	}
	var removed []string
	for _, name := range names {
		lock, lockErr := f.lock(name)
		if errors.Is(lockErr, errTaken) {
			continue
		}
		if lockErr == nil {
			lockErr = f.forget(name, lock)
		}
		if lockErr != nil {
			err = errors.Join(err, lockErr)
			continue
		}
		removed = append(removed, name)
	}
	return removed, err
}

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
