package cli_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// endsWithin is how soon the first signal has to end any verb on a machine that has processors for it.
const endsWithin = time.Second

// waiting is a call that waits for something when it is signalled.
type waiting struct {
	args   []string
	status int
}

// started is what is seen of a call: its process, and its standard error so far.
type started struct {
	pid    int
	stderr string
}

// The first signal ends every verb within a second, whatever it is waiting for.
func TestSignalled(t *testing.T) {
	require.Namespaces(t)
	dir := t.TempDir()
	runs(t, dir, "old", "later")
	interrupted := func(text string) waiting { return waiting{strings.Fields(text), statusInterrupted} }
	t.Run("not read", func(t *testing.T) {
		for _, w := range []waiting{
			interrupted("show old"), interrupted("report old --out -"), interrupted("compare old later"), interrupted("list -v"), interrupted("doctor"),
			interrupted("cleanup"), interrupted("lab list"), interrupted("run latency --networks host,bridge --time-budget 5s"),
			interrupted("kube schedule --image x --namespace y"),
		} {
			w.signalled(t, dir, nil, true, started.writes)
		}
	})
	t.Run("measuring", func(t *testing.T) {
		for _, w := range []waiting{
			interrupted("run latency --time-budget 60s"), interrupted("advise --time-budget 60s"), interrupted("fleet"), interrupted("pairs"),
		} {
			w.signalled(t, dir, nil, false, started.hasChildren)
		}
		interrupted("hops --time 60s").signalled(t, dir, nil, false, func(s started) bool { return strings.Contains(s.stderr, "tracing") })
		interrupted("flame --time 60s").signalled(t, dir, nil, false, func(s started) bool { return strings.Contains(s.stderr, "profiling") })
	})
	t.Run("no answer", func(t *testing.T) {
		called, env := silent(t)
		for _, w := range []waiting{
			interrupted("doctor --testbed kubernetes"), interrupted("cleanup --testbed kubernetes"), interrupted("policies --base-image x"),
			interrupted("run --testbed kubernetes --base-image x"), interrupted("fleet --testbed kubernetes --base-image x"),
			interrupted("pairs --testbed kubernetes --base-image x"), interrupted("advise --testbed kubernetes --base-image x"),
		} {
			w.signalled(t, dir, env, false, func(started) bool {
				select {
				case <-called:
					return true
				default:
					return false
				}
			})
		}
	})
	t.Run("serving", func(t *testing.T) {
		waiting{[]string{"serve", "."}, statusDone}.signalled(t, dir, nil, false, started.listens)
	})
	nothingRuns(t)
}

// signalled starts the call, signals it once it has come as far as said, and looks how soon it ends. Its standard output is a pipe that
// is not read, and that may be full from the beginning.
func (w waiting) signalled(t *testing.T, dir string, env []string, full bool, come func(started) bool) {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if full {
		size, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 1)
		if err == nil {
			_, err = out.Write(make([]byte, size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := command(t, dir, w.args...)
	cmd.Env = append(os.Environ(), env...)
	stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer stderr.Close()
	said := func() string {
		text, err := os.ReadFile(stderr.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return come(started{cmd.Process.Pid, said()}) }) {
		_ = cmd.Process.Kill()
		await(t, cmd)
		t.Fatalf("%v never waits; standard error:\n%s", w.args, said())
	}
	lacked, began := lacking(t), time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%v: %v", w.args, err)
	}
	e := await(t, cmd)
	took := time.Since(began)
	lacked = lacking(t) - lacked
	t.Logf("%v ended after %v, in %v of which a processor was lacking", w.args, took.Round(time.Millisecond), lacked.Round(time.Millisecond))
	if e.status != w.status || took-lacked > endsWithin {
		t.Errorf("%v: exit status %d, want %d; it took %v, in %v of which a processor was lacking\n%s", w.args, e.status, w.status, took, lacked, said())
	}
}

// lacking is for how long some process of this machine had to wait for a processor, since it was booted: others keep it busy, too.
func lacking(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	_, total, _ := strings.Cut(string(text), "total=")
	total, _, _ = strings.Cut(total, "\n")
	us, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}

// writes says whether a thread hangs in writing standard output.
func (s started) writes() bool {
	calls, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", s.pid))
	if err != nil {
		return false
	}
	for _, path := range calls {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), fmt.Sprintf("%d 0x1 ", unix.SYS_WRITE)) {
			return true
		}
	}
	return false
}

// hasChildren says whether it has started other processes, as agents are.
func (s started) hasChildren() bool { return len(procfile.Children(s.pid)) > 0 }

// listens says whether it waits for connections: it has a socket.
func (s started) listens() bool {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.pid))
	if err != nil {
		return false
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:") {
			return true
		}
	}
	return false
}

// silent is a cluster whose API server takes connections and never answers: each is a word on called. The environment names it.
func silent(t *testing.T) (called <-chan struct{}, env []string) {
	t.Helper()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	calls, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			select {
			case calls <- struct{}{}:
			case <-time.After(patience / 100): // a second connection of the same call
			}
		}
	}()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-done
	})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	write(t, path, fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: silent, cluster: {server: "http://%s"}}]
contexts: [{name: silent, context: {cluster: silent, user: any}}]
users: [{name: any, user: {}}]
current-context: silent
`, server.Addr()))
	return calls, []string{"KUBECONFIG=" + path}
}
