package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

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
