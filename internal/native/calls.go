package native

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Errno is the error of a system call; 0 is none.
type Errno = syscall.Errno

// Send sends n bytes at p on a connected socket, in one system call. Flags are as in send(2); no signal is raised.
//
//go:nosplit
//go:norace
func Send(fd int32, p unsafe.Pointer, n, flags uintptr) (uintptr, Errno) {
	sent, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(p), n, flags|unix.MSG_NOSIGNAL, 0, 0)
	return sent, errno
}

// Receive receives up to n bytes into p, in one system call.
//
//go:nosplit
//go:norace
func Receive(fd int32, p unsafe.Pointer, n, flags uintptr) (uintptr, Errno) {
	got, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(p), n, flags, 0, 0)
	return got, errno
}

// SendTo is Send to an address.
//
//go:nosplit
//go:norace
func SendTo(fd int32, p unsafe.Pointer, n uintptr, address unsafe.Pointer, length uintptr) (uintptr, Errno) {
	sent, _, errno := syscall.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(p), n, unix.MSG_NOSIGNAL, uintptr(address), length)
	return sent, errno
}

// ReceiveFrom is Receive with the sender's address, whose room and then length is at length.
//
//go:nosplit
//go:norace
func ReceiveFrom(fd int32, p unsafe.Pointer, n uintptr, address unsafe.Pointer, length *uint32) (uintptr, Errno) {
	got, _, errno := syscall.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(p), n, 0, uintptr(address), uintptr(unsafe.Pointer(length)))
	return got, errno
}

// Socket opens a socket.
//
//go:nosplit
//go:norace
func Socket(family, kind, protocol uintptr) (int32, Errno) {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_SOCKET, family, kind, protocol, 0, 0, 0)
	return int32(fd), errno
}

// Bind binds a socket to an address.
//
//go:nosplit
//go:norace
func Bind(fd int32, address unsafe.Pointer, length uintptr) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_BIND, uintptr(fd), uintptr(address), length, 0, 0, 0)
	return errno
}

// Connect connects a socket to an address.
//
//go:nosplit
//go:norace
func Connect(fd int32, address unsafe.Pointer, length uintptr) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_CONNECT, uintptr(fd), uintptr(address), length, 0, 0, 0)
	return errno
}

// Accept takes the next connection of a listening socket.
//
//go:nosplit
//go:norace
func Accept(fd int32, flags uintptr) (int32, Errno) {
	conn, _, errno := syscall.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, flags, 0, 0)
	return int32(conn), errno
}

// SetOption sets a socket option.
//
//go:nosplit
//go:norace
func SetOption(fd int32, level, name uintptr, value unsafe.Pointer, length uintptr) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), level, name, uintptr(value), length, 0)
	return errno
}

// Option reads a socket option.
//
//go:nosplit
//go:norace
func Option(fd int32, level, name uintptr, value unsafe.Pointer, length *uint32) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), level, name, uintptr(value), uintptr(unsafe.Pointer(length)), 0)
	return errno
}

// Pending is the error that a socket has met since it was last asked, above all by a connect that did not wait.
//
//go:nosplit
//go:norace
func Pending(fd int32) Errno {
	var errno int32
	length := uint32(unsafe.Sizeof(errno))
	if failed := Option(fd, unix.SOL_SOCKET, unix.SO_ERROR, unsafe.Pointer(&errno), &length); failed != 0 {
		return failed
	}
	return Errno(errno)
}

// Close closes a file.
//
//go:nosplit
//go:norace
func Close(fd int32) { _, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0) }

// Shutdown ends a connection both ways, even if another has a handle on it.
//
//go:nosplit
//go:norace
func Shutdown(fd int32) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_SHUTDOWN, uintptr(fd), unix.SHUT_RDWR, 0, 0, 0, 0)
}

// Write writes n bytes at p.
//
//go:nosplit
//go:norace
func Write(fd int32, p unsafe.Pointer, n uintptr) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_WRITE, uintptr(fd), uintptr(p), n, 0, 0, 0)
	return errno
}

// EpollControl watches a file for events (unix.EPOLL_CTL_ADD), or changes those that it is watched for (unix.EPOLL_CTL_MOD).
//
//go:nosplit
//go:norace
func EpollControl(epoll int32, operation uintptr, fd int32, event *unix.EpollEvent) Errno {
	_, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epoll), operation, uintptr(fd), uintptr(unsafe.Pointer(event)), 0, 0)
	return errno
}

