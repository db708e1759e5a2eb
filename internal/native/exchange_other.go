//go:build !amd64

package native

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Stamped says that RoundTrip sets Start and End.
const Stamped = false

// RoundTrip sends a message and receives one, with one system call each. It returns after the send when that was not whole.
//
//go:nosplit
//go:norace
func RoundTrip(e *Exchange) {
	if e.Sent = call(unix.SYS_SENDTO, e, e.Out, unix.MSG_NOSIGNAL); e.Sent == e.Size {
		e.Got = call(unix.SYS_RECVFROM, e, e.In, 0)
	}
}

// Answer receives and sends messages until either call gives anything but a whole message. Got tells which: it is Size when
// it was the send.
//
//go:nosplit
//go:norace
func Answer(e *Exchange) {
	for {
		if e.Got = call(unix.SYS_RECVFROM, e, e.In, 0); e.Got != e.Size {
			return
		}
		if e.Sent = call(unix.SYS_SENDTO, e, e.Out, unix.MSG_NOSIGNAL); e.Sent != e.Size {
			return
		}
		e.Served++
	}
}

//go:nosplit
//go:norace
func call(number uintptr, e *Exchange, message, flags uintptr) int64 {
	n, _, errno := syscall.RawSyscall6(number, uintptr(e.FD), message, uintptr(e.Size), flags, 0, 0)
	if errno != 0 {
		return -int64(errno)
	}
	return int64(n)
}
