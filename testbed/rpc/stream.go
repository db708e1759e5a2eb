package rpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// ErrDropped is what Write returns when the other end has closed the stream.
var ErrDropped = errors.New("the other end has closed the stream")

// Stream is a two-way stream of bytes. One goroutine may read while another writes. It is over when neither end writes any more, or either
// end has closed it.
type Stream struct {
	conn     *Conn
	id       uint32
	header   []byte
	received time.Duration // when the other end's opening came in

	mu    sync.Mutex
	moved sync.Cond // something below has changed

	unread []byte // came and was not read yet
	taken  int    // read, and not acknowledged yet
	ended  bool   // the other end writes no more
	room   int    // how many bytes may still be written
	gone   bool   // the other end has closed the stream
	closed bool   // this end has
	shut   bool   // this end writes no more
	err    error  // why the connection ended

	left  chan struct{} // closed when it is over
	leave sync.Once
}

func newStream(c *Conn, id uint32, header []byte) *Stream {
	s := &Stream{conn: c, id: id, header: header, room: window, left: make(chan struct{})}
	s.moved.L = &s.mu
	return s
}

// Header is what the stream was opened with.
func (s *Stream) Header() []byte { return s.header }

// Left is closed when the stream is over, or the connection has ended.
func (s *Stream) Left() <-chan struct{} { return s.left }

// Read implements io.Reader. It returns io.EOF after the other end's CloseWrite or Close.
func (s *Stream) Read(b []byte) (int, error) {
	s.mu.Lock()
	for len(s.unread) == 0 && !s.ended && !s.closed && s.err == nil {
		s.moved.Wait()
	}
	switch {
	case s.closed:
		s.mu.Unlock()
		return 0, ErrClosed
	case len(s.unread) > 0:
	case s.ended:
		s.mu.Unlock()
		return 0, io.EOF
	default:
		err := s.err
		s.mu.Unlock()
		return 0, err
	}
	n := copy(b, s.unread)
	s.unread = s.unread[n:]
	s.taken += n
	acknowledge := 0
	// A quarter of the window at a time: fewer frames, and the writer never runs dry.
	if s.taken >= window/4 && !s.ended {
		acknowledge, s.taken = s.taken, 0
	}
	s.mu.Unlock()
	if acknowledge > 0 {
		// That the connection has ended is told by the next Read.
		_ = s.conn.write(frame(nil, takes, s.id, binary.BigEndian.AppendUint32(nil, uint32(acknowledge))))
	}
	return n, nil
}

// Write implements io.Writer. It waits while the other end is a window behind.
func (s *Stream) Write(b []byte) (int, error) { return s.send(b, false) }

// send is Write. With last, what it writes last ends this half of the stream as well.
func (s *Stream) send(b []byte, last bool) (int, error) {
	written := 0
	for len(b) > 0 {
		n, err := s.reserve(min(len(b), frameMost))
		if err != nil {
			return written, err
		}
		frames := frame(nil, carries, s.id, b[:n])
		if last && n == len(b) && s.shutDown() {
			frames = frame(frames, ends, s.id, nil)
		}
		if err := s.conn.write(frames); err != nil {
			return written, err
		}
		written, b = written+n, b[n:]
	}
	return written, nil
}

// reserve waits for room for some of so many bytes.
func (s *Stream) reserve(wanted int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.room == 0 && !s.gone && !s.closed && !s.shut && s.err == nil {
		s.moved.Wait()
	}
	switch {
	case s.err != nil:
		return 0, s.err
	case s.closed || s.shut:
		return 0, ErrClosed
	case s.gone:
		return 0, ErrDropped
	}
	n := min(wanted, s.room)
	s.room -= n
	return n, nil
}

// CloseWrite tells the other end that no more comes. It is idempotent.
func (s *Stream) CloseWrite() error {
	if !s.shutDown() {
		return nil // where nothing can be sent any more, nothing has to be told
	}
	return s.conn.write(frame(nil, ends, s.id, nil))
}

// shutDown notes that this end writes no more, and says whether the other end has to be told.
func (s *Stream) shutDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shut || s.closed || s.err != nil {
		return false
	}
	s.shut = true
	s.changed()
	return true
}

// Close ends the stream at this end: what is unread is lost. It is idempotent.
func (s *Stream) Close() error {
	s.mu.Lock()
	over := s.over()
	s.closed = true
	s.changed()
	s.mu.Unlock()
	if !over && s.conn.Err() == nil {
		if err := s.conn.write(frame(nil, drops, s.id, nil)); err != nil && !errors.Is(err, ErrClosed) {
			return fmt.Errorf("close a stream: %w", err)
		}
	}
	return nil
}

// over tells whether nothing more has to be told or heard of the stream. The caller holds s.mu.
func (s *Stream) over() bool { return s.closed || s.gone || s.err != nil || s.shut && s.ended }

// changed wakes those who wait for the stream. Once it is over, the connection forgets it. The caller holds s.mu.
func (s *Stream) changed() {
	if s.over() {
		s.leave.Do(func() {
			close(s.left)
			s.conn.forget(s.id)
		})
	}
	s.moved.Broadcast()
}

func (s *Stream) arrive(content []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if len(s.unread)+s.taken+len(content) > window {
		return fmt.Errorf("the other end sent more than it may: %w", errNotProtocol)
	}
	s.unread = append(s.unread, content...)
	s.changed()
	return nil
}

func (s *Stream) credit(n int) {
	s.change(func() { s.room += n })
}

func (s *Stream) end() {
	s.change(func() { s.ended = true })
}

func (s *Stream) dropped() {
	s.change(func() { s.ended, s.gone = true, true })
}

func (s *Stream) fail(err error) {
	s.change(func() { s.err = err })
}

func (s *Stream) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	s.changed()
}