// EpollWait waits for up to room events, at most for the time given; a negative time waits without end. Where the kernel is
// too old to wait for less than a millisecond (before 5.11), the time is rounded down to milliseconds.
//
//go:nosplit
//go:norace
func EpollWait(epoll int32, events unsafe.Pointer, room uintptr, nanoseconds int64) (int, Errno) {
	var span unix.Timespec
	at := uintptr(0)
	if nanoseconds >= 0 {
		span.Sec, span.Nsec = nanoseconds/1e9, nanoseconds%1e9
		at = uintptr(unsafe.Pointer(&span))
	}
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epoll), uintptr(events), room, at, 0, 0)
	if errno == unix.ENOSYS {
		milliseconds := int64(-1)
		if nanoseconds >= 0 {
			milliseconds = nanoseconds / 1e6
		}
		n, _, errno = syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(events), room, uintptr(milliseconds), 0, 0)
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// Sleep waits for a span of nanoseconds.
//
//go:nosplit
//go:norace
func Sleep(nanoseconds int64) {
	span := unix.Timespec{Sec: nanoseconds / 1e9, Nsec: nanoseconds % 1e9}
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_NANOSLEEP, unix.CLOCK_MONOTONIC, 0, uintptr(unsafe.Pointer(&span)), 0, 0, 0)
}

// InvoluntarySwitches is how often this thread was preempted since it began.
//
//go:nosplit
//go:norace
func InvoluntarySwitches() int64 {
	var usage unix.Rusage
	_, _, _ = syscall.RawSyscall6(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&usage)), 0, 0, 0, 0)
	return usage.Nivcsw
}

// Yield lets other threads on this processor run first.
//
//go:nosplit
//go:norace
func Yield() { _, _, _ = syscall.RawSyscall6(unix.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0) }

// ThreadID is the kernel's number of this thread.
//
//go:nosplit
//go:norace
func ThreadID() int32 {
	id, _, _ := syscall.RawSyscall6(unix.SYS_GETTID, 0, 0, 0, 0, 0, 0)
	return int32(id)
}

// ThreadCPU is the processor time that this thread has used since it began, in nanoseconds, with what the kernel did in its
// name.
//
// Not inlined, it costs its callers no stack.
//
//go:nosplit
//go:noinline
//go:norace
func ThreadCPU() int64 {
	var ts unix.Timespec
	_, _, _ = syscall.RawSyscall6(unix.SYS_CLOCK_GETTIME, unix.CLOCK_THREAD_CPUTIME_ID, uintptr(unsafe.Pointer(&ts)), 0, 0, 0, 0)
	return ts.Nano()
}

const (
	futexWaitPrivate = 128
	futexWakePrivate = 129
)

// FutexWait sleeps while *word is value. It may return early.
//
//go:nosplit
//go:norace
func FutexWait(word *uint32, value uint32) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWaitPrivate, uintptr(value), 0, 0, 0)
}

// FutexWake wakes a thread that sleeps on word.
func FutexWake(word *uint32) {
	_, _, _ = syscall.RawSyscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWakePrivate, 1, 0, 0, 0)
}

// EpollCreate opens an epoll instance.
//
//go:nosplit
//go:norace
func EpollCreate() (int32, Errno) {
	fd, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_CREATE1, unix.EPOLL_CLOEXEC, 0, 0, 0, 0, 0)
	return int32(fd), errno
}

// Progress is how many bytes a TCP socket has sent since its connection began, those sent anew too, and how many of them
// its peer has acknowledged.
//
//go:nosplit
//go:norace
func Progress(fd int32) (sent, acknowledged uint64, errno Errno) {
	var info unix.TCPInfo
	length := uint32(unsafe.Offsetof(info.Bytes_retrans))
	errno = Option(fd, unix.IPPROTO_TCP, unix.TCP_INFO, unsafe.Pointer(&info), &length)
	return info.Bytes_sent, info.Bytes_acked, errno
}

// Errors that have a meaning to load engines.
const (
	MessageTooLong      = unix.EMSGSIZE
	AddressNotAvailable = unix.EADDRNOTAVAIL
)
