package cli

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"
)

// stream is standard output or standard error. It remembers that something could not be written, so that no verb has to look after each
// line. A reader that stops reading would hold a verb for ever: a write is waited for no longer than most, nor, after a signal, than
// unreadMost. What comes while such a write hangs is lost.
type stream struct {
	to    io.Writer
	until <-chan struct{} // closed by the first signal
	most  time.Duration   // 0 is for ever

	mu     sync.Mutex
	held   chan struct{} // closed when the write that was waited for in vain has ended
	failed error
}

const (
	// unreadMost is how long, after a signal, a write may take. Two streams and what else there is to do share a second.
	unreadMost = 250 * time.Millisecond
	// messageMost is how long a message may take: a run is to be measured, and its page written, whether its messages are read or not.
	messageMost = 2 * time.Second
)

// errUnread is the failure of a write that was waited for in vain. It may still end.
var errUnread = errors.New("its reader does not read")

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.write(slices.Clone(b)) // which may be read after this has returned
	if s.failed == nil {
		s.failed = err
	}
	return n, err
}

func (s *stream) write(b []byte) (n int, err error) {
	select {
	case <-s.held:
		s.held = nil
	default:
		if s.held != nil {
			return 0, errUnread
		}
	}
	done := make(chan struct{})
	var written int
	var failed error
	go func() {
		written, failed = s.to.Write(b)
		close(done)
	}()
	var late <-chan time.Time
	if s.most > 0 {
		late = time.After(s.most)
	}
	select {
	case <-done:
		return written, failed
	case <-late:
	case <-s.until:
		select {
		case <-done:
			return written, failed
		case <-time.After(unreadMost):
		}
	}
	s.held = done
	return 0, errUnread
}
