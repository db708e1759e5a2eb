package native

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestThreadHasItsOwnFiles(t *testing.T) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var shared, kept, dropped error
	done, err := Start(Thread{CPU: -1, Files: []int32{int32(fds[1])}}, func() {
		if unix.CloseRange(^uint(0)>>32, ^uint(0)>>32, 0) != nil {
			shared = unix.ENOSYS
			return
		}
		_, kept = unix.FcntlInt(uintptr(fds[1]), unix.F_GETFD, 0)
		_, dropped = unix.FcntlInt(other.Fd(), unix.F_GETFD, 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if shared == nil && (kept != nil || dropped != unix.EBADF) {
		t.Errorf("the file that was asked for: %v; another: %v, want EBADF", kept, dropped)
	}
	if _, err := unix.FcntlInt(other.Fd(), unix.F_GETFD, 0); err != nil {
		t.Errorf("this thread lost a file: %v", err)
	}
	// The thread's handle on the pipe is gone with it: closing this one is the end of the pipe.
	if err := unix.Close(fds[1]); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.Read(fds[0], make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("read from a pipe without writers: %d, %v", n, err)
	}
	if err := unix.Close(fds[0]); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestThreadIsPinned(t *testing.T) {
	var got string
	done, err := Start(Thread{CPU: 0}, func() {
		status, err := os.ReadFile("/proc/thread-self/status")
		if err != nil {
			t.Error(err)
		}
		_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:\t")
		got, _, _ = strings.Cut(rest, "\n")
	})
	if err != nil {
		t.Fatal(err)
	}
	<-done
	if got != "0" {
		t.Errorf("allowed processors %q, want 0", got)
	}
	for _, cpu := range []int{1023, 1024, 1 << 30} {
		if done, err := Start(Thread{CPU: cpu}, func() { t.Error("the body runs") }); err == nil {
			<-done
			t.Errorf("pinned to processor %d", cpu)
		}
	}
}

// parked holds a thread in a native section until word is raised.
//
//go:nosplit
//go:norace
func parked(word *uint32) {
	EnterSyscall()
	for atomic.LoadUint32(word) == 0 {
		FutexWait(word, 0)
	}
	ExitSyscall()
}

// TestNativeSectionHoldsUpNobody parks more threads than there are processors for goroutines, and then collects garbage,
// which must stop all that is not in a system call.
func TestNativeSectionHoldsUpNobody(t *testing.T) {
	arena, err := NewArena(4096)
	if err != nil {
		t.Fatal(err)
	}
	word := (*uint32)(arena.Take(4))
	var ends []<-chan struct{}
	for range 4 * runtime.GOMAXPROCS(0) {
		done, err := Start(Thread{CPU: -1}, func() { parked(word) })
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, done)
	}
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for range 10 {
			runtime.GC()
		}
	}()
	select {
	case <-collected:
	case <-time.After(20 * time.Second):
		t.Fatal("garbage collection waits for a native section")
	}
	atomic.StoreUint32(word, 1)
	for _, done := range ends {
		for ended := false; !ended; {
			FutexWake(word)
			select {
			case <-done:
				ended = true
			case <-time.After(time.Millisecond):
			}
		}
	}
	if err := arena.Free(); err != nil {
		t.Fatal(err)
	}
}

func TestArena(t *testing.T) {
	a, err := NewArena(1)
	if err != nil {
		t.Fatal(err)
	}
	first, second := a.Take(1), a.Take(100)
	if gap := uintptr(second) - uintptr(first); gap != alignment {
		t.Errorf("the second block is %d bytes after the first", gap)
	}
	for i, b := range unsafe.Slice((*byte)(second), 100) {
		if b != 0 {
			t.Fatalf("byte %d is %d", i, b)
		}
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("an arena gives more than it has")
			}
		}()
		a.Take(1 << 20)
	}()
	for range 2 {
		if err := a.Free(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := NewArena(1 << 60); err == nil || !strings.Contains(err.Error(), fmt.Sprint(1<<60)) {
		t.Errorf("an arena of 2^60 bytes: %v", err)
	}
}
