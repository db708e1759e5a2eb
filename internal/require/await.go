package require

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Eventually waits until a condition holds, and ends the test if it does not hold in time. What says the condition in words.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	NoError(t, Await(within, what, func() error {
		if !holds() {
			return errors.New("it is not so")
		}
		return nil
	}))
}

// Await tries something until it succeeds. If that takes too long, its error says what was awaited, and wraps the error of the last try.
func Await(within time.Duration, what string, try func() error) error {
	for began := time.Now(); ; {
		err := try()
		if err == nil {
			return nil
		}
		waited := time.Since(began)
		if waited > within {
			return fmt.Errorf("waited %v until %s: %w", within, what, err)
		}
		// What comes soon is seen soon, and what takes long is not disturbed by many tries.
		time.Sleep(min(max(waited/10, time.Millisecond), 100*time.Millisecond))
	}
}

// Ended waits until a process has ended, whether or not its parent has taken note of that.
func Ended(t testing.TB, within time.Duration, pid int) {
	t.Helper()
	NoError(t, Await(within, fmt.Sprintf("process %d has ended", pid), func() error {
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // there is none when it has ended
		if len(stat) == 0 || bytes.Contains(stat, []byte(") Z ")) {
			return nil
		}
		return fmt.Errorf("it is %s", bytes.TrimSpace(stat))
	}))
}

// Stop stops a process and waits until none of its threads runs any more: the signal reaches each of them in its own time.
func Stop(t testing.TB, within time.Duration, pid int) {
	t.Helper()
	NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	NoError(t, Await(within, fmt.Sprintf("process %d has stopped", pid), func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		for _, thread := range threads {
			stat, _ := os.ReadFile(thread) // there is none when it has ended
			if _, state, found := bytes.Cut(stat, []byte(") ")); found && state[0] != 'T' {
				err = errors.Join(err, fmt.Errorf("thread %s is in state %c", thread, state[0]))
			}
		}
		return err
	}))
}
