// Package plugin calls plugins of the Container Network Interface (CNI) the way a container runtime does: ADD, CHECK and DEL,
// as the specification says, with the namespace of a node of the lab as the host and a pod's as the container.
//
// A plugin runs in the node's network namespace and in a mount namespace of its own, where the folders in which plugins keep
// state (/run and /var/lib/cni) are private to the node, and /sys shows the node's devices. So nothing that a plugin writes
// there reaches the machine, and no two nodes share it.
package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/invoke"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/owner"
)

// Patience is how long one call of all plugins of a list may take.
const Patience = time.Minute

// Caller calls plugins on one node.
type Caller struct {
	// Node is the network namespace in which plugins run.
	Node *netns.Namespace
	// State is the node's own folder for what plugins and their caller keep.
	State string
	// Path lists the folders that hold plugins.
	Path []string
	// Mark is the lab's, for the environment of plugins.
	Mark string
}

// Attachment is a pod that is attached, or is to be, by the plugins of a list.
type Attachment struct {
	// File is where the list was read, List the list itself.
	File, List string
	// ID names the container, Namespace is its network namespace, Interface the device in it.
	ID        string
	Namespace *netns.Namespace
	Interface string
	// Address is what the plugins are asked for, with the length of its prefix.
	Address netip.Prefix
	// MAC and Port are handed to plugins that say they take a MAC or a published port; "" and 0 are none.
	MAC  string
	Port uint16
}

// verb carries out one call of a list's plugins.
type verb func(context.Context, *libcni.CNIConfig, *libcni.NetworkConfigList, *libcni.RuntimeConf) error

// Add attaches a pod and returns the addresses that the plugins gave to it. After an error it has to be given to Delete all the same.
func (c *Caller) Add(ctx context.Context, a Attachment) (addresses []netip.Prefix, err error) {
	err = c.call(ctx, "ADD", a, func(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList, conf *libcni.RuntimeConf) error {
		said, err := cni.AddNetworkList(ctx, list, conf)
		if err != nil {
			return err
		}
		addresses, err = read(said)
		return err
	})
	return addresses, err
}

// Check has the plugins look whether all is still as they left it. Lists that are too old for that, or don't want it, are not
// checked.
func (c *Caller) Check(ctx context.Context, a Attachment) error {
	return c.call(ctx, "CHECK", a, func(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList, conf *libcni.RuntimeConf) error {
		if able, err := version.GreaterThanOrEqualTo(list.CNIVersion, "0.4.0"); err != nil || !able {
			return err
		}
		return cni.CheckNetworkList(ctx, list, conf)
	})
}

// Delete detaches a pod. It may be called again, and for what Add could not finish.
func (c *Caller) Delete(ctx context.Context, a Attachment) error {
	return c.call(ctx, "DEL", a, func(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList, conf *libcni.RuntimeConf) error {
		return cni.DelNetworkList(ctx, list, conf)
	})
}

// Validate asks each plugin of a list whether it speaks the list's version of the specification.
func (c *Caller) Validate(ctx context.Context, a Attachment) error {
	return c.call(ctx, "VERSION", a, func(ctx context.Context, cni *libcni.CNIConfig, list *libcni.NetworkConfigList, _ *libcni.RuntimeConf) error {
		_, err := cni.ValidateNetworkList(ctx, list)
		return err
	})
}

// call prepares a call of a list's plugins.
func (c *Caller) call(ctx context.Context, name string, a Attachment, do verb) error {
	fail := func(err error) error { return fmt.Errorf("%s of the CNI plugins of %s: %w", name, a.File, err) }
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	list, err := libcni.NetworkConfFromBytes([]byte(a.List))
	if err != nil {
		return fail(err)
	}
	folders, err := c.folders()
	if err != nil {
		return fail(err)
	}
	err = a.Namespace.WithFD(func(fd int) error {
		run := &runner{node: c.Node, folders: folders, environment: []string{owner.Variable + "=" + c.Mark}}
		cni := libcni.NewCNIConfigWithCacheDir(c.Path, folders.cache, run)
		return do(ctx, cni, list, a.runtime(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)))
	})
	if err != nil {
		return fail(tidy(err))
	}
	return nil
}

// runtime is what the specification calls the runtime's configuration.
func (a Attachment) runtime(path string) *libcni.RuntimeConf {
	conf := &libcni.RuntimeConf{
		ContainerID: a.ID, NetNS: path, IfName: a.Interface,
		// An address is asked for in all the ways that there are: by the arguments that host-local and static take, and by the
		// capability. Plugins that know neither give one of their own choice.
		Args:           [][2]string{{"IgnoreUnknown", "1"}, {"IP", a.Address.Addr().String()}},
		CapabilityArgs: map[string]any{"ips": []string{a.Address.String()}},
	}
	if a.MAC != "" {
		conf.CapabilityArgs["mac"] = a.MAC
	}
	if a.Port != 0 {
		var ports []map[string]any
		for _, protocol := range []string{"tcp", "udp"} {
			ports = append(ports, map[string]any{"hostPort": a.Port, "containerPort": a.Port, "protocol": protocol})
		}
		conf.CapabilityArgs["portMappings"] = ports
	}
	return conf
}

// folders are the parts of a node's state.
type folders struct{ run, lib, cache string }

// folders makes those that are not there.
func (c *Caller) folders() (folders, error) {
	f := folders{filepath.Join(c.State, "run"), filepath.Join(c.State, "lib"), filepath.Join(c.State, "cache")}
	for _, dir := range []string{f.run, filepath.Join(f.lib, "cni"), f.cache} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return f, fmt.Errorf("make a folder for what plugins keep: %w", err)
		}
	}
	return f, nil
}

// read takes the pod's addresses from a result of any version.
func read(said types.Result) (addresses []netip.Prefix, err error) {
	full, err := types100.NewResultFromResult(said)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	for _, ip := range full.IPs {
		if ip.Interface != nil && *ip.Interface >= 0 && *ip.Interface < len(full.Interfaces) && full.Interfaces[*ip.Interface].Sandbox == "" {
			continue // the node's
		}
		address, ok := netip.AddrFromSlice(ip.Address.IP)
		if !ok {
			return nil, fmt.Errorf("the result has an address that is none: %s", ip.Address.String())
		}
		bits, _ := ip.Address.Mask.Size()
		addresses = append(addresses, netip.PrefixFrom(address.Unmap(), bits))
	}
	return addresses, nil
}

// tidy says whose mistake it is where libcni can't read an answer.
func tidy(err error) error {
	if _, is := errors.AsType[*json.SyntaxError](err); is {
		return fmt.Errorf("a plugin's answer is no JSON: %w", err)
	}
	return err
}

// Variable is the environment variable that lists the folders with plugins, as the specification has it.
const Variable = "CNI_PATH"

// Path is the folders that are searched: those that the variable lists, else those that distributions and Kubernetes use.
func Path() []string {
	if listed := filepath.SplitList(os.Getenv(Variable)); len(listed) > 0 {
		return listed
	}
	return []string{"/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"}
}

// Find is where a plugin is, "" if it is in none of the folders.
func Find(name string, path []string) string {
	for _, dir := range path {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// Where says in words where plugins are looked for.
func Where(path []string) string { return fmt.Sprintf("looked for in %s", strings.Join(path, ", ")) }

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
