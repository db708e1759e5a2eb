package owner_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"netdelta/internal/owner"
	"netdelta/internal/property"
	"netdelta/internal/require"
)

func self(t *testing.T) owner.Owner {
	t.Helper()
	o, err := owner.Self()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDead(t *testing.T) {
	own := self(t)
	for name, c := range map[string]struct {
		change func(*owner.Owner)
		dead   bool
	}{
		"this program":            {func(*owner.Owner) {}, false},
		"another with its number": {func(o *owner.Owner) { o.Start-- }, true},
		"before the last boot":    {func(o *owner.Owner) { o.Boot = "00000000" }, true},
		"in a container, say":     {func(o *owner.Owner) { o.Space++; o.PID = 1 << 30 }, false},
		"an unused number":        {func(o *owner.Owner) { o.PID = 1 << 30 }, true},
	} {
		o := own
		c.change(&o)
		if o.Dead() != c.dead {
			t.Errorf("%s (%s): dead is %v, want %v", name, o, o.Dead(), c.dead)
		}
	}
}

// marked starts a process that carries the mark of an owner.
func marked(t *testing.T, mark string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	cmd.Env = append(os.Environ(), owner.Variable+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

func TestProcesses(t *testing.T) {
	own := self(t)
	found := func(pid int) *owner.Process {
		all, err := owner.Processes()
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(all, func(p owner.Process) bool { return p.PID == pid }); i >= 0 {
			return &all[i]
		}
		return nil
	}
	good, bad := marked(t, own.String()+"-7"), marked(t, "nonsense")
	// The environment is this program's until the new program has been started.
	var p *owner.Process
	require.Eventually(t, 20*time.Second, "a marked process is found", func() bool {
		p = found(good.Process.Pid)
		return p != nil
	})
	if p.Owner != own || p.Mark != own.String()+"-7" || p.Name != "sleep" {
		t.Errorf("a marked process: found %+v", p)
	}
	if p := found(bad.Process.Pid); p != nil {
		t.Errorf("a process with a mark that can't be read: found %+v", p)
	}
	if p := found(os.Getpid()); p != nil {
		t.Errorf("this program has no mark: found %+v", p)
	}
}

// A process that has ended but was not waited for owns nothing any more.
func TestZombieIsDead(t *testing.T) {
	own := self(t)
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	zombie := owner.Owner{Boot: own.Boot, Space: own.Space, PID: cmd.Process.Pid}
	require.Ended(t, 20*time.Second, cmd.Process.Pid)
	if !zombie.Dead() {
		t.Error("a zombie counts as alive")
	}
}

func TestTempDirs(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	live, err := owner.TempDir()
	if err != nil {
		t.Fatal(err)
	}
	gone := self(t)
	gone.Start--
	dead := filepath.Join(os.TempDir(), "netdelta-"+gone.String()+"-123")
	for _, path := range []string{dead, filepath.Join(os.TempDir(), "netdelta-notes"), filepath.Join(os.TempDir(), "other")} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/", dead+"-link"); err != nil {
		t.Fatal(err)
	}
	found, err := owner.TempDirs()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found, []string{dead}) {
		t.Errorf("found %q, want only %q, not %q", found, dead, live)
	}
}

func TestParse(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		o := owner.Owner{
			Boot: rapid.StringMatching(`[0-9a-f]{8}`).Draw(t, "boot"), Space: rapid.Uint64().Draw(t, "space"),
			PID: rapid.IntRange(1, 1<<22).Draw(t, "pid"), Start: rapid.Uint64().Draw(t, "start"),
		}
		after := rapid.SampledFrom([]string{"", "-1", "-1-2", "-abc"}).Draw(t, "after")
		if got, err := owner.Parse(o.String() + after); err != nil || got != o {
			t.Fatalf("%s%s: got %+v and error %v", o, after, got, err)
		}
	})
	for _, bad := range []string{"", "-", "12345678-1-2", "1234567-1-2-3", "12345678-x-2-3", "12345678-1-0-3", "12345678-1--2-3", "12345678-1-2-x"} {
		if o, err := owner.Parse(bad); err == nil {
			t.Errorf("%q: got %+v", bad, o)
		}
	}
}

// A process that begins one program after the other is seen each time, also in the moment in which it has no environment.
func TestProcessThatBeginsPrograms(t *testing.T) {
	mark := self(t).String() + "-1"
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script)
	cmd.Env = append(os.Environ(), owner.Variable+"="+mark)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	for n := range 5_000 {
		if p, ok := owner.ProcessOf(cmd.Process.Pid); !ok || p.Mark != mark {
			t.Fatalf("look %d: %+v, %v", n, p, ok)
		}
	}
}

// FuzzParse: a mark that can be read is written again as it was, up to numbers that have zeros in front.
func FuzzParse(f *testing.F) {
	f.Add("01234567-4026531836-1-1")
	f.Add("01234567-1-2-3-temporary")
	f.Add("0123456-1-2-3")
	f.Add("01234567-1--2-3")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := owner.Parse(text)
		if err != nil {
			if o != (owner.Owner{}) {
				t.Fatalf("%v, and %+v", err, o)
			}
			return
		}
		if again, err := owner.Parse(o.String()); err != nil || again != o || o.PID <= 0 {
			t.Errorf("%q is %+v, and written again %+v, %v", text, o, again, err)
		}
	})
}
