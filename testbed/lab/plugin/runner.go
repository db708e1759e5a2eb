package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

const (
	// saidAtMost is how much of what a plugin prints is read: results are a few kilobytes.
	saidAtMost = 1 << 20
	// shownAtMost is how much of it stands in an error.
	shownAtMost = 400
	// lateOutput is how long the output of a plugin is read on when it has ended but others hold it open.
	lateOutput = time.Second
)

// runner starts plugins in the namespaces of a node.
type runner struct {
	version.PluginDecoder
	node        *netns.Namespace
	folders     folders
	environment []string // besides what the specification names
}

var _ invoke.Exec = (*runner)(nil)

// FindInPath implements invoke.Exec.
func (r *runner) FindInPath(name string, path []string) (string, error) {
	if file := Find(name, path); file != "" {
		return file, nil
	}
	return "", fmt.Errorf("there is no CNI plugin %s (%s)", name, Where(path))
}

// ExecPlugin implements invoke.Exec.
func (r *runner) ExecPlugin(ctx context.Context, path string, input []byte, environment []string) ([]byte, error) {
	said, complaints := &limited{}, &limited{}
	cmd := exec.CommandContext(ctx, path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), said, complaints
	cmd.Env = append(slices.Clone(r.environment), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8")
	verb := ""
	for _, v := range environment {
		if strings.HasPrefix(v, "CNI_") {
			cmd.Env = append(cmd.Env, v)
		}
		if named, is := strings.CutPrefix(v, "CNI_COMMAND="); is {
			verb = named
		}
	}
	// What a plugin leaves running goes with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = lateOutput
	if hidden := r.folders.hides(path); hidden != "" {
		return nil, fmt.Errorf("the plugin %s is in %s, in whose place plugins see a private folder; copy it elsewhere and name that folder in %s", path, hidden, Variable)
	}
	err := r.node.DoOnce(func() error {
		if err := r.folders.mount(); err != nil {
			return err
		}
		return cmd.Run()
	})
	name := filepath.Base(path)
	if ctx.Err() != nil {
		return nil, &types.Error{Code: types.ErrInternal, Msg: fmt.Sprintf("the plugin %s did not end: %v; it was killed", name, ctx.Err()), Details: complaints.shown()}
	}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return nil, refusal(name, exit, said, complaints)
	case err != nil:
		return nil, fmt.Errorf("start the plugin %s: %w", path, err)
	case verb == "ADD" && !json.Valid(said.Bytes()):
		return nil, &types.Error{Code: types.ErrDecodingFailure, Msg: fmt.Sprintf("the plugin %s printed what is no result: %s", name, said.shown()), Details: complaints.shown()}
	}
	return said.Bytes(), nil
}

// refusal is the error that a plugin printed, or what else it said.
func refusal(name string, exit *exec.ExitError, said, complaints *limited) error {
	var printed types.Error
	if json.Unmarshal(said.Bytes(), &printed) == nil && printed.Msg != "" {
		return &printed
	}
	message := fmt.Sprintf("the plugin %s failed (%s) without an error that CNI knows", name, exit)
	if said.Len() > 0 {
		message += "; it printed " + said.shown()
	}
	return &types.Error{Code: types.ErrInternal, Msg: message, Details: complaints.shown()}
}

// limited keeps the beginning of what is written.
type limited struct{ bytes.Buffer }

// Write implements io.Writer.
func (l *limited) Write(b []byte) (int, error) {
	room := max(0, saidAtMost-l.Len())
	_, _ = l.Buffer.Write(b[:min(len(b), room)]) // never fails
	return len(b), nil
}

// shown is the beginning, quoted; "" if there is nothing.
func (l *limited) shown() string {
	text := strings.TrimSpace(l.String())
	if text == "" {
		return ""
	}
	if len(text) > shownAtMost {
		text = text[:shownAtMost] + "..."
	}
	return fmt.Sprintf("%q", text)
}

// Folders in which plugins keep state.
const (
	runFolder = "/run"
	libFolder = "/var/lib/cni"
	allOfLib  = "/var/lib" // in place of libFolder, where that isn't there
)

// hides names the folder in whose place another is seen and that holds the file, "" if none does.
func (f folders) hides(file string) string {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	for _, dir := range []string{runFolder, f.libTarget()} {
		if strings.HasPrefix(file, dir+"/") {
			return dir
		}
	}
	return ""
}

// libTarget is the folder that stands in for libFolder.
func (f folders) libTarget() string {
	if _, err := os.Stat(libFolder); err != nil {
		return allOfLib
	}
	return libFolder
}

// mount gives the calling thread, and what it starts, mounts of its own.
func (f folders) mount() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace for plugins: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("keep the mounts of plugins apart: %w", err)
	}
	target := f.libTarget()
	source := filepath.Join(f.lib, "cni")
	if target == allOfLib {
		source = f.lib
	}
	for _, m := range []struct{ from, to string }{{source, target}, {f.run, runFolder}} {
		if err := unix.Mount(m.from, m.to, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("give plugins a private %s: %w", m.to, err)
		}
	}
	// Few plugins look at devices by files, and not every user may mount this.
	_ = unix.Mount("sysfs", "/sys", "sysfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return nil
}
