package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"netdelta/internal/native"
)

// hangError says that a burst did not end in time. It matches context.DeadlineExceeded.
type hangError struct {
	after    time.Duration
	deadline bool
	step     step
	cause    error
}

func (e *hangError) Error() string {
	if !e.deadline {
		return fmt.Sprintf("burst interrupted: %v", e.cause)
	}
	doing := e.step
	if doing == stepPeerClosed || doing == stepShort {
		doing = stepReceive // it was woken by the shutdown of its own side
	}
	return fmt.Sprintf("burst not over after %v: %v; look whether the server still runs and the path to it is up", e.after, doing)
}

func (e *hangError) Unwrap() error {
	if e.deadline {
		return context.DeadlineExceeded
	}
	return e.cause
}

// brokenError says at which step a burst broke.
type brokenError struct {
	step        step
	errno       native.Errno
	transaction int64
	status      int32 // of HTTP
	failures    int64 // in a row, of HTTP
}

func (e *brokenError) Error() string {
	text := fmt.Sprintf("transaction %d: %v", e.transaction, e.step)
	if e.step == stepStatus {
		text += fmt.Sprintf(" %d", e.status)
	}
	if e.errno != 0 {
		text += fmt.Sprintf(": %v", e.errno)
	}
	if e.failures > 1 {
		text += fmt.Sprintf("; %d requests in a row have failed", e.failures)
	}
	return text
}

func (e *brokenError) Unwrap() error {
	if e.errno == 0 {
		return nil
	}
	return e.errno
}

// explain adds whose error it is, and what to do about some.
func (c *client) explain(err error) error {
	fix := ""
	switch {
	case errors.Is(err, native.MessageTooLong):
		fix = "; the message is larger than a datagram may be on this path"
	case errors.Is(err, native.AddressNotAvailable):
		fix = "; the source ports are still held by earlier connections"
	}
	return fmt.Errorf("%s to %v: %w%s", c.cfg.Workload, c.cfg.Remote, err, fix)
}

// step is what a loop was doing when it broke or hung.
type step int32

const (
	stepNone step = iota
	stepSocket
	stepBind
	stepConnect
	stepSend
	stepReceive
	stepPeerClosed
	stepEnd
	stepReport
	stepPoll
	stepStopped
	stepShort
	stepHead
	stepStatus
	stepLength
)

// String says what was being done, as part of an error message.
func (s step) String() string {
	return [...]string{
		stepNone:       "idle",
		stepSocket:     "opening a socket",
		stepBind:       "binding the source port",
		stepConnect:    "connecting",
		stepSend:       "sending",
		stepReceive:    "waiting for the response",
		stepPeerClosed: "the server closed the connection",
		stepEnd:        "waiting for the end of the connection",
		stepReport:     "waiting for the receiver's report",
		stepPoll:       "waiting for a connection to become ready",
		stepShort:      "the server closed the connection within its response",
		stepHead:       "the response is not HTTP/1 with the length of its body in its head",
		stepStatus:     "the server answered with status",
		stepLength:     "the response is not as long as the file that was asked for",
		stepStopped:    "given up",
	}[s]
}
