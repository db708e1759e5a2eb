package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/native"
)

// exactMost is how many transactions are stamped in one exchange.
const exactMost = 4096

// exactEnd is one end of an exact measurement. It lives in an arena. Each transaction is stamped: at the client when its
// request is about to be sent and when the whole response is there, at the server when the whole request is there.
type exactEnd struct {
	clock        clock.Clock
	fd           int32
	message      uintptr
	out, in      unsafe.Pointer
	transactions int64
	done         int64
	begun, ended *[exactMost]int64
	step         step
	errno        native.Errno
}

// ask is the client: one transaction after another.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (e *exactEnd) ask() {
	native.EnterSyscall()
	e.done, e.step, e.errno = 0, stepNone, 0
	for e.done < e.transactions {
		n := uint64(e.done) % exactMost
		e.begun[n] = e.clock.Ticks()
		if !e.send() || !e.receive() {
			break
		}
		e.ended[n] = e.clock.Ticks()
		e.done++
	}
	native.ExitSyscall()
}

// answer is the server.
//
//go:nosplit
//go:norace
//go:nocheckptr
func (e *exactEnd) answer() {
	native.EnterSyscall()
	e.done, e.step, e.errno = 0, stepNone, 0
	for e.done < e.transactions {
		if !e.receive() {
			break
		}
		e.ended[uint64(e.done)%exactMost] = e.clock.Ticks()
		if !e.send() {
			break
		}
		e.done++
	}
	native.ExitSyscall()
}

//go:nosplit
//go:norace
//go:nocheckptr
func (e *exactEnd) send() bool {
	for done := uintptr(0); done < e.message; {
		n, errno := native.Send(e.fd, unsafe.Add(e.out, done), e.message-done, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			e.step, e.errno = stepSend, errno
			return false
		}
		done += n
	}
	return true
}

//go:nosplit
//go:norace
//go:nocheckptr
func (e *exactEnd) receive() bool {
	for done := uintptr(0); done < e.message; {
		n, errno := native.Receive(e.fd, unsafe.Add(e.in, done), e.message-done, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			e.step, e.errno = stepReceive, errno
			return false
		}
		if n == 0 {
			e.step = stepPeerClosed
			return false
		}
		done += n
	}
	return true
}
