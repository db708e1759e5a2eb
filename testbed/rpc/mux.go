package rpc

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
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

// ErrClosed is what streams of a closed connection return.
var ErrClosed = errors.New("the connection is closed")

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
}

// NewConn starts a connection over rwc, which it owns from now on. Exactly one of the two ends is the first.
func NewConn(rwc io.ReadWriteCloser, first bool) *Conn {
	c := &Conn{rwc: rwc, streams: map[uint32]*Stream{}, next: 2, incoming: make(chan *Stream, 64), done: make(chan struct{})}
	if first {
		c.next = 1
	}
	go c.read()
	return c
}

// Open starts a stream, which the other end gets from Accept with this header of at most a mebibyte.
func (c *Conn) Open(header []byte) (*Stream, error) {
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
	c.next += 2
	c.streams[s.id] = s
	c.mu.Unlock()
	if err := c.write(opens, s.id, header); err != nil {
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

func (c *Conn) write(k kind, id uint32, content []byte) error {
	frame := make([]byte, frameHead, frameHead+len(content))
	frame[0] = byte(k)
	binary.BigEndian.PutUint32(frame[1:], id)
	binary.BigEndian.PutUint32(frame[5:], uint32(len(content)))
	frame = append(frame, content...)
	c.writing.Lock()
	_, err := c.rwc.Write(frame)
	c.writing.Unlock()
	if err != nil {
		c.fail(fmt.Errorf("write to the connection: %w", err))
		return c.Err()
	}
	return nil
}

func (c *Conn) read() {
	in := bufio.NewReaderSize(c.rwc, 2*frameMost)
	var head [frameHead]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			c.fail(fmt.Errorf("the other end is gone: %w", err))
			return
		}
		k, id, length := kind(head[0]), binary.BigEndian.Uint32(head[1:]), binary.BigEndian.Uint32(head[5:])
		if length > headerMost {
			c.fail(fmt.Errorf("the other end sent a frame of %d bytes: what came is not the protocol", length))
			return
		}
		content := make([]byte, length)
		if _, err := io.ReadFull(in, content); err != nil {
			c.fail(fmt.Errorf("the other end is gone: %w", err))
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
		return fmt.Errorf("the other end sent a frame of kind %d: what came is not the protocol", k)
	}
	if s == nil {
		return nil
	}
	switch k {
	case carries:
		return s.arrive(content)
	case takes:
		if len(content) != 4 {
			return errors.New("the other end acknowledged in other than 4 bytes: what came is not the protocol")
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
		return fmt.Errorf("the other end opened stream %d, which it can't: what came is not the protocol", id)
	}
	s := newStream(c, id, header)
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

// streamAnswerMost bounds an answer on a stream: a list of packets is the longest.
const streamAnswerMost = 256 << 20

// Begin opens a stream with a request.
func (c *Conn) Begin(op string, args any) (*Stream, error) {
	r, err := NewRequest(op, args)
	if err != nil {
		return nil, err
	}
	header, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", op, err)
	}
	return c.Open(header)
}

// Ask makes a request on a stream of its own and waits for the answer. When ctx ends first, the request is given up. The error of the other
// end is an *Error.
func Ask[R any](ctx context.Context, c *Conn, op string, args any) (value R, err error) {
	stream, err := c.Begin(op, args)
	if err != nil {
		return value, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() })
	var a Answer
	err = json.NewDecoder(io.LimitReader(stream, streamAnswerMost)).Decode(&a)
	stop()
	closed := stream.Close()
	switch broken := c.Err(); {
	case err != nil && ctx.Err() != nil:
		return value, ctx.Err()
	case err != nil && broken != nil:
		return value, broken
	case err != nil:
		return value, errors.Join(fmt.Errorf("read the answer to %s: %w", op, err), closed)
	case a.Error != nil:
		return value, errors.Join(a.Error, closed)
	}
	return value, errors.Join(json.Unmarshal(a.Value, &value), closed)
}

// Serve hands each stream that the other end opens, with its request, to a goroutine of its own, until the connection ends. It then calls
// cleanUp and returns when all of them are done; without a cleanUp it returns at once. What a goroutine leaves of a stream is ended for it.
func (c *Conn) Serve(serve func(*Stream, Request), cleanUp func() error) error {
	var under sync.WaitGroup
	for {
		stream, err := c.Accept()
		if err != nil {
			break // the caller has gone
		}
		under.Go(func() {
			var r Request
			if err := json.Unmarshal(stream.Header(), &r); err != nil {
				stream.Answer(r, nil, fmt.Errorf("reading a request: %w", err))
			} else {
				serve(stream, r)
			}
			_ = stream.CloseWrite()
			_, _ = io.Copy(io.Discard, stream)
			_ = stream.Close()
		})
	}
	if cleanUp == nil {
		return nil
	}
	err := cleanUp()
	under.Wait()
	return err
}

// Answer answers the request of a stream. The caller learns by the end of the stream what it could not be told.
func (s *Stream) Answer(r Request, value any, err error) {
	_ = json.NewEncoder(s).Encode(r.Reply(value, err))
}
