// Package wire is what the two ends of a guest's channel say to one another: the requests that streams are opened with, and the
// messages in which a process's output and end come back.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Port is the name of the virtio-serial port that the channel goes over.
const Port = "netdelta"

// Verb is the argument with which the program runs as a guest's first process.
const Verb = "vm-guest"

// ScriptFile is where a guest that takes no requests finds what it is to run, a JSON list of Command, and ScriptDevice is where the
// messages of these programs go.
const (
	ScriptFile   = "/netdelta-script.json"
	ScriptDevice = "/dev/ttyS1"
)

// Request is the header of a stream that the host opens. Exactly one field is set.
type Request struct {
	// Exec starts a program. What the host writes to the stream is its standard input; messages come back. It is killed, with all
	// of its session, when the host closes the stream.
	Exec *Command `json:"exec,omitempty"`
	// Signal sends a signal to the session of a program. One Result comes back.
	Signal *Signal `json:"signal,omitempty"`
	// Put writes what the host sends into a file, Get sends a file as output. Both end with an Exited message.
	Put *File `json:"put,omitempty"`
	Get *File `json:"get,omitempty"`
}

// Command is a program to run.
type Command struct {
	Path string   `json:"path"` // absolute, or a name to be found on the guest's PATH
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"` // beside PATH and HOME
	Dir  string   `json:"dir,omitempty"` // "" is /
}

// Signal is a signal to a process group.
type Signal struct {
	PID    int `json:"pid"`
	Number int `json:"number"`
}

// File is a file in the guest.
type File struct {
	Path string      `json:"path"`
	Mode os.FileMode `json:"mode,omitempty"`
}

// Hello is the header of the one stream that the guest opens, when it is ready.
type Hello struct {
	Kernel string `json:"kernel"`
	// Uptime is how long the kernel had run, in seconds.
	Uptime float64 `json:"uptime"`
}

// Kind says what a message holds.
type Kind byte

// The kinds of messages.
const (
	Started Kind = 1 + iota // JSON of Start
	Stdout                  // bytes
	Stderr                  // bytes
	Exited                  // JSON of Exit; the last of a process
	Ready                   // JSON of Hello; the first of a guest that takes no requests
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
func (w *Writer) Bytes(k Kind, b []byte) error {
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
func (w *Writer) JSON(k Kind, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.message(k, text)
}

func (w *Writer) message(k Kind, content []byte) error {
	message := binary.BigEndian.AppendUint32([]byte{byte(k)}, uint32(len(content)))
	message = append(message, content...)
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.to.Write(message)
	return err
}

// Read reads one message. It returns io.EOF where the stream ends between two.
func Read(from io.Reader) (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("read a message of the guest: %w", err)
	}
	k, length := Kind(head[0]), binary.BigEndian.Uint32(head[1:])
	if k < Started || k > Ready || length > messageMost {
		return 0, nil, fmt.Errorf("read a message of the guest: a head of %x is not the protocol", head)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(from, content); err != nil {
		return 0, nil, fmt.Errorf("read a message of the guest: %w", err)
	}
	return k, content, nil
}
