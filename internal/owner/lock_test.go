package owner

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

// TestLock: one at a time has a lock, and who waits gives up with its context.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 2*lockAgain)
	defer cancel()
	if _, err := Lock(short, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another has it: %v", err)
	}
	time.AfterFunc(lockAgain, func() { _ = unlock() })
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
	if _, err := Lock(t.Context(), filepath.Join(path, "none")); err == nil {
		t.Error("a lock where no file can be")
	}
}
