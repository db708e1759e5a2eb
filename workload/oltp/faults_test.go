package oltp_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// daemonOf is the number of a pod's database.
func (c *cluster) daemonOf(t testing.TB, pod int) int {
	t.Helper()
	id := c.found(pod)
	if id == 0 {
		t.Fatalf("node %d runs no database", pod)
	}
	return id
}

// found is the number of a pod's database, 0 while it runs none.
func (c *cluster) found(pod int) int {
	all, _ := procfs.AllProcs()
	for _, p := range all {
		s, err := p.Stat()
		if err == nil && s.PPID == c.agents[pod].PID() && s.Comm == "mariadbd" && s.State != "Z" {
			return p.PID
		}
	}
	return 0
}

// killJoining kills a pod's database as soon as there is one.
func (c *cluster) killJoining(pod int) error {
	var id int
	if err := require.Await(patience, fmt.Sprintf("node %d runs a database", pod), func() error {
		id = c.found(pod)
		called, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
		if err == nil && !strings.Contains(string(called), "--defaults-file") {
			err = errors.New("it runs for its version only")
		}
		return err
	}); err != nil {
		return err
	}
	return syscall.Kill(id, syscall.SIGKILL)
}

func (c *cluster) kill(t testing.TB, pods ...int) {
	t.Helper()
	for _, pod := range pods {
		if err := syscall.Kill(c.daemonOf(t, pod), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cluster) restart(t testing.TB, pod int) {
	t.Helper()
	began := time.Now()
	if err := c.agents[pod].Restart(t.Context(), c.services[pod], patience); err != nil {
		t.Fatal(err)
	}
	t.Logf("restart of node %d: %v", pod, time.Since(began))
}

// TestRecovers fills the memory of one node, stops one, kills two, and all of them.
func TestRecovers(t *testing.T) {
	require.Long(t)
	t.Parallel()
	c := start(t, testbed.Spec{Network: "host"}, result.Params{Own: result.OwnOf("mix", "write_only")})
	c.burst(t, engine.BurstSpec{Duration: time.Second})
	t.Run("memory full", c.full)
	t.Run("one hangs", func(t *testing.T) {
		if err := syscall.Kill(c.daemonOf(t, 1), syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		if h, err := c.agents[1].Health(t.Context(), c.services[1], time.Second); err != nil || h.Ended || !strings.Contains(h.Unwell, "mariadbd.1 does not answer") {
			t.Errorf("a node that hangs: %+v, %v", h, err)
		}
		c.restart(t, 1)
		c.works(t)
	})
	t.Run("two killed", func(t *testing.T) {
		c.kill(t, 1, 2)
		c.ailing(t, 2, "signal: killed; its last words: ")
		c.ailing(t, 0, "it has lost its quorum: it sees 1 of 3 nodes (non-Primary)")
		c.restart(t, 1) // though it is not the one to begin with
		c.restart(t, 2)
		c.restart(t, 0)
		c.works(t)
	})
	t.Run("all killed", func(t *testing.T) {
		c.kill(t, 0, 1, 2)
		for pod := range nodes {
			c.restart(t, pod)
		}
		c.works(t)
	})
}

// ailing waits until a node is unwell for a reason.
func (c *cluster) ailing(t *testing.T, pod int, why string) (h workload.Health) {
	t.Helper()
	require.NoError(t, require.Await(recovery, fmt.Sprintf("node %d is unwell: %s", pod, why), func() error {
		if h = c.health(t, pod); !strings.Contains(h.Unwell, why) {
			return fmt.Errorf("it is %+v", h)
		}
		return nil
	}))
	return h
}

// works waits until the cluster is well, and has it work.
func (c *cluster) works(t *testing.T) {
	t.Helper()
	c.well(t)
	if b := c.burst(t, engine.BurstSpec{Duration: time.Second}); b.Transactions == 0 {
		t.Errorf("nothing was done: %+v", b)
	}
}

// full fills the memory of the first node's data.
func (c *cluster) full(t *testing.T) {
	root, err := os.OpenRoot(fmt.Sprintf("/proc/%d/root%s", c.daemonOf(t, 0), daemon.Folder))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Create("fill")
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 1<<16))
	}
	_ = f.Close() // it is full
	_, err = c.agents[nodes].Burst(t.Context(), c.session, engine.BurstSpec{Duration: 10 * time.Second, Deadline: patience})
	if err == nil || !strings.Contains(err.Error(), "oltp: node 0 at ") {
		t.Errorf("a burst on a node whose memory is full: %v", err)
	}
	c.ailing(t, 0, "the memory for its data is full; its last words: ")
	if err := root.Remove("fill"); err != nil {
		t.Fatal(err)
	}
	c.restart(t, 0)
	c.works(t)
}
