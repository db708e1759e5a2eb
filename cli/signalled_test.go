package cli_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/owner"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

// endsWithin is how soon the first signal has to end any verb on a machine that has processors for it.
const endsWithin = time.Second

// waiting is a call that waits for something when it is signalled.
type waiting struct {
	args   []string
	status int
	// unread are the descriptors of its output that are pipes which are full and not read; its standard output is not read in any case.
	unread []int
}

// full is the call whose outputs of those descriptors are full from the beginning.
func (w waiting) full(descriptors ...int) waiting {
	w.unread = descriptors
	return w
}

// started is what is seen of a call: its process, and its standard error so far.
type started struct {
	pid    int
	stderr string
}

// interrupting is a call that the signal interrupts.
func interrupting(text string) waiting {
	return waiting{args: strings.Fields(text), status: statusInterrupted}
}

// The first signal ends every verb within a second, whatever it is waiting for. There is a call of each verb.
func TestSignalled(t *testing.T) {
	require.Namespaces(t)
	dir := t.TempDir()
	runs(t, dir, "old", "later")
	for name, microseconds := range map[string]string{"a": "48", "b": "65"} {
		write(t, filepath.Join(dir, name), "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 198.18.0.2 () port 0 AF_INET\nTHROUGHPUT=20000\nTHROUGHPUT_UNITS=Trans/s\nREQUEST_SIZE=64\nRESPONSE_SIZE=64\nP50_LATENCY="+microseconds+"\n")
	}
	var called []string
	signalled := func(t *testing.T, env []string, come func(started) bool, calls ...waiting) {
		t.Helper()
		for _, w := range calls {
			called = append(called, strings.Join(w.args, "-")+"-")
			w.signalled(t, dir, env, come)
		}
	}
	t.Run("not read", func(t *testing.T) {
		for _, text := range []string{
			"show old", "report old --out -", "compare old later", "list -v", "doctor", "cleanup", "version", "lab list", "run latency --networks host,bridge --time-budget 5s",
			"kube schedule --image x --namespace y", "import host=a vxlan=b --json", "image --out -", "completion bash", "completion fish", "completion powershell", "completion zsh",
		} {
			signalled(t, nil, func(s started) bool { return s.writes(1) }, interrupting(text).full(1))
		}
		for _, w := range []waiting{
			interrupting("run latency --networks host,bridge --time-budget 60s"), interrupting("flame --time 60s"), {args: []string{"show", "none"}, status: statusUsage},
		} {
			signalled(t, nil, func(s started) bool { return s.writes(2) }, w.full(1, 2))
		}
	})
	t.Run("measuring", func(t *testing.T) {
		signalled(t, nil, started.hasChildren, interrupting("run latency --time-budget 60s"), interrupting("advise --time-budget 60s"), interrupting("fleet"), interrupting("pairs"))
		signalled(t, nil, func(s started) bool { return strings.Contains(s.stderr, "tracing") }, interrupting("hops --time 60s"))
		signalled(t, nil, func(s started) bool { return strings.Contains(s.stderr, "loading") }, interrupting("why --time 60s"))
		signalled(t, nil, func(s started) bool { return strings.Contains(s.stderr, "profiling") }, interrupting("flame --time 60s"))
	})
	t.Run("no answer", func(t *testing.T) {
		connected, address, env := silent(t)
		come := func(started) bool {
			select {
			case <-connected:
				return true
			default:
				return false
			}
		}
		for _, text := range []string{
			"doctor --testbed kubernetes", "cleanup --testbed kubernetes", "policies --base-image x", "run --testbed kubernetes --base-image x",
			"fleet --testbed kubernetes --base-image x", "pairs --testbed kubernetes --base-image x", "advise --testbed kubernetes --base-image x",
			"kube nightly latency -- --base-image x", "image --insecure-registry --push " + address + "/x:1",
		} {
			signalled(t, env, come, interrupting(text))
		}
	})
	t.Run("labs", func(t *testing.T) {
		u := rootUser(t)
		env := []string{"NETDELTA_LABS=" + u.labs}
		u.call(t, statusDone, "lab", "up", "bridge")
		signalled(t, env, func(s started) bool { return s.is("sleep") }, waiting{args: strings.Fields("lab exec pod0 -- sleep 60"), status: 128 + int(sigterm)})
		signalled(t, env, started.hasChildren, interrupting("lab up vxlan --name other"))
		halt(t, labsOf(t, u)[0].PID)
		signalled(t, env, started.listens, interrupting("lab exec pod0"), interrupting("lab swap vxlan"), interrupting("lab list"), interrupting("lab down"))
		u.call(t, statusDone, "lab", "down")
		u.nothingKept(t)
	})
	t.Run("guests", func(t *testing.T) {
		env, builder := anotherBuilds(t)
		signalled(t, env, func(s started) bool { return s.has(builder) }, interrupting("vm build"), interrupting("vm exec true"), interrupting("vm remove"))
		env, read := unreadable(t)
		signalled(t, env, func(started) bool { return read() }, interrupting("vm show"))
	})
	t.Run("serving", func(t *testing.T) {
		signalled(t, nil, started.listens, waiting{args: []string{"serve", "."}, status: statusDone})
	})
	nothingRuns(t)
	t.Run("each verb", func(t *testing.T) {
		call(t, dir, statusDone, "man", "pages")
		for _, page := range entries(t, filepath.Join(dir, "pages")) {
			verb := strings.TrimPrefix(strings.TrimSuffix(page, ".1")+"-", "netdelta-")
			if !slices.ContainsFunc(called, func(c string) bool { return strings.HasPrefix(c, verb) }) {
				t.Errorf("no call of netdelta %s is signalled", strings.ReplaceAll(verb, "-", " "))
			}
		}
	})
}

