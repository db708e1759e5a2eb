package rpc

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// MessageKind says what a message holds.
type MessageKind byte

// The kinds of messages.
const (
	Started MessageKind = 1 + iota // JSON of Start
	Stdout                         // bytes
	Stderr                         // bytes
	Exited                         // JSON of Exit; the last of a process
	Ready                          // JSON of what introduces an end that takes no requests; its first
)

// Start says that a program runs.
type Start struct {
	PID int `json:"pid"`
}

// Exit says how a program ended.
type Exit struct {
	// Status is the exit status, -1 where a signal ended it or it could not be started.
	Status int `json:"status"`
	Signal int `json:"signal,omitempty"`
	// Error is why it could not be started, or what failed about it otherwise.
	Error string `json:"error,omitempty"`
	// NotFound says that there is no such program.
	NotFound bool `json:"not_found,omitempty"`
}

// messageMost is the longest content of a message.
const messageMost = 64 << 10

// Writer writes messages. It is safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	to io.Writer
}

// NewWriter writes messages to a stream.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Bytes writes output, in as many messages as it takes.
func (w *Writer) Bytes(k MessageKind, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), messageMost)
		if err := w.message(k, b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// JSON writes a message with a value.
func (w *Writer) JSON(k MessageKind, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.message(k, text)
}

func (w *Writer) message(k MessageKind, content []byte) error {
	message := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(content)))
	message = append(message, content...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(message)
	return err
}

// ReadMessage reads one message. It returns io.EOF where the stream ends between two.
func ReadMessage(from io.Reader) (MessageKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("read a message: %w", err)
	}
	k, length := MessageKind(head[0]), binary.BigEndian.Uint32(head[1:])
	if k < Started || k > Ready || length > messageMost {
		return 0, nil, fmt.Errorf("read a message: a head of %x is not the protocol", head)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(from, content); err != nil {
		return 0, nil, fmt.Errorf("read a message: %w", err)
	}
	return k, content, nil
}

// Follow reads the messages of a process to the last one, which says how it ended. All others go to each.
func Follow(from io.Reader, each func(k MessageKind, content []byte) error) (e Exit, err error) {
	for {
		k, content, err := ReadMessage(from)
		if err != nil {
			return e, err
		}
		if k == Exited {
			return e, json.Unmarshal(content, &e)
		}
		if err := each(k, content); err != nil {
			return e, err
		}
	}
}

// Output writes what comes as messages of one kind.
type Output struct {
	To   *Writer
	Kind MessageKind
}

// Write implements io.Writer.
func (o Output) Write(b []byte) (int, error) {
	if err := o.To.Bytes(o.Kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
