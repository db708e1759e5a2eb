package cli

import (
	"errors"
	"io"
	"slices"
	"time"
)

// answer is standard output: it remembers that something could not be written, so that no verb has to look after each line. A reader
// that stops reading would hold a verb for ever: after a signal a write is waited for no longer than unreadMost.
type answer struct {
	to     io.Writer
	until  <-chan struct{} // closed by the first signal
	failed error
}

// unreadMost is how long, after a signal, a write may take.
const unreadMost = 500 * time.Millisecond

// errUnread is the failure of a write that was waited for in vain. It may still end.
var errUnread = errors.New("its reader does not read")

func (a *answer) Write(b []byte) (int, error) {
	if errors.Is(a.failed, errUnread) {
		return 0, a.failed
	}
	n, err := a.write(slices.Clone(b)) // which may be read after this has returned
	if a.failed == nil {
		a.failed = err
	}
	return n, err
}

func (a *answer) write(b []byte) (n int, err error) {
	done := make(chan struct{})
	var written int
	var failed error
	go func() {
		written, failed = a.to.Write(b)
		close(done)
	}()
	select {
	case <-done:
		return written, failed
	case <-a.until:
	}
	select {
	case <-done:
		return written, failed
	case <-time.After(unreadMost):
		return 0, errUnread
	}
}
