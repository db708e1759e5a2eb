package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"netdelta/internal/tail"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// step is an action with all that it takes to carry it out.
type step struct {
	Command []string `json:"command,omitempty"`
	// Manifest and Delete are the names of files, Objects what was in them.
	Manifest string `json:"manifest,omitempty"`
	Delete   string `json:"delete,omitempty"`
	Objects  string `json:"objects,omitempty"`
}

// steps of a change.
type steps struct{ apply, ready, restore, settle []step }

// carrier carries steps out on a cluster.
type carrier struct {
	cluster    *kube.Cluster
	dir        string
	kubeconfig string
	log        io.Writer
	objects    *objects // made when first needed
}

// prepare reads all files that a change needs, so that what is wrong with one of them is found before anything is done.
func (c *carrier) prepare(change testbed.Change) (steps, error) {
	var all steps
	for _, part := range []struct {
		name    string
		actions []testbed.Action
		to      *[]step
	}{{"apply", change.Apply, &all.apply}, {"ready", change.Ready, &all.ready}, {"restore", change.Restore, &all.restore}, {"settle", change.Settle, &all.settle}} {
		for _, a := range part.actions {
			s := step{Command: a.Command, Manifest: a.Manifest, Delete: a.Delete}
			if err := s.load(); err != nil {
				return steps{}, fmt.Errorf("%s, %s: %w", testbed.ChangedFor(change.Network), part.name, err)
			}
			*part.to = append(*part.to, s)
		}
	}
	return all, nil
}

// load reads the objects of a step, or finds its program.
func (s *step) load() error {
	path := s.Manifest + s.Delete
	if path == "" {
		if _, err := exec.LookPath(s.Command[0]); err != nil && !errors.Is(err, exec.ErrDot) {
			return fmt.Errorf("there is no program %q: %w", s.Command[0], err)
		}
		return nil
	}
	data, err := result.ReadFile(path, recordMost)
	if err != nil {
		return fmt.Errorf("read the objects of a change: %w", err)
	}
	if _, err := parseObjects(path, data); err != nil {
		return err
	}
	s.Objects = string(data)
	return nil
}

// say tells of what is done. A listener that is gone is no reason to leave a cluster half changed.
func say(log io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(log, format, args...) // as above
}

// carryOut does one step, which must be done within the time.
func (c *carrier) carryOut(ctx context.Context, s step, within time.Duration) error {
	say(c.log, "  %s\n", s)
	return c.do(ctx, s, within)
}

func (c *carrier) do(ctx context.Context, s step, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took longer than %v", within))
	defer cancel()
	var err error
	if len(s.Command) > 0 {
		err = c.run(ctx, s.Command)
	} else {
		err = c.put(ctx, s)
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return fmt.Errorf("%s: %w", s, err)
}

// put applies or deletes the objects of a step.
func (c *carrier) put(ctx context.Context, s step) error {
	if c.objects == nil {
		var err error
		if c.objects, err = newObjects(c.cluster); err != nil {
			return err
		}
	}
	if s.Delete != "" {
		return c.objects.delete(ctx, s.Delete, []byte(s.Objects))
	}
	return c.objects.apply(ctx, s.Manifest, []byte(s.Objects))
}

// again is how long is waited between two tries.
const again = time.Second

// await tries the steps until all succeed one after the other.
func (c *carrier) await(ctx context.Context, ready []step, within time.Duration) error {
	if len(ready) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it is not within %v", within))
	defer cancel()
	var err error
	for range kube.Polling(ctx, again) {
		err = nil
		for _, s := range ready {
			if err = c.do(ctx, s, within); err != nil {
				break
			}
		}
		if err == nil {
			return nil
		}
	}
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	return err
}

// tries is how often a step that restores is tried: the API server may be out of reach for a moment just then.
const tries = 3

// undo carries out what restores the cluster. A step that fails does not keep the others from being done.
func (c *carrier) undo(ctx context.Context, r *record) error {
	var errs []error
	for _, s := range r.Restore {
		var err error
		try := 0
		for range kube.Polling(ctx, again) {
			if err = c.carryOut(ctx, s, r.Within); err == nil || try+1 == tries {
				break
			}
			try++
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// kubeconfigVariable is what tells commands which cluster is meant.
const kubeconfigVariable = "KUBECONFIG"

// How commands end when they have to: they are asked, and after a while made to. Of what they print the end is kept.
const (
	graceful = 5 * time.Second
	keptTail = 2000
)

// run runs a command to its end. It has a group of processes of its own: an interrupt at the terminal is meant for netdelta,
// which then restores the cluster.
func (c *carrier) run(ctx context.Context, words []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	// The kernel ends the command with the thread that has started it: a killed run must not go on changing the cluster.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = c.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = graceful
	if c.kubeconfig != "" {
		cmd.Env = append(os.Environ(), kubeconfigVariable+"="+c.kubeconfig)
	}
	said := tail.New(keptTail)
	cmd.Stdout, cmd.Stderr = said, said
	err := cmd.Run()
	if cmd.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has started and not ended; mostly there is nothing
	}
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		return nil // it has ended well, and left somebody behind who keeps its output open
	}
	if words := onOneLine(said.String()); err != nil && words != "" {
		return fmt.Errorf("%w: %s", err, words)
	}
	return err
}

// onOneLine is what a program said, for an error.
func onOneLine(said string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(said, "?"), func(c rune) bool { return c == '\n' || c == '\r' }), "; ")
}
