package engine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// openSignal opens a pipe by which a loop says that it has carried out an order: the Go side reads its end through the runtime's poller.
func openSignal() (read *os.File, write int32, err error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, 0, fmt.Errorf("open a pipe: %w", err)
	}
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open a pipe: %w", err), unix.Close(pipe[0]), unix.Close(pipe[1]))
	}
	return os.NewFile(uintptr(pipe[0]), "burst"), int32(pipe[1]), nil
}

// narrow gives file descriptors the size that the kernel gives them.
func narrow(files []int) []int32 {
	all := make([]int32, len(files))
	for i, fd := range files {
		all[i] = int32(fd)
	}
	return all
}
