package oci

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/internal/require"
)

// patience is far more than a start takes, also on a machine that is busy with other work.
const patience = time.Minute

// containerd starts one of the test's own, which keeps all that it has in a folder of the test, and returns its socket.
func containerd(t *testing.T) string {
	t.Helper()
	path := require.Tool(t, "containerd")
	require.Need(t, "root's rights, which containerd takes", os.Geteuid() == 0)
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	config := filepath.Join(dir, "config.toml")
	text := fmt.Sprintf("version = 2\nroot = %q\nstate = %q\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.internal.v1.opt\"]\n[grpc]\naddress = %q\n[ttrpc]\naddress = %q\n",
		filepath.Join(dir, "root"), filepath.Join(dir, "state"), socket, filepath.Join(dir, "t"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(path, "--config", config)
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	daemon.Stdout, daemon.Stderr = &said, &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		_ = daemon.Wait() // how it ends is not what is tested
	})
	if err := require.Await(patience, "containerd starts", func() error {
		_, err := os.Stat(socket)
		return err
	}); err != nil {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // so that what it said can be read
		t.Fatalf("%v\n%s", err, said.String())
	}
	return socket
}

// What nodes of clusters run takes the archive as it is, whole and under its name.
func TestContainerdImports(t *testing.T) {
	ctr := require.Tool(t, "ctr")
	socket := containerd(t)
	image := imageOf(t, program(t, false))
	want, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	path := archiveOf(t, image, "localhost/netdelta/image:1")
	call := func(args ...string) string {
		out, err := exec.Command(ctr, append([]string{"-a", socket, "--connect-timeout", patience.String()}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("ctr %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	call("images", "import", "--snapshotter", "native", path)
	found := strings.Fields(call("images", "check", "--snapshotter", "native", "name==localhost/netdelta/image:1"))
	if text := strings.Join(found, " "); !strings.Contains(text, "localhost/netdelta/image:1 ") || !strings.Contains(text, want.String()) || !strings.Contains(text, "complete (2/2)") {
		t.Errorf("want %v whole, have %s", want, text)
	}
}
