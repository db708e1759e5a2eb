// Package native holds what a thread needs to run a measured loop undisturbed inside a Go process: memory that the garbage
// collector does not know, system calls that the scheduler does not see, and a thread with a file table of its own.
//
// A measured loop runs between EnterSyscall and ExitSyscall: the Go scheduler believes the thread to be in one long system
// call, takes the processor (the scheduler's P) away from it and forgets it. Neither preemption, garbage collection nor the
// monitor thread reaches it, and an idle loop, blocked in the kernel, costs nothing. The price: everything called there must
// be marked go:nosplit (the linker checks that the whole fits on the stack), must not allocate, and must not touch the Go heap.
package native

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"
	_ "unsafe" // for go:linkname

	"golang.org/x/sys/unix"
)

// Thread describes the thread that a measured loop runs on.
type Thread struct {
	// CPU is the processor that it is pinned to; negative leaves it free.
	CPU int
	// Files are the files that it keeps. A thread has a file table of its own, so that the kernel need not count the users of
	// a file in every system call (1-2% of a round trip on one machine); what it opens itself, no other thread sees.
	Files []int32
}

// Start runs body on a thread of its own, and ends the thread with it. It returns the channel that closes when body has
// returned, or the error that kept body from running.
func Start(t Thread, body func()) (done <-chan struct{}, err error) {
	keep, err := kept(t.Files)
	if err != nil {
		return nil, err
	}
	finished := make(chan struct{})
	ready := make(chan error, 1)
	go onOwnThread(func() {
		defer close(finished)
		own, err := t.prepare(keep)
		ready <- err
		if err != nil {
			return
		}
		body()
		if own {
			// Before done closes, so that no port is found in use.
			for _, fd := range t.Files {
				_ = unix.Close(int(fd))
			}
		}
	})
	return finished, <-ready
}

// onOwnThread runs f on a thread that is not the process's first, which can't end before the process does. The thread is
// never unlocked, so the runtime ends it when f returns.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	// While this goroutine holds the first thread, another one can't get it.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
	runtime.UnlockOSThread()
}

// Pin has the calling thread, and what it starts, run on the given processors; none leaves it as it is.
func Pin(cpus ...int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		if most := len(set)*64 - 1; cpu < 0 || cpu > most {
			return fmt.Errorf("pin to processor %d: out of range, at most %d", cpu, most)
		}
		set.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin to processors %v: %w; name one that is online and allowed to this process", cpus, err)
	}
	return nil
}

// prepare makes this thread what t asks for. own says that it got a file table of its own.
func (t Thread) prepare(keep []int32) (own bool, err error) {
	if t.CPU >= 0 {
		if err := Pin(t.CPU); err != nil {
			return false, err
		}
	}
	// Sleeps end when they should: the default slack is 50 microseconds.
	_, _, _ = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, 1, 0)
	return ownFiles(keep), nil
}

// kept is the sorted list of files for a thread's own table: those named, standard error for the runtime's last words, and
// the files of the runtime's network poller, which any thread may be asked to use.
func kept(files []int32) ([]int32, error) {
	// The poller must be there before the tables part.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a thread: %w", err)
	}
	defer func() { _, _ = r.Close(), w.Close() }()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, fmt.Errorf("start a thread: list open files: %w", err)
	}
	keep := append([]int32{2}, files...)
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		link, err := os.Readlink("/proc/self/fd/" + e.Name())
		if err == nil && (link == "anon_inode:[eventpoll]" || link == "anon_inode:[eventfd]") {
			keep = append(keep, int32(fd))
		}
	}
	slices.Sort(keep)
	return slices.Compact(keep), nil
}

// ownFiles gives this thread a copy of the file table with nothing in it but keep (sorted). Where the kernel can't (before
// 5.9), the table stays shared: that is slower, not wrong.
func ownFiles(keep []int32) bool {
	const last = ^uint32(0)
	if unix.CloseRange(uint(last), uint(last), 0) != nil {
		return false
	}
	if unix.Unshare(unix.CLONE_FILES) != nil {
		return false
	}
	next := uint(0)
	for _, fd := range keep {
		if uint(fd) > next {
			_ = unix.CloseRange(next, uint(fd)-1, 0)
		}
		next = uint(fd) + 1
	}
	_ = unix.CloseRange(next, uint(last), 0)
	return true
}

// EnterSyscall tells the Go scheduler that this goroutine is in a system call until ExitSyscall. Both must be called by one
// function, which is marked go:nosplit.
//
//go:linkname EnterSyscall runtime.entersyscall
func EnterSyscall()

// ExitSyscall ends what EnterSyscall began.
//
//go:linkname ExitSyscall runtime.exitsyscall
func ExitSyscall()

// Arena is memory outside the Go heap, resident from the start so that a measured loop meets no page fault.
type Arena struct {
	memory []byte
	used   uintptr
}

// alignment of every allocation: a cache line.
const alignment = 64

// NewArena maps size bytes.
func NewArena(size uintptr) (*Arena, error) {
	page := uintptr(unix.Getpagesize())
	size = (size + page - 1) / page * page
	memory, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes for a load engine: %w; free memory or ask for fewer connections or smaller messages", size, err)
	}
	return &Arena{memory: memory}, nil
}

// Reserved is how much of an arena a block of n bytes takes.
func Reserved(n uintptr) uintptr { return (n + alignment - 1) / alignment * alignment }

// Take hands out the next n bytes, zeroed. It panics when the arena is too small: sizes are computed beforehand.
func (a *Arena) Take(n uintptr) unsafe.Pointer {
	if a.used+Reserved(n) > uintptr(len(a.memory)) {
		panic(fmt.Sprintf("native: arena of %d bytes has no room for %d more after %d", len(a.memory), n, a.used))
	}
	p := unsafe.Pointer(&a.memory[a.used])
	a.used += Reserved(n)
	return p
}

// Free unmaps the arena. No thread may use it any more.
func (a *Arena) Free() error {
	if a.memory == nil {
		return nil
	}
	memory := a.memory
	a.memory = nil
	return unix.Munmap(memory)
}
