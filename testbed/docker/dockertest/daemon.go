// Package dockertest runs Docker's own daemon and Podman for tests, in namespaces that it makes for them: the machine's interfaces, firewall and files
// are not touched.
package dockertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/require"
	"netdelta/internal/tail"
)

// within bounds how long the daemon takes to answer, and to end.
const within = time.Minute

// begin readies the daemon's namespaces: what it and its programs write to /run is theirs alone, and there is a card for macvlan. The
// daemon ends with the standard input, and so with the test, however that ends.
const begin = `set -e
mount -t tmpfs tmpfs /run
ip link set lo up
ip link add eth0 type veth peer name wire
ip link set eth0 up
ip link set wire up
dockerd --data-root "$1/data" --exec-root "$1/exec" --host "unix://$1/docker.sock" --pidfile "$1/pid" --storage-driver vfs \
	--exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$2" --log-level error </dev/null &
cat
kill $!
wait $!`

// Start runs a daemon until the end of the test, and has DOCKER_HOST name it. It fails the test where containers are left at the end.
func Start(t *testing.T) {
	t.Helper()
	require.Namespaces(t)
	for _, program := range []string{"dockerd", "docker", "unshare"} {
		require.Tool(t, program)
	}
	// The daemon makes sockets in it, whose paths must be short.
	folder, err := os.MkdirTemp("", "dk") //nolint:usetesting // whose folders have long names
	require.NoError(t, err)
	group := filepath.Base(folder)
	said := tail.New(8 << 10)
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-c", begin, "sh", folder, group)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	require.NoError(t, err)
	t.Setenv("DOCKER_HOST", "unix://"+folder+"/docker.sock")
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is told to end, and what it said is kept
		close(ended)
	}()
	t.Cleanup(func() {
		if left := Docker(t, "ps", "--all", "--format", "{{.Names}}"); left != "" {
			t.Errorf("containers are left: %s", left)
		}
		_ = input.Close() // it may have gone already
		select {
		case <-ended:
		case <-time.After(within):
			t.Errorf("dockerd did not end within %s: %s", within, said)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-ended
		}
		if err := errors.Join(machine.RemoveControlGroup(group, within), os.RemoveAll(folder)); err != nil {
			t.Error(err)
		}
	})
	if err := require.Await(within, "dockerd answers", func() error { return exec.Command("docker", "info").Run() }); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// Docker has the daemon's own client do something, and returns what it said.
func Docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// podmanGroup is the control group that Podman makes the containers' in.
const podmanGroup = "libpod_parent"

// Podman gives the path of a program that runs Podman in namespaces and folders of the test's own.
func Podman(t *testing.T) string {
	t.Helper()
	require.Namespaces(t)
	for _, program := range []string{"podman", "unshare", "nsenter"} {
		require.Tool(t, program)
	}
	there, err := filepath.Glob("/sys/fs/cgroup/*/" + podmanGroup)
	require.Need(t, "a machine on which Podman runs nothing else", err == nil && len(there) == 0)
	folder := t.TempDir()
	cmd := exec.Command("unshare", "--mount", "--net", "sh", "-c", "mount -t tmpfs tmpfs /run && ip link set lo up && echo up && exec cat")
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	require.NoError(t, err)
	if n, err := output.Read(make([]byte, 3)); n != 3 {
		t.Fatalf("namespaces for Podman: %v", err)
	}
	program := filepath.Join(folder, "podman")
	t.Cleanup(func() {
		if out, err := exec.Command(program, "ps", "--all", "--quiet").CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("containers are left: %s (%v)", out, err)
		}
		_ = input.Close() // it may have gone already
		_ = cmd.Wait()    // it ends with its input
		if err := machine.RemoveControlGroup(podmanGroup, within); err != nil {
			t.Error(err)
		}
	})
	config := "[containers]\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\n"
	script := fmt.Sprintf("#!/bin/sh\nexec nsenter --target %d --mount --net env CONTAINERS_CONF=%s/containers.conf podman --root %s/root --runroot %s/run "+
		"--storage-driver vfs --cgroup-manager cgroupfs \"$@\"\n", cmd.Process.Pid, folder, folder, folder)
	err = errors.Join(os.WriteFile(program, []byte(script), 0o755), os.WriteFile(filepath.Join(folder, "containers.conf"), []byte(config), 0o644))
	require.NoError(t, err)
	return program
}
