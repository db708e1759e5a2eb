package block_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/workload/block"
)

// processes are the processes of the nbd-server that this program started at an address.
func processes(t testing.TB, at netip.AddrPort) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Appendf(nil, "nbd-server-of-%d-at-%d.pid", os.Getpid(), at.Port())
	for _, f := range files {
		var pid int
		line, err := os.ReadFile(f)
		if _, scanned := fmt.Sscanf(f, "/proc/%d/cmdline", &pid); err == nil && scanned == nil && bytes.Contains(line, mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes of a server.
func signal(t testing.TB, at netip.AddrPort, s syscall.Signal) {
	t.Helper()
	pids := processes(t, at)
	if len(pids) == 0 {
		t.Fatal("there is no nbd-server")
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatal(err)
		}
	}
}

func TestServerIsKilledBetweenBursts(t *testing.T) {
	t.Parallel()
	programs(t)
	at := port(t, "127.0.0.1")
	s := serve(t, result.Params{}, at)
	c := dial(t, result.Params{}, at)
	burst(t, c, engine.BurstSpec{Duration: short})
	signal(t, at, syscall.SIGKILL)
	require.Eventually(t, patience, "the server is gone", func() bool { return len(processes(t, at)) == 0 })
	_, err := c.Burst(engine.BurstSpec{Duration: short, Deadline: patience})
	if err == nil || !strings.Contains(err.Error(), at.String()) || !strings.Contains(err.Error(), "Connection refused") {
		t.Errorf("a burst without a server: %v", err)
	}
	if h := s.Health(within(t)); !strings.Contains(h.Unwell, "has ended") || !h.Ended {
		t.Errorf("the health of a server that was killed: %+v", h)
	}
	if err := s.Restart(within(t)); err != nil {
		t.Fatal(err)
	}
	if h := s.Health(within(t)); h.Unwell != "" {
		t.Errorf("the health of a server that was started again: %+v", h)
	}
	check(t, burst(t, dial(t, result.Params{}, at), engine.BurstSpec{Duration: short}), 4096)
}

func TestServerIsKilledInABurst(t *testing.T) {
	t.Parallel()
	programs(t)
	at := port(t, "127.0.0.1")
	serve(t, result.Params{}, at)
	c := dial(t, result.Params{}, at)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Burst(engine.BurstSpec{Duration: patience, Deadline: 2 * patience})
		failed <- err
	}()
	connected(t, at)
	signal(t, at, syscall.SIGKILL)
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "its last words") {
		t.Errorf("a burst whose server is killed: %v", err)
	}
}

// connected waits until a server has connections that stay, which is when the burst runs.
func connected(t testing.TB, at netip.AddrPort) {
	t.Helper()
	alone := time.Now()
	require.Eventually(t, patience, "fio is connected", func() bool {
		if len(processes(t, at)) < 2 {
			alone = time.Now()
		}
		return time.Since(alone) > 300*time.Millisecond
	})
}

func TestServerHangs(t *testing.T) {
	t.Parallel()
	programs(t)
	at := port(t, "127.0.0.1")
	s := serve(t, result.Params{}, at)
	c := dial(t, result.Params{}, at)
	burst(t, c, engine.BurstSpec{Duration: short})
	signal(t, at, syscall.SIGSTOP)
	begin := time.Now()
	_, err := c.Burst(engine.BurstSpec{Duration: short, Deadline: time.Second})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), at.String()) || time.Since(begin) > patience/2 {
		t.Errorf("a burst whose server hangs, after %v: %v", time.Since(begin), err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if h := s.Health(ctx); h.Unwell == "" || h.Ended {
		t.Errorf("the health of a server that hangs: %+v", h)
	}
	ctx, cancel = context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Restart(ctx); err != nil {
		t.Error(err)
	}
	if h := s.Health(within(t)); h.Unwell != "" {
		t.Errorf("the health of a server that was started again: %+v", h)
	}
}

func TestCloseEndsABurst(t *testing.T) {
	t.Parallel()
	programs(t)
	at := port(t, "127.0.0.1")
	serve(t, result.Params{}, at)
	c := dial(t, result.Params{}, at)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Burst(engine.BurstSpec{Duration: patience, Deadline: 2 * patience})
		failed <- err
	}()
	connected(t, at)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a burst that was closed succeeds")
		}
	case <-time.After(patience / 2):
		t.Fatal("close did not end the burst")
	}
	if _, err := c.Burst(engine.BurstSpec{Duration: short}); err == nil {
		t.Error("a closed client measures")
	}
}

func TestAddresses(t *testing.T) {
	programs(t)
	w := block.Workload()
	at := port(t, "127.0.0.1")
	if _, err := w.Serve(within(t), w.Defaults, netip.AddrPortFrom(at.Addr(), 0), -1); err == nil || !strings.Contains(err.Error(), "port 0") {
		t.Errorf("serve on port 0: %v", err)
	}
	if _, err := w.Dial(within(t), w.Defaults, netip.AddrPort{}, at, -1); !errors.Is(err, unix.ECONNREFUSED) || !strings.Contains(err.Error(), at.String()) {
		t.Errorf("dial where nothing listens: %v", err)
	}
	l, err := net.Listen("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := w.Serve(within(t), w.Defaults, at, -1); !errors.Is(err, unix.EADDRINUSE) || !strings.Contains(err.Error(), at.String()) {
		t.Errorf("serve on a port in use: %v", err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 this is another program\r\n")) // who it is, is in what dial makes of it
			_ = conn.Close()
		}
	}()
	if _, err := w.Dial(within(t), w.Defaults, netip.AddrPort{}, at, -1); err == nil || !strings.Contains(err.Error(), "another program has the port") {
		t.Errorf("dial of a server of another kind: %v", err)
	}
}

// Programs as they are on other machines, which can't be had here: they say what those do.
func TestOtherPrograms(t *testing.T) {
	programs(t)
	w := block.Workload()
	at := port(t, "127.0.0.1")
	serve(t, w.Defaults, at)
	another := port(t, "127.0.0.1")
	for _, c := range []struct{ program, says, want string }{
		{"nbd-server", "echo This is nbd-server version 2.9.25", "nbd-server 2.9.25 "},
		{"nbd-server", "echo hello", "hello"},
		{"fio", "echo fio-2.16", "fio-2.16 "},
		{"fio", `case $1 in --version) echo fio-3.33;; *) echo "fio: engine nbd not loadable" >&2; exit 1;; esac`, "engine nbd"},
	} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, c.program), []byte("#!/bin/sh\n"+c.says+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", folder+":/usr/sbin:/usr/bin:/sbin:/bin")
		var err error
		if c.program == "fio" {
			_, err = w.Dial(within(t), w.Defaults, netip.AddrPort{}, at, -1)
		} else {
			_, err = w.Serve(within(t), w.Defaults, another, -1)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s that says %q: %v, want %q", c.program, c.says, err, c.want)
		}
	}
}
