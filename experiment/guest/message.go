package guest

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"netdelta/experiment"
	"netdelta/result"
)

// Message is one line from inside a guest. Exactly one of its fields is set.
type Message struct {
	// Head is the frame of the run: its cells, its environment so far. It comes before the first trial.
	Head *result.Run `json:"head,omitempty"`
	// Status is how far the run is.
	Status *experiment.Status `json:"status,omitempty"`
	// Trial is one that is finished.
	Trial *result.Trial `json:"trial,omitempty"`
	// Unsupported are the cells that can't be measured in the guest, with the reasons.
	Unsupported map[string]string `json:"unsupported,omitempty"`
	// End is the last message.
	End *End `json:"end,omitempty"`
}

// End says how a run inside a guest ended.
type End struct {
	// Error is what kept it from going on, "" if nothing did.
	Error string `json:"error,omitempty"`
	// Kind says what the error is about.
	Kind Kind `json:"kind,omitempty"`
	// Ended, Notes and Environment are the run's.
	Ended       string             `json:"ended,omitempty"`
	Notes       []string           `json:"notes,omitempty"`
	Environment result.Environment `json:"environment"`
}

// Kind is what an error is about.
type Kind string

// The kinds of errors that a caller treats differently.
const (
	BadInput Kind = "input"   // the study, or its budget
	Nothing  Kind = "nothing" // nothing of the study can be measured in the guest
)

// Writer writes messages, one a line. It is safe for concurrent use; after a failure it writes no more.
type Writer struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// NewWriter writes to out.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Send writes one message.
func (w *Writer) Send(m Message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message to the host: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		if _, err := w.out.Write(append(line, '\n')); err != nil {
			w.err = fmt.Errorf("tell the host: %w", err)
		}
	}
	return w.err
}
