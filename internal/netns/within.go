package netns

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Within runs f on a thread of its own inside the namespace that a file descriptor holds. What f starts in goroutines is
// outside. The thread ends afterwards.
func Within(fd int, f func() error) error {
	return onLockedThread(func() (keep bool, err error) {
		if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
			return false, fmt.Errorf("enter a network namespace: %w", err)
		}
		return false, f()
	})
}
