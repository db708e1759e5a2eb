package owner_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
)

func TestPeer(t *testing.T) {
	at := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unix"}
	l, err := net.ListenUnix("unix", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialUnix("unix", nil, at)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	pid, fd, err := owner.Peer(conn)
	if err != nil || pid != os.Getpid() {
		t.Fatalf("the process behind the socket is %d, not %d: %v", pid, os.Getpid(), err)
	}
	defer unix.Close(fd)
	if owner.Ended(fd, 10*time.Millisecond) {
		t.Error("this program has ended")
	}
}

func TestEnded(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	if !owner.Ended(fd, 10*time.Second) {
		t.Error("what was killed has not ended")
	}
	_ = cmd.Wait() // it was killed
}
