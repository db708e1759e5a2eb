package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

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
