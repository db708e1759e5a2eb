package ssh_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/vm/image"
)

// armInit is the first process of the arm64 guest, up to its SSH server.
const armInit = `#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /run /sbin /usr/bin /usr/sbin
/bin/busybox --install -s /bin
export HOME=%[2]s PATH=/bin:/sbin:/usr/bin:/usr/sbin
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /run
mkdir -p /dev/pts; mount -t devpts devpts /dev/pts
modprobe -a virtio_pci virtio_mmio virtio_net
until [ -e /sys/class/net/eth0 ]; do sleep 0.1; done
ip link set lo up; ip addr add %[1]s/24 dev eth0; ip link set eth0 up
chmod 700 ~ ~/.ssh; mkdir -p /etc/dropbear
exec dropbear -F -E -R -s -p 22
`

// armGuest boots a machine with an arm64 processor, Debian's kernel and an SSH server, at a switch of the controller's.
func armGuest(t *testing.T, l *lan, address string) {
	t.Helper()
	require.Guests(t)
	cache, err := os.UserCacheDir()
	must(t, err)
	parts := filepath.Join(cache, "netdelta", "arm64")
	_, err = os.Stat(filepath.Join(parts, "whole"))
	require.Need(t, "what an arm64 guest is made of (scripts/arm64.sh)", err == nil)
	i, err := image.Open(image.Options{})
	must(t, err)
	kernels, err := filepath.Glob(filepath.Join(parts, "guest", "boot", "vmlinuz-*"))
	must(t, err)
	if len(kernels) != 1 {
		t.Fatalf("there are the kernels %v", kernels)
	}
	guest := filepath.Join(parts, "guest")
	files := filepath.Join(t.TempDir(), "root.cpio")
	out, err := os.Create(files)
	must(t, err)
	root := image.NewRoot(out)
	const home = "/home"
	must(t, image.Modules(t.Context(), guest, strings.TrimPrefix(filepath.Base(kernels[0]), "vmlinuz-"), root))
	must(t, root.Copy(first(t, guest, "bin/busybox"), "/bin/busybox"))
	must(t, root.Copy(first(t, guest, "usr/sbin/dropbear"), "/usr/sbin/dropbear"))
	must(t, root.Copy(first(t, guest, "lib/ld-linux-aarch64.so.1"), "/lib/ld-linux-aarch64.so.1"))
	for _, name := range []string{"libc.so.6", "libcrypt.so.1", "libtomcrypt.so.1", "libtommath.so.1", "libgmp.so.10", "libz.so.1"} {
		must(t, root.Copy(first(t, guest, "lib/aarch64-linux-gnu/"+name), "/usr/lib/aarch64-linux-gnu/"+name))
	}
	must(t, root.Link("/sbin/modprobe", "/bin/busybox"))
	must(t, root.Text("/etc/passwd", 0o644, []byte("root:x:0:0:root:"+home+":/bin/sh\n")))
	must(t, root.Text(home+"/.ssh/authorized_keys", 0o600, l.public))
	must(t, root.Text("/init", 0o755, fmt.Appendf(nil, armInit, address, home)))
	must(t, root.Close())
	must(t, out.Close())

	tap := l.tap(t, "arm", "lan")
	_, _, env := i.Emulator()
	args := []string{"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-M", "virt", "-cpu", "cortex-a72", "-smp", "2", "-m", "1G",
		"-kernel", kernels[0], "-initrd", files, "-append", "console=ttyAMA0 quiet panic=-1 mitigations=off random.trust_cpu=on", "-serial", "stdio",
		"-netdev", "tap,id=lan,fd=3", "-device", "virtio-net-pci,netdev=lan,mac=52:54:00:09:02:00,romfile="}
	for _, share := range []string{filepath.Join(parts, "host", "usr", "share", "qemu"), filepath.Join(i.Dir, "qemu", "usr", "share", "qemu")} {
		args = append([]string{"-L", share}, args...)
	}
	console, err := os.Create(filepath.Join(l.folder, "arm64.console"))
	must(t, err)
	cmd := exec.Command(filepath.Join(parts, "host", "usr", "bin", "qemu-system-aarch64"), args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = append([]string{"PATH=/usr/bin:/bin"}, env...), console, console, []*os.File{tap}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			said, _ := os.ReadFile(console.Name())
			t.Logf("the console of the arm64 guest: %s", said[max(0, len(said)-4000):])
		}
		_ = console.Close()
	})
}

// first is a file of unpacked packages, which newer ones have below /usr.
func first(t *testing.T, root, name string) string {
	t.Helper()
	for _, prefix := range []string{"", "usr"} {
		path := filepath.Join(root, prefix, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("the packages hold no %s", name)
	return ""
}

// TestArchitecturesInGuest: a server with an arm64 processor and one of this machine's are nodes of one testbed. Each gets the agent of its
// architecture, builds its part of the lab's networks, and measures.
func TestArchitecturesInGuest(t *testing.T) {
	f := newFarm(t, 1)
	const address = "10.99.0.2"
	armGuest(t, f.lan, address)
	f.names = append(f.names, address)
	f.command = append(f.command, "-o", "StrictHostKeyChecking=no") // it makes its key when it starts
	f.await(t, 1)
	p := newProgram(t, f.lan)
	arm := filepath.Join(filepath.Dir(p.path), "netdelta-agent-arm64")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", arm, "netdelta/cmd/netdelta-agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=arm64")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 2, rounds: 4", "burst: 2ms", "burst: 20ms").Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	said, err := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "2", "--out", "out", "--nodes", f.nodes()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	run, err := result.Load(filepath.Join(p.dir, "out"))
	must(t, err)
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	networks := map[string]int{}
	for _, one := range contents.Trials {
		name, _, _ := strings.Cut(strings.Replace(one.Cell, "+twin", "", 1), "/")
		networks[name]++
		if one.Failed != "" || one.Path == nil || !one.Path.OK || one.Bursts.Transactions == nil {
			t.Errorf("%s: %s, %+v", one.Cell, one.Failed, one.Path)
		}
	}
	if len(networks) != 4 || len(run.Environment.Servers) != 2 || run.Environment.Servers[1].Arch != "aarch64" {
		t.Errorf("there are trials of %v, on %+v", networks, run.Environment.Servers)
	}
}
