package node

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"netdelta/internal/reaper"
	"netdelta/testbed/rpc"
)

// Path is where programs of a node are looked for: the cluster's, then the machine's.
const Path = PartsFolder + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// PartsFolder is where a node sees the programs of the cluster.
const PartsFolder = "/opt/netdelta/bin"

// Main is the program of process 1 of a node. It carries out requests that come from in and answers them on out. It returns when in
// ends: the node ends with it.
func Main(in io.Reader, out io.WriteCloser) error {
	i := &initial{reaper: reaper.New(), services: map[string]*service{}}
	return rpc.NewConn(ends{in, out}, false).Serve(func(s *rpc.Stream, r rpc.Request) {
		value, err := i.carryOut(r)
		s.Answer(r, value, err)
	}, nil)
}

// prepare makes the node's surroundings.
func prepare(s Spec) error {
	if os.Getpid() != 1 {
		return errors.New("this is not process 1 of a node: it is started by 'make cluster-up', not by hand")
	}
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the host name: %w", err)
	}
	if err := enterRoot(s); err != nil {
		return fmt.Errorf("make the root of node %s: %w", s.Name, err)
	}
	// The node does not inherit the environment of the program that started the cluster.
	os.Clearenv()
	for name, value := range map[string]string{"PATH": Path, "HOME": "/root", "HOSTNAME": s.Name} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	for _, folder := range []string{LogFolder, "/run/lock"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	for link, target := range s.Links {
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(target, link)); err != nil {
			return err
		}
	}
	if err := writeFiles(s.Files); err != nil {
		return err
	}
	for _, setting := range []string{"ipv4/ip_forward", "ipv6/conf/all/forwarding"} {
		err := os.WriteFile("/proc/sys/net/"+setting, []byte("1\n"), 0o644)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
			return fmt.Errorf("have the node forward packets: %w", err)
		}
	}
	return nil
}

// writeFiles writes each file at once or not at all, since who reads it may be about to.
func writeFiles(files []File) error {
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		fresh := f.Path + ".new"
		if err := os.WriteFile(fresh, f.Content, f.Mode); err != nil {
			return err
		}
		if err := os.Rename(fresh, f.Path); err != nil {
			return err
		}
	}
	return nil
}

// initial is process 1 of a node.
type initial struct {
	reaper *reaper.Reaper

	mu       sync.Mutex // held during a request
	services map[string]*service
}

func (i *initial) carryOut(r rpc.Request) (any, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch r.Op {
	case opPrepare:
		return rpc.Call(r, func(s Spec) (any, error) { return nil, prepare(s) })
	case opWrite:
		return rpc.Call(r, func(files []File) (any, error) { return nil, writeFiles(files) })
	case opStart:
		return rpc.Call(r, func(s Service) (any, error) { return nil, i.start(s) })
	case opStop, opKill:
		return rpc.Call(r, func(name string) (any, error) { return nil, i.stop(name, r.Op == opKill) })
	case opEnd:
		return rpc.Call(r, func(names []string) (any, error) {
			for _, name := range names {
				if i.services[name] == nil {
					continue
				}
				if err := i.stop(name, true); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
	case opRun:
		return rpc.Call(r, i.run)
	}
	return nil, r.Unknown()
}

func (i *initial) start(spec Service) error {
	if i.services[spec.Name] != nil {
		return fmt.Errorf("service %s runs already", spec.Name)
	}
	s, err := run(i.reaper, spec)
	if err != nil {
		return err
	}
	i.services[spec.Name] = s
	return nil
}

func (i *initial) stop(name string, now bool) error {
	s := i.services[name]
	if s == nil {
		return fmt.Errorf("service %q does not run", name)
	}
	s.stop(now)
	delete(i.services, name)
	return nil
}

// run runs a command to its end and returns what it printed.
func (i *initial) run(args []string) (string, error) {
	var printed bytes.Buffer
	cmd := command(args, nil, &printed)
	if err := i.reaper.Start(cmd); err != nil {
		return "", err
	}
	if err := i.reaper.Wait(cmd); err != nil {
		return "", fmt.Errorf("%s: %w: %s", args[0], err, &printed)
	}
	return printed.String(), nil
}

// command is a program that writes to output.
func command(args, env []string, output io.Writer) *exec.Cmd {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = "/", append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = output, output
	return cmd
}

// wanted are settings of the whole machine that a kubelet insists on. A node sees files with these values in their places, and so
// the machine's stay as they are.
func wanted() map[string]string {
	return map[string]string{
		"vm/overcommit_memory":      "1",
		"vm/panic_on_oom":           "0",
		"kernel/panic":              "10",
		"kernel/panic_on_oops":      "1",
		"kernel/keys/root_maxkeys":  "1000000",
		"kernel/keys/root_maxbytes": "25000000",
	}
}

// mount is a mount that a node needs.
type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
	}
	return nil
}

// enterRoot makes the node's root and moves this process into it: an overlay of the machine's root with what the node writes, in
// memory. It is called in a mount namespace of the node's own.
func enterRoot(s Spec) error {
	// Nothing that is mounted from here on is to reach the machine.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to the node: %w", err)
	}
	layers, root := s.Root, filepath.Join(s.Root, "merged")
	upper, work := filepath.Join(layers, "upper"), filepath.Join(layers, "work")
	if err := (mount{"tmpfs", layers, "tmpfs", 0, "mode=755"}).do(); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)); err != nil {
		return err
	}
	mounts := []mount{
		{"overlay", root, "overlay", 0, "lowerdir=/,upperdir=" + upper + ",workdir=" + work},
		{"proc", root + "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/dev", root + "/dev", "", unix.MS_BIND | unix.MS_REC, ""},
		{"tmpfs", root + "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, ""},
		{"sysfs", root + "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, ""},
		{"/sys/fs/cgroup", root + "/sys/fs/cgroup", "", unix.MS_BIND | unix.MS_REC, ""},
		{"bpf", root + "/sys/fs/bpf", "bpf", 0, ""},
		{"tmpfs", root + "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"tmpfs", root + "/tmp", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777"},
	}
	for _, folder := range s.Memory {
		mounts = append(mounts, mount{"tmpfs", root + folder, "tmpfs", 0, "mode=755"})
	}
	for _, b := range s.Binds {
		mounts = append(mounts, mount{b.From, root + b.To, "", unix.MS_BIND, ""})
		if b.ReadOnly {
			mounts = append(mounts, mount{"", root + b.To, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""})
		}
	}
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := guardSettings(root); err != nil {
		return err
	}
	return changeRoot(root)
}

// guardSettings keeps settings that are not the node's own from being written, and shows those that a kubelet wants.
func guardSettings(root string) error {
	for _, part := range []string{"fs", "kernel", "vm"} {
		folder := root + "/proc/sys/" + part
		if err := (mount{folder, folder, "", unix.MS_BIND, ""}).do(); err != nil {
			return err
		}
		if err := (mount{"", folder, "", unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY, ""}).do(); err != nil {
			return err
		}
	}
	shown := root + "/run/settings"
	for name, value := range wanted() {
		file := filepath.Join(shown, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(value+"\n"), 0o644)); err != nil {
			return err
		}
		if err := unix.Mount(file, root+"/proc/sys/"+name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("show another value of %s: %w", name, err)
		}
	}
	return nil
}

// changeRoot makes a mounted folder the root of this process, and lets go of the old one.
func changeRoot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	// The old root is stacked on the new one, from where it is taken off.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("let go of the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return err
	}
	// Volumes that are mounted for pods must be seen by containers that run already.
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}
