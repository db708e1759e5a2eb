package ssh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/vm/armtest"
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
	const home = "/home"
	console, err := os.Create(filepath.Join(l.folder, "arm64.console"))
	must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := os.ReadFile(console.Name())
			t.Logf("the console of the arm64 guest: %s", said[max(0, len(said)-4000):])
		}
		_ = console.Close()
	})
	armtest.Start(t, armtest.Machine{
		Init: fmt.Sprintf(armInit, address, home), Console: console, Ends: []*os.File{l.tap(t, "arm", "lan")},
		Args: []string{"-smp", "2", "-netdev", "tap,id=lan,fd=3", "-device", "virtio-net-pci,netdev=lan,mac=52:54:00:09:02:00,romfile="},
		Root: func(root *image.Root) {
			must(t, root.Copy(armtest.File(t, "usr/sbin/dropbear"), "/usr/sbin/dropbear"))
			must(t, root.Copy(armtest.File(t, "lib/ld-linux-aarch64.so.1"), "/lib/ld-linux-aarch64.so.1"))
			for _, name := range []string{"libc.so.6", "libcrypt.so.1", "libtomcrypt.so.1", "libtommath.so.1", "libgmp.so.10", "libz.so.1"} {
				must(t, root.Copy(armtest.File(t, "lib/aarch64-linux-gnu/"+name), "/usr/lib/aarch64-linux-gnu/"+name))
			}
			must(t, root.Text("/etc/passwd", 0o644, []byte("root:x:0:0:root:"+home+":/bin/sh\n")))
			must(t, root.Text(home+"/.ssh/authorized_keys", 0o600, l.public))
		},
	})
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
	require.Program(t, "netdelta-agent", arm, "GOARCH=arm64")
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 2, rounds: 4", "burst: 2ms", "burst: 20ms", "90s", "15m").Replace(study)
	run, _ := p.run(t, text, "--builds", "2", "--nodes", f.nodes())
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
