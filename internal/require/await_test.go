package require

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ready := func() bool { return time.Since(began) >= 3*time.Second }
		Eventually(t, 4*time.Second, "three seconds are over", ready)
		if late := time.Since(began) - 3*time.Second; late > 300*time.Millisecond {
			t.Errorf("a condition was seen %v after it held", late)
		}
		closed := errors.New("the door is closed")
		tries := 0
		began = time.Now()
		err := Await(time.Minute, "somebody is in", func() error { tries++; return closed })
		if took := time.Since(began); took < time.Minute || took > 61*time.Second || tries > 1000 {
			t.Errorf("it gave up after %v and %d tries", took, tries)
		}
		if !errors.Is(err, closed) || !strings.Contains(err.Error(), "1m0s") || !strings.Contains(err.Error(), "somebody is in") {
			t.Errorf("the error is %q", err)
		}
		r := &recorder{TB: t}
		func() {
			defer func() { _ = recover() }()
			Eventually(r, time.Second, "pigs fly", func() bool { return false })
		}()
		if !strings.Contains(r.said, "pigs fly") {
			t.Errorf("a test ended with %q", r.said)
		}
	})
}

func TestEnded(t *testing.T) {
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	NoError(t, err)
	NoError(t, cmd.Start())
	r := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		Ended(r, 0, cmd.Process.Pid)
	}()
	if !strings.Contains(r.said, "(cat)") {
		t.Errorf("of a process that runs it says %q", r.said)
	}
	NoError(t, in.Close())
	Ended(t, time.Minute, cmd.Process.Pid) // it is a zombie
	NoError(t, cmd.Wait())
	Ended(t, time.Minute, cmd.Process.Pid)
}
