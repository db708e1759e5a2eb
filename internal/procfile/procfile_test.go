package procfile_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/procfile"
	"netdelta/internal/require"
)

func TestParseCPUs(t *testing.T) {
	for list, want := range map[string][]int{"0": {0}, "0-3": {0, 1, 2, 3}, "0-1,4,6-7": {0, 1, 4, 6, 7}, "": nil, "3-1": nil, "a": nil, "0-": nil} {
		got, err := procfile.ParseCPUs(list)
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("%q: got %v (%v), want %v", list, got, err, want)
		}
	}
}

// A process's name may look like fields of its stat.
func TestParseStat(t *testing.T) {
	const rest = " S 7 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 0 0 0 0 44"
	for text, want := range map[string]string{
		"22 (sh)" + rest: "sh", "22 (a) R 1 (b c)" + rest: "a) R 1 (b c", "22 ()" + rest: "", "22 sh" + rest: "!", "22 (sh) S 7": "!", "": "!",
	} {
		name, fields, err := procfile.ParseStat([]byte(text))
		if want == "!" {
			if err == nil {
				t.Errorf("%q: got %q and %v, want an error", text, name, fields)
			}
			continue
		}
		if err != nil || name != want || fields[procfile.StatParent] != "7" || fields[procfile.StatFlags] != "2129984" || fields[procfile.StatStart] != "44" {
			t.Errorf("%q: got %q, %v and error %v", text, name, fields, err)
		}
	}
}

// A file that has grown is read whole, however large it was when it was opened.
func TestFileGrows(t *testing.T) {
	path := t.TempDir() + "/stat"
	if err := os.WriteFile(path, []byte("cpu"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := procfile.Open(path, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	for _, want := range []string{"cpu", strings.Repeat("cpu0 1 2\n", 100), "x"} {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		if text, err := f.Read(); err != nil || string(text) != want {
			t.Errorf("got %q and error %v, want %q", text, err, want)
		}
	}
}

// The clock of this very process must agree with what it really used, and run on while it works.
func TestProcessCPU(t *testing.T) {
	before, err := procfile.ProcessCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for x, deadline := 0, time.Now().Add(time.Minute); time.Now().Before(deadline); x++ {
		now, err := procfile.ProcessCPU(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if now-before > 5*time.Millisecond {
			return
		}
	}
	t.Error("a minute of work took no processor time")
}

func TestProcessCPUOfNobody(t *testing.T) {
	for _, pid := range []int{-1, 0, 1 << 22, 1 << 29} {
		if _, err := procfile.ProcessCPU(pid); err == nil {
			t.Errorf("process %d, which can't exist, has a processor time", pid)
		}
	}
}

// work takes 10 ms.
func work() {
	for end := time.Now().Add(10 * time.Millisecond); time.Now().Before(end); {
		_ = end.Unix()
	}
}

// A thread's clock runs while the thread does, and only then.
func TestThreadCPU(t *testing.T) {
	ids, ready, rest := make(chan int), make(chan bool), make(chan bool)
	go func() {
		runtime.LockOSThread()
		ids <- unix.Gettid()
		for range ready {
			work()
			rest <- true
		}
	}()
	id := <-ids
	used := func() time.Duration {
		t.Helper()
		used, err := procfile.ThreadCPU(id)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	idle := used()
	work() // in another thread
	before := used()
	ready <- true
	<-rest
	if worked := used() - before; worked > 50*time.Millisecond || worked < 200*time.Microsecond || before-idle > worked/2 {
		t.Errorf("a thread used %v at rest, and %v in 10 ms of work", before-idle, worked)
	}
	close(ready)
}

// What is below a process are its children and theirs, and what they use is theirs also when they have ended.
func TestFamilyCPU(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "read line; sh -c 'read line </dev/null; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; sleep 60 & read line; kill $!; wait $!; true")
	in, out := require.Pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	family := func() (pids []int, used time.Duration) {
		t.Helper()
		var err error
		if pids, err = procfile.Below(os.Getpid()); err != nil {
			t.Fatal(err)
		}
		if used, err = procfile.FamilyCPU(pids); err != nil {
			t.Fatal(err)
		}
		return pids, used
	}
	_, before := family()
	if _, err := io.WriteString(in, "go\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	var pids []int
	var after time.Duration
	for len(pids) < 2 { // the one that sleeps is there soon
		pids, after = family()
	}
	if _, err := io.WriteString(in, "end\n"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	want := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if used := after - before; used < want*8/10-20*time.Millisecond || used > want+20*time.Millisecond {
		t.Errorf("the clocks say %v, the kernel %v", used, want)
	}
	if used, err := procfile.FamilyCPU(pids); used != 0 || err != nil {
		t.Errorf("processes that have ended count %v, %v", used, err)
	}
}

// How many processes were killed for want of memory is read of control groups of both versions.
func TestStarved(t *testing.T) {
	for name, c := range map[string]struct {
		file, text string
		want       int
	}{
		"version-2": {"memory.events", "low 0\noom 2\noom_kill 3\noom_group_kill 0\n", 3},
		"version-1": {"memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1},
		"unknown":   {"other", "oom_kill 9\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			groups := t.TempDir()
			path := filepath.Join(groups, c.file)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(c.text), 0o644)); err != nil {
				t.Fatal(err)
			}
			if got := procfile.Starved(groups); got != c.want {
				t.Errorf("got %d", got)
			}
		})
	}
}
