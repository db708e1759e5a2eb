package netns_test

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

func here(t *testing.T) string {
	t.Helper()
	s, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestThreadsComeBackOrEnd(t *testing.T) {
	require.Namespaces(t)
	home := here(t)
	n, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	// Many at once, so that each thread of the program, the main one among them, gets its turn.
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			do := n.Do
			if i%2 == 0 {
				do = n.DoOnce
			}
			err := do(func() error {
				if inside := here(t); inside == home {
					t.Error("the function ran outside")
				}
				runtime.Gosched()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if main, err := os.Readlink("/proc/self/ns/net"); err != nil || main != home {
		t.Errorf("the main thread is in %s, want %s (%v)", main, home, err)
	}
}

func TestClosed(t *testing.T) {
	require.Namespaces(t)
	n, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.Do(func() error { return nil }); !errors.Is(err, netns.ErrClosed) {
		t.Errorf("entering a closed namespace: got error %v, want %v", err, netns.ErrClosed)
	}
}

func TestFailureInsideLeavesNothing(t *testing.T) {
	require.Namespaces(t)
	failure := errors.New("failure")
	n, err := netns.New(func() error { return failure })
	if n != nil || !errors.Is(err, failure) {
		t.Errorf("got namespace %v and error %v, want none and %v", n, err, failure)
	}
}

func TestIdentity(t *testing.T) {
	require.Namespaces(t)
	own, err := netns.Own()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	same, err := netns.Of(unix.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	defer same.Close()
	other, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if own.ID() != same.ID() || own.ID() == other.ID() {
		t.Errorf("identities: own %v, the same by its process %v, another %v", own.ID(), same.ID(), other.ID())
	}
}
