package owner

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Peer is the process that made the socket at a connection's other end: its number, and a file descriptor by which the number can't
// become another's, for the caller to close.
func Peer(conn *net.UnixConn) (pid, fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	var failed error
	err = raw.Control(func(s uintptr) {
		var who *unix.Ucred
		if who, failed = unix.GetsockoptUcred(int(s), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		pid = int(who.Pid)
		fd, failed = unix.PidfdOpen(pid, 0)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, -1, fmt.Errorf("find the process behind the socket %s: %w", conn.RemoteAddr(), err)
	}
	return pid, fd, nil
}

// Ended waits for the end of a process, and tells whether it came.
func Ended(pidfd int, patience time.Duration) bool {
	for deadline := time.Now().Add(patience); ; {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds())+1); n > 0 {
			return true
		} else if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
	}
}
