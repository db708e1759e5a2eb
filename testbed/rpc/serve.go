package rpc

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"netdelta/internal/clock"
)

// requestMost bounds the line of a request.
const requestMost = 1 << 20

// Serve answers requests from in on out until in ends, which is not an error: the caller is gone or done. They are carried out one after
// another in their order. With abandon, the end of in is noticed even while one hangs: Serve then returns at once, for its caller to end the
// process. Else it returns when the last is answered.
func Serve(in io.Reader, out io.Writer, abandon bool, handle func(Request) (any, error)) error {
	requests := make(chan Request)
	done := make(chan error, 1)
	go func() { done <- serve(requests, out, handle) }()
	err := read(in, requests, done)
	close(requests)
	if !abandon && err == nil {
		err = <-done
	}
	return err
}

func read(in io.Reader, requests chan<- Request, done <-chan error) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 64<<10), requestMost)
	for scanner.Scan() {
		r := Request{Received: clock.Now()}
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		select {
		case requests <- r:
		case err := <-done:
			return err
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("reading requests: %w", err)
	}
	return nil
}

func serve(requests <-chan Request, out io.Writer, handle func(Request) (any, error)) error {
	for r := range requests {
		line, err := json.Marshal(r.Reply(handle(r)))
		if err != nil {
			return fmt.Errorf("encoding the answer to %s: %w", r.Op, err)
		}
		if _, err := out.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("answering %s: %w", r.Op, err)
		}
	}
	return nil
}
