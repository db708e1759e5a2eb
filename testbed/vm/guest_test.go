package vm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// mostCPU is what booting may take of a processor.
const mostCPU = 15 * time.Second

// guestImage is the user's own image, built first if there is none.
func guestImage(t *testing.T) image.Image {
	t.Helper()
	require.Guests(t)
	i, err := image.Build(t.Context(), image.Options{Progress: func(line string) { t.Log(line) }})
	var lacks *testbed.UnsupportedError
	if errors.As(err, &lacks) {
		require.Need(t, lacks.Need, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// program builds a netdelta that guests can run.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "netdelta")
	require.Program(t, "netdelta-agent", path)
	return path
}

// sh runs a shell's command in the guest.
func sh(t *testing.T, g *vm.Guest, command string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p, err := g.Exec(t.Context(), vm.Command{Path: "sh", Args: []string{"-c", command}, Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	err = p.Wait()
	return out.String(), err
}

// abortsOnce is an image whose QEMU aborts when it is first called.
func abortsOnce(t *testing.T, i image.Image) image.Image {
	t.Helper()
	path, _, _ := i.Emulator()
	below, err := filepath.Rel(i.Dir, path)
	if err != nil {
		t.Fatal(err)
	}
	other := i
	other.Dir = t.TempDir()
	// All is as it is there, but for what lies on the way to the program.
	for dir := filepath.Dir(below); ; dir = filepath.Dir(dir) {
		err = errors.Join(err, os.MkdirAll(filepath.Join(other.Dir, dir), 0o755))
		entries, failed := os.ReadDir(filepath.Join(i.Dir, dir))
		err = errors.Join(err, failed)
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if at != below && !strings.HasPrefix(below, at+"/") {
				err = errors.Join(err, os.Symlink(filepath.Join(i.Dir, at), filepath.Join(other.Dir, at)))
			}
		}
		if dir == "." {
			break
		}
	}
	called := filepath.Join(other.Dir, "called")
	script := fmt.Sprintf("#!/bin/sh\n[ -e %[1]s ] || { echo >%[1]s; kill -ABRT $$; }\nexec %[2]s \"$@\"\n", called, path)
	if err := errors.Join(err, os.WriteFile(filepath.Join(other.Dir, below), []byte(script), 0o755)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(called); err != nil {
			t.Errorf("QEMU has not aborted: %v", err)
		}
	})
	return other
}

// TestBasicBootInGuest boots a guest whose QEMU aborts at first, and does in it all that can be done in one.
func TestBasicBootInGuest(t *testing.T) {
	i := guestImage(t)
	accel, err := vm.Accelerator(t.Context(), i)
	if err != nil {
		t.Fatal(err)
	}
	brought := filepath.Join(t.TempDir(), "brought")
	if err := os.WriteFile(brought, []byte("a word"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := vm.Boot(t.Context(), abortsOnce(t, i), vm.Machine{Accel: accel, Program: program(t), Files: []vm.File{{Host: brought, Guest: "/here/brought"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(g.Close(), g.Close()); err != nil {
			t.Error(err)
		}
	}()
	t.Logf("kernel %s under %s was ready after %v, %v of processor time", g.Hello.Kernel, g.Machine.Accel, g.Ready.Wall.Round(time.Millisecond), g.Ready.CPU)
	if g.Ready.CPU > mostCPU {
		t.Errorf("getting ready took %v of processor time, more than %v", g.Ready.CPU, mostCPU)
	}
	for name, test := range map[string]func(*testing.T, *vm.Guest){
		"links": testLinks, "alone": testAlone, "status": testStatus, "streams": testStreams, "large": testLarge, "kill": testKill,
		"cancel": testCancel, "missing": testMissing, "files": testFiles, "orphans": testOrphans,
	} {
		t.Run(name, func(t *testing.T) { test(t, g) })
	}
}

// testLinks: the kernel has every kind of link and discipline, loaded as it is asked for.
func testLinks(t *testing.T, g *vm.Guest) {
	for _, add := range []string{
		"type veth peer name two", "type bridge", "type dummy", "type ifb", "type vxlan id 1 dstport 4789", "type geneve id 1 remote 192.0.2.1",
		"type ipip remote 192.0.2.1", "type gre remote 192.0.2.1", "type gretap remote 192.0.2.1", "type ip6tnl mode any remote 2001:db8::1",
		"type ip6gre remote 2001:db8::1", "type sit remote 192.0.2.1", "type bond mode 802.3ad", "type wireguard", "type netkit", "type xfrm if_id 1",
	} {
		if out, err := sh(t, g, "ip link add name one "+add+" && ip link del one"); err != nil {
			t.Errorf("%s: %v %s", add, err, out)
		}
	}
	if out, err := sh(t, g, `set -e
ip link add name one type veth peer name two
for k in "macvlan mode bridge" "ipvlan mode l3" "vlan id 5"; do ip link add link one name three type $k; ip link del three; done
tc qdisc add dev one root netem delay 1ms
tc qdisc replace dev one root tbf rate 1mbit burst 10k latency 10ms
tc qdisc replace dev one root fq
ip link del one
ip tuntap add name four mode tun
ip link del four
iptables -t nat -A OUTPUT -d 192.0.2.1 -p tcp --dport 80 -j DNAT --to 192.0.2.2:80
ipvsadm -A -t 192.0.2.1:80 -s rr
nft add table ip t; nft add chain ip t c '{ type nat hook output priority 0; }'
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 1 mode transport aead 'rfc4106(gcm(aes))' 0x0123456789012345678901234567890123456789 128
`); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

// testAlone: no device leads out of the guest.
func testAlone(t *testing.T, g *vm.Guest) {
	out, err := sh(t, g, "ls /sys/bus/pci/devices/*/net /sys/bus/virtio/devices/*/net 2>/dev/null | grep -v : ; cat /here/brought")
	if err != nil || out != "a word" {
		t.Errorf("network cards and the file that was brought: %q: %v", out, err)
	}
}

func testStatus(t *testing.T, g *vm.Guest) {
	_, err := sh(t, g, "echo why >&2; exit 7")
	var failed *rpc.ExitError
	if !errors.As(err, &failed) || failed.Exit.Status != 7 || failed.Stderr != "why" {
		t.Errorf("got %v", err)
	}
	if _, err := sh(t, g, "kill -TERM $$"); !errors.As(err, &failed) || failed.Exit.Signal != int(unix.SIGTERM) {
		t.Errorf("got %v", err)
	}
}

// testStreams: standard input and both outputs are kept apart.
func testStreams(t *testing.T, g *vm.Guest) {
	p, err := g.Exec(t.Context(), vm.Command{Path: "sh", Args: []string{"-c", "read a; echo $a $b; pwd; echo aside >&2; cat"}, Env: []string{"b=two"}, Dir: "/tmp"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("one\nthree")); err != nil {
		t.Fatal(err)
	}
	if err := p.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if _, err := out.ReadFrom(p); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || out.String() != "one two\n/tmp\nthree" || p.Stderr() != "aside" {
		t.Errorf("got %q and %q: %v", out.String(), p.Stderr(), err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// testLarge: more than fits into any window or pipe goes through, both ways.
func testLarge(t *testing.T, g *vm.Guest) {
	p, err := g.Exec(t.Context(), vm.Command{Path: "cat"})
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	go func() {
		_, _ = p.Write(sent)
		_ = p.CloseWrite()
	}()
	var out bytes.Buffer
	if _, err := out.ReadFrom(p); err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil || !bytes.Equal(out.Bytes(), sent) {
		t.Errorf("got %d bytes of %d back: %v", out.Len(), len(sent), err)
	}
}

func testKill(t *testing.T, g *vm.Guest) {
	p, err := g.Exec(t.Context(), vm.Command{Path: "sh", Args: []string{"-c", "sleep 1234 & wait"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Kill(), p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	var failed *rpc.ExitError
	if err := p.Wait(); !errors.As(err, &failed) || failed.Exit.Signal != int(unix.SIGKILL) {
		t.Errorf("got %v", err)
	}
	if out, err := sh(t, g, "pgrep -f 'sleep 1234' | grep -v $$"); err == nil {
		t.Errorf("its child lives on: %s", out)
	}
}

func testCancel(t *testing.T, g *vm.Guest) {
	ctx, cancel := context.WithCancel(t.Context())
	p, err := g.Exec(ctx, vm.Command{Path: "sleep", Args: []string{"4321"}})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := p.Wait(); err == nil {
		t.Error("a program whose context ended has ended well")
	}
}

func testMissing(t *testing.T, g *vm.Guest) {
	if _, err := g.Exec(t.Context(), vm.Command{Path: "/no/such"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := g.Get("/no/such", &bytes.Buffer{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func testFiles(t *testing.T, g *vm.Guest) {
	sent := strings.Repeat("line\n", 1<<17)
	if err := g.Put("/new/folder/file", 0o750, strings.NewReader(sent)); err != nil {
		t.Fatal(err)
	}
	var back bytes.Buffer
	if err := g.Get("/new/folder/file", &back); err != nil || back.String() != sent {
		t.Errorf("got %d bytes of %d back: %v", back.Len(), len(sent), err)
	}
	if out, err := sh(t, g, "stat -c %a /new/folder/file"); err != nil || out != "750\n" {
		t.Errorf("its mode is %q: %v", out, err)
	}
}

// testOrphans: what a program leaves behind does not stay as a zombie.
func testOrphans(t *testing.T, g *vm.Guest) {
	if _, err := sh(t, g, "for i in 1 2 3; do (sh -c 'exit 0' &) ; done; sleep 0.2"); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, time.Minute, "no process is a zombie", func() bool {
		out, err := sh(t, g, "grep -c '^State:.Z' /proc/[0-9]*/status 2>/dev/null | grep -vc ':0'")
		if err != nil && out == "" {
			t.Fatal(err)
		}
		return strings.TrimSpace(out) == "0"
	})
}

// TestNotReadyInGuest: a guest that panics, or takes too long, or whose kernel is none, is named with its last words, and nothing of it
// is left.
func TestNotReadyInGuest(t *testing.T) {
	i, self := guestImage(t), program(t)
	ends := filepath.Join(t.TempDir(), "ends")
	if err := os.WriteFile(ends, []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		machine vm.Machine
		spoil   bool
		says    []string
	}{
		"panics":    {vm.Machine{Files: []vm.File{{Host: ends, Guest: "/netdelta"}}}, false, []string{"did not boot", "Attempted to kill init"}},
		"hangs":     {vm.Machine{Patience: 2 * time.Second, KernelArgs: []string{"ignore_loglevel"}}, false, []string{"was not ready after 2s"}},
		"no kernel": {vm.Machine{}, true, []string{"did not boot"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.machine.Program = self
			used := i
			if c.spoil {
				used = spoiled(t, i)
			}
			_, err := vm.Boot(t.Context(), used, c.machine)
			var failed *vm.BootError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("it does not say %q: %v", s, err)
				}
			}
		})
	}
}

// spoiled is an image whose kernel is none.
func spoiled(t *testing.T, i image.Image) image.Image {
	dir := t.TempDir()
	entries, err := os.ReadDir(i.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if path := filepath.Join(i.Dir, e.Name()); path == i.KernelFile() {
			err = os.WriteFile(filepath.Join(dir, e.Name()), []byte(strings.Repeat("no kernel ", 1000)), 0o600)
		} else {
			err = os.Symlink(path, filepath.Join(dir, e.Name()))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	i.Dir = dir
	return i
}

// TestEndsWithProgramInGuest: a guest ends when the program that booted it is killed.
func TestEndsWithProgramInGuest(t *testing.T) {
	if os.Getenv("NETDELTA_TEST_BOOT") != "" {
		bootAndWait()
	}
	guestImage(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEndsWithProgramInGuest$")
	cmd.Env = append(os.Environ(), "NETDELTA_TEST_BOOT="+program(t))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err, cmd.Wait())
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	if err != nil {
		t.Fatalf("it said %q", line[:n])
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	require.Ended(t, 20*time.Second, pid)
}

// bootAndWait boots a guest, says which process it is, and waits to be killed.
func bootAndWait() {
	i, err := image.Open(image.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	g, err := vm.Boot(context.Background(), i, vm.Machine{Program: os.Getenv("NETDELTA_TEST_BOOT")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(g.PID())
	select {}
}
