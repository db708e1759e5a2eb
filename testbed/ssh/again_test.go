package ssh_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/ssh"
)

// TestReachedAgain: servers that were lost are reached again for the next testbed, also where what died there left its folder behind; testbeds
// that were open stay lost, and closing them is no error.
func TestReachedAgain(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	before := f.before(t)
	o := f.options()
	o.Silence, o.Return = 8*time.Second, time.Minute
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"}
	bed, err := s.Open(t.Context(), spec)
	must(t, err)
	f.on(t, 0, "pkill -9 -f '[n]etdelta-ready|[n]etdelta-agent server ..do'") // both at once, as when the machine starts again
	f.on(t, 1, "pkill -f 'sshd: [r]oot'")                                     // the connection alone
	require.Eventually(t, 20*time.Second, "node0 is lost", func() bool {
		_, err := bed.Links(t.Context())
		return err != nil && strings.Contains(err.Error(), "node0")
	})
	again, err := s.Open(t.Context(), spec)
	must(t, err)
	must(t, bed.Close())
	_, err = again.Links(t.Context())
	must(t, err)
	if notes := strings.Join(again.Instruments().Notes(), "\n"); !strings.Contains(notes, "node0 was lost") || !strings.Contains(notes, "node1 was lost") || !strings.Contains(notes, f.names[1]) {
		t.Errorf("the notes are %s", notes)
	}
	must(t, errors.Join(again.Close(), s.Close()))
	f.unchanged(t, before, 10*time.Second)
}

// TestGivenUp: a server that does not come back in time is named, with why it was lost.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	o := f.options()
	o.Silence, o.Return = 4*time.Second, time.Second
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	must(t, f.servers[1].Process.Kill())
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"}
	require.Eventually(t, 30*time.Second, "the server is lost", func() bool {
		bed, err := s.Open(t.Context(), spec)
		if err == nil {
			_ = bed.Close()
		}
		return err != nil
	})
	_, err = s.Open(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), f.names[1]) || !strings.Contains(err.Error(), "within 1s") || strings.Contains(err.Error(), f.names[0]) {
		t.Errorf("a server that is gone for good: %v", err)
	}
	_ = s.Close() // it says so again
}

// TestLostWhileOpened: a server whose loss turns out while a testbed is opened is reached again, and the testbed opened.
func TestLostWhileOpened(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	before := f.before(t)
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	clients := clientsOf(t, f.folder)
	for _, pid := range clients { // as if nothing came from the servers any more
		must(t, unix.Kill(pid, unix.SIGSTOP))
	}
	time.AfterFunc(time.Second, func() {
		for _, pid := range clients {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	if notes := strings.Join(bed.Instruments().Notes(), "\n"); !strings.Contains(notes, "node0 was lost") || !strings.Contains(notes, "node1 was lost") {
		t.Errorf("the notes are %s", notes)
	}
	must(t, errors.Join(bed.Close(), s.Close()))
	f.unchanged(t, before, 10*time.Second)
}

// clientsOf are the processes of SSH clients with the configuration of a folder.
func clientsOf(t *testing.T, folder string) (pids []int) {
	t.Helper()
	all, err := procfile.Processes("/proc")
	must(t, err)
	for _, pid := range all {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // it may have ended meanwhile
		if strings.HasPrefix(string(line), "ssh\x00-F\x00"+filepath.Join(folder, "config")) {
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Fatal("there is no SSH client")
	}
	return pids
}
