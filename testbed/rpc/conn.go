package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"netdelta/internal/clock"
)

const (
	// window is how many bytes of a stream may be under way or unread: enough to keep the port busy.
	window = 256 << 10
	// frameMost is the longest content of a frame. Longer ones make the others wait, shorter ones cost more headers.
	frameMost = 32 << 10
	// headerMost bounds what a stream is opened with.
	headerMost = 1 << 20
)

// kind says what a frame is.
type kind byte

const (
	opens   kind = 1 + iota // a new stream; the content is its header
	carries                 // bytes of a stream
	ends                    // the sender's half of a stream ends
	takes                   // the reader has taken so many bytes: 4 bytes, big-endian
	drops                   // this end no longer reads or writes the stream
)

// frameHead is the kind, the stream's number and the content's length.
const frameHead = 1 + 4 + 4

// frame appends a frame to others.
func frame(others []byte, k kind, id uint32, content []byte) []byte {
	all := binary.BigEndian.AppendUint32(append(others, byte(k)), id)
	return append(binary.BigEndian.AppendUint32(all, uint32(len(content))), content...)
}

// errNotProtocol is matched by the error of a connection on which something else than frames came.
var errNotProtocol = errors.New("what came is not the protocol")

// ErrClosed is what streams of a closed connection return.
var ErrClosed = errors.New("the connection is closed")

// endedError says that nothing more can be read.
type endedError struct{ error }

func (e *endedError) Error() string { return "the other end is gone: " + e.error.Error() }
func (e *endedError) Unwrap() error { return e.error }

// Conn is one end of a connection. It is safe for concurrent use.
type Conn struct {
	rwc io.ReadWriteCloser

	writing sync.Mutex // held while a frame is written

	mu      sync.Mutex
	streams map[uint32]*Stream
	next    uint32 // the number of the next stream that is opened here: odd at one end, even at the other
	err     error  // why the connection ended

	incoming chan *Stream
	done     chan struct{}

	began        time.Time
	heard, wrote atomic.Int64 // when the last frame came and went, in nanoseconds since it began
}

// NewConn starts a connection over rwc, which it owns from now on. Exactly one of the two ends is the first.
func NewConn(rwc io.ReadWriteCloser, first bool) *Conn {
	c := &Conn{rwc: rwc, streams: map[uint32]*Stream{}, next: 2, incoming: make(chan *Stream, 64), done: make(chan struct{}), began: time.Now()}
	if first {
		c.next = 1
	}
	go c.read()
	return c
}

// Open starts a stream, which the other end gets from Accept with this header of at most a mebibyte.
func (c *Conn) Open(header []byte) (*Stream, error) { return c.open(header, false) }

// open starts a stream. This end writes nothing but the header on one that is shut.
func (c *Conn) open(header []byte, shut bool) (*Stream, error) {
	if len(header) > headerMost {
		return nil, fmt.Errorf("open a stream: its header of %d bytes is longer than %d", len(header), headerMost)
	}
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return nil, err
	}
	s := newStream(c, c.next, header)
	s.shut = shut
	c.next += 2
	c.streams[s.id] = s
	c.mu.Unlock()
	frames := frame(nil, opens, s.id, header)
	if shut {
		frames = frame(frames, ends, s.id, nil)
	}
	if err := c.write(frames); err != nil {
		return nil, err
	}
	return s, nil
}

// Accept waits for a stream that the other end opens.
func (c *Conn) Accept() (*Stream, error) {
	select {
	case s := <-c.incoming:
		return s, nil
	case <-c.done:
		return nil, c.Err()
	}
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Silent is for how long one of the two ends has said nothing.
func (c *Conn) Silent() time.Duration {
	return time.Since(c.began) - time.Duration(min(c.heard.Load(), c.wrote.Load()))
}

// Err is why the connection ended, nil while it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection and all its streams. It is idempotent.
func (c *Conn) Close() error {
	c.fail(ErrClosed)
	return nil
}

// fail ends the connection once, for the given reason.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	streams := c.streams
	c.streams = map[uint32]*Stream{}
	close(c.done)
	c.mu.Unlock()
	_ = c.rwc.Close() // the connection has ended for a reason of its own
	for _, s := range streams {
		s.fail(err)
	}
}

// write writes frames with one call to the system, so that the other end wakes up once.
func (c *Conn) write(frames []byte) error {
	c.writing.Lock()
	_, err := c.rwc.Write(frames)
	c.wrote.Store(int64(time.Since(c.began)))
	c.writing.Unlock()
	if err != nil {
		c.fail(fmt.Errorf("write to the connection: %w", err))
		return c.Err()
	}
	return nil
}

// buffered is how much is read ahead. Most requests and answers are short, and there may be a thousand agents; what is longer is read
// past the buffer.
const buffered = 4 << 10

func (c *Conn) read() {
	in := bufio.NewReaderSize(c.rwc, buffered)
	var head [frameHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			c.fail(&endedError{err})
			return
		}
		k, id, length := kind(head[0]), binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
		if length > headerMost {
			more, _ := in.Peek(in.Buffered()) // it can't fail
			c.fail(fmt.Errorf("%w: %.80q", errNotProtocol, string(head[:])+string(more)))
			return
		}
		c.heard.Store(int64(time.Since(c.began)))
		content := make([]byte, length)
		if _, err := io.ReadFull(in, content); err != nil {
			c.fail(&endedError{err})
			return
		}
		if err := c.take(k, id, content); err != nil {
			c.fail(err)
			return
		}
	}
}

// take acts on one frame. Late frames, of streams that have ended, are ignored.
func (c *Conn) take(k kind, id uint32, content []byte) error {
	if k == opens {
		return c.accept(id, content)
	}
	c.mu.Lock()
	s := c.streams[id]
	c.mu.Unlock()
	if k < carries || k > drops {
		return fmt.Errorf("the other end sent a frame of kind %d: %w", k, errNotProtocol)
	}
	if s == nil {
		return nil
	}
	switch k {
	case carries:
		return s.arrive(content)
	case takes:
		if len(content) != 4 {
			return fmt.Errorf("the other end acknowledged in other than 4 bytes: %w", errNotProtocol)
		}
		s.credit(int(binary.BigEndian.Uint32(content)))
	case ends:
		s.end()
	case drops:
		s.dropped()
	}
	return nil
}

func (c *Conn) accept(id uint32, header []byte) error {
	c.mu.Lock()
	if c.err != nil || c.streams[id] != nil || id%2 == c.next%2 {
		c.mu.Unlock()
		return fmt.Errorf("the other end opened stream %d, which it can't: %w", id, errNotProtocol)
	}
	s := newStream(c, id, header)
	s.received = clock.Now()
	c.streams[id] = s
	c.mu.Unlock()
	select {
	case c.incoming <- s:
	case <-c.done:
	}
	return nil
}

func (c *Conn) forget(id uint32) {
	c.mu.Lock()
	delete(c.streams, id)
	c.mu.Unlock()
}