// A program in a guest ends with the first signal, and the guest with it.
func TestSignalledInGuest(t *testing.T) {
	require.Guests(t)
	w := interrupting("vm exec -- sh -c")
	w.args = append(w.args, "echo it runs >&2; sleep 60")
	w.signalled(t, t.TempDir(), nil, func(s started) bool { return strings.Contains(s.stderr, "it runs") })
}

// anotherBuilds is a cache for guests in which somebody else builds one, and the file that tells it.
func anotherBuilds(t *testing.T) (env []string, lock string) {
	t.Helper()
	cache := t.TempDir()
	lock = filepath.Join(cache, "netdelta", "vm", "lock")
	if err := os.MkdirAll(filepath.Dir(lock), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := owner.Lock(t.Context(), lock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	})
	return []string{"XDG_CACHE_HOME=" + cache}, lock
}

// unreadable is a cache for guests on a disk that does not answer: a pipe without a writer stands for what is read of a guest. It says
// whether somebody reads it.
func unreadable(t *testing.T) (env []string, read func() bool) {
	t.Helper()
	cache := t.TempDir()
	pipe := filepath.Join(cache, "netdelta", "vm", "current")
	if err := errors.Join(os.MkdirAll(filepath.Dir(pipe), 0o755), unix.Mkfifo(pipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	return []string{"XDG_CACHE_HOME=" + cache}, func() bool {
		end, err := os.OpenFile(pipe, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			t.Cleanup(func() { _ = end.Close() })
		}
		return err == nil
	}
}

// unreadPipe is an end of a pipe that is not read, full where that is asked for.
func unreadPipe(t *testing.T, full bool) *os.File {
	t.Helper()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(in.Close(), out.Close()) })
	if full {
		size, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 1)
		if err == nil {
			_, err = out.Write(make([]byte, size))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// signalled starts the call, signals it once it has come as far as said, and looks how soon it ends.
func (w waiting) signalled(t *testing.T, dir string, env []string, come func(started) bool) {
	t.Helper()
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
	cmd.Stdout, cmd.Stderr = unreadPipe(t, slices.Contains(w.unread, 1)), stderr
	if slices.Contains(w.unread, 2) {
		cmd.Stderr = unreadPipe(t, true)
	}
	if err := cmd.Start(); err != nil {
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

// writes says whether a thread hangs in writing to a descriptor.
func (s started) writes(descriptor int) bool {
	calls, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", s.pid))
	if err != nil {
		return false
	}
	for _, path := range calls {
		if text, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(text), fmt.Sprintf("%d %#x ", unix.SYS_WRITE, descriptor)) {
			return true
		}
	}
	return false
}

// hasChildren says whether it has started other processes, as agents are.
func (s started) hasChildren() bool { return len(procfile.Children(s.pid)) > 0 }

// is says whether it has become another program.
func (s started) is(program string) bool {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", s.pid))
	return err == nil && string(name) == program+"\n"
}

// listens says whether it waits for connections, or for what comes from one: it has a socket.
func (s started) listens() bool { return s.has("socket:") }

// has says whether it has something open whose name begins so.
func (s started) has(name string) bool {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.pid))
	return err == nil && slices.ContainsFunc(links, func(link string) bool {
		to, err := os.Readlink(link)
		return err == nil && strings.HasPrefix(to, name)
	})
}

// silent is a cluster whose API server takes connections and never answers: each is a word on called. The environment names it.
func silent(t *testing.T) (called <-chan struct{}, address string, env []string) {
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
	return calls, server.Addr().String(), []string{"KUBECONFIG=" + path}
}
