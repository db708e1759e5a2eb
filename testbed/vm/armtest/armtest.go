// Package armtest boots machines with an arm64 processor and Debian's kernel, for tests.
package armtest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/testbed/vm/image"
)

// Machine is an arm64 machine.
type Machine struct {
	// Init is the script of its first process, Root adds further files; nil adds none.
	Init string
	Root func(*image.Root)
	// Args are QEMU's, after those that every machine has, and Ends the files that it has from descriptor 3 on.
	Args []string
	Ends []*os.File
	// Console takes what the machine writes to its serial line.
	Console io.Writer
}

// File is the path of a file of the packages that a machine is made of, which newer ones have below /usr.
func File(t *testing.T, name string) string {
	t.Helper()
	for _, prefix := range []string{"", "usr"} {
		path := filepath.Join(parts(t), "guest", prefix, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("the packages hold no %s", name)
	return ""
}

// parts is the folder with what machines are made of.
func parts(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	folder := filepath.Join(cache, "netdelta", "arm64")
	_, err = os.Stat(filepath.Join(folder, "whole"))
	require.Need(t, "what an arm64 guest is made of (scripts/arm64.sh)", err == nil)
	return folder
}

// Start boots a machine. It ends with the test.
func Start(t *testing.T, m Machine) *exec.Cmd {
	t.Helper()
	require.Guests(t)
	folder := parts(t)
	i, err := image.Open(image.Options{})
	require.NoError(t, err)
	kernels, err := filepath.Glob(filepath.Join(folder, "guest", "boot", "vmlinuz-*"))
	require.NoError(t, err)
	if len(kernels) != 1 {
		t.Fatalf("there are the kernels %v", kernels)
	}
	_, _, env := i.Emulator()
	args := append([]string{
		"-L", filepath.Join(folder, "host", "usr", "share", "qemu"), "-L", filepath.Join(i.Dir, "qemu", "usr", "share", "qemu"),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "virt", "-cpu", "cortex-a72", "-m", "1G", "-kernel", kernels[0],
		"-initrd", m.root(t, strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-")),
		"-append", "console=ttyAMA0 quiet panic=-1 mitigations=off random.trust_cpu=on", "-serial", "stdio",
	}, m.Args...)
	cmd := exec.Command(filepath.Join(folder, "host", "usr", "bin", "qemu-system-aarch64"), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = append([]string{"PATH=/usr/bin:/bin"}, env...), m.Console, m.Console, m.Ends
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// root writes the first contents of the machine's root folder, and returns the file's path.
func (m Machine) root(t *testing.T, release string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "root.cpio")
	out, err := os.Create(path)
	require.NoError(t, err)
	root := image.NewRoot(out)
	require.NoError(t, image.Modules(t.Context(), filepath.Join(parts(t), "guest"), release, root))
	require.NoError(t, root.Copy(File(t, "bin/busybox"), "/bin/busybox"))
	require.NoError(t, root.Link("/sbin/modprobe", "/bin/busybox"))
	require.NoError(t, root.Text("/init", 0o755, []byte(m.Init)))
	if m.Root != nil {
		m.Root(root)
	}
	require.NoError(t, root.Close())
	require.NoError(t, out.Close())
	return path
}
