// Package guest carries runs out inside a virtual machine: the same program runs there, and what it has to say comes out line
// by line. Inside writes those lines, Host reads them; a Message is one of them.
package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/experiment"
	"netdelta/experiment/record"
	"netdelta/internal/tail"
	"netdelta/result"
	"netdelta/testbed"
)

// RunVerb is the verb of the command line that carries a run out inside a guest.
const RunVerb = "guest-run"

// Request is what a run inside a guest is told: one line on its standard input. The end of that input interrupts the run.
type Request struct {
	// Study is the study as it is to be run, in the form of a study file: the seed drawn, all that flags say in it.
	Study string `json:"study"`
	// Named is the study's Named, which its file does not say.
	Named bool `json:"named,omitempty"`
	// Builds is how many builds there are to be, 0 until all is resolved or the time is up.
	Builds int `json:"builds,omitempty"`
	// Run and Trials are what a resumed run has measured before.
	Run    *result.Run    `json:"run,omitempty"`
	Trials []result.Trial `json:"trials,omitempty"`
}

// ReadRequest reads the request, and gives back a context that ends with the input.
func ReadRequest(ctx context.Context, in io.Reader) (Request, context.Context, error) {
	var r Request
	decoder := json.NewDecoder(in)
	if err := decoder.Decode(&r); err != nil {
		return r, ctx, fmt.Errorf("read what to run: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in) // its end is what counts, whatever the reason
		cancel()
	}()
	return r, ctx, nil
}

// Inside carries a run out, and tells the host of it: first its head, then each trial of a build when the build is done. Only what
// could not be told to the host is returned.
func Inside(ctx context.Context, r Request, c experiment.Config, to *Writer) error {
	run, err := inside(ctx, r, c, to)
	end := End{Ended: run.Ended, Notes: run.Notes, Environment: run.Environment}
	if err != nil {
		end.Error = err.Error()
	}
	return to.Send(Message{End: &end})
}

func inside(ctx context.Context, r Request, c experiment.Config, to *Writer) (run result.Run, err error) {
	dir, err := os.MkdirTemp("", "netdelta-run-")
	if err != nil {
		return run, fmt.Errorf("make a folder for the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if c.Folder, err = folderOf(filepath.Join(dir, "run"), r); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, c.Folder.Close()) }()
	if old := r.Run; old != nil {
		c.Run.Run, c.Run.Started, c.Run.Cells, c.Run.Seed, c.Run.Notes = old.Run, old.Started, old.Cells, old.Seed, old.Notes
	}
	if err := to.Send(Message{Head: &c.Run}); err != nil {
		return run, err
	}
	teller := &teller{Judge: c.Judge, to: to, told: len(r.Trials)}
	c.Judge, c.Progress = teller, teller
	run, err = experiment.Run(ctx, c)
	return run, errors.Join(err, teller.err)
}

// folderOf makes a run folder with the trials of the run that is resumed.
func folderOf(dir string, r Request) (*result.Folder, error) {
	folder, err := result.Create(dir, []byte(r.Study))
	if err != nil || len(r.Trials) == 0 {
		return folder, err
	}
	for _, t := range r.Trials {
		err = errors.Join(err, folder.Append(t))
	}
	if err := errors.Join(err, folder.Close()); err != nil {
		return nil, err
	}
	return result.Open(dir, nil)
}

// teller takes the place of the judge and the progress, and passes on to the host what it is told.
type teller struct {
	experiment.Judge
	to *Writer

	mu   sync.Mutex
	told int // trials
	err  error
}

// Settled implements experiment.Judge. It is asked after each build.
func (t *teller) Settled(run result.Run, trials []result.Trial) map[string]bool {
	t.trials(trials)
	return t.Judge.Settled(run, trials)
}

// Conclude implements experiment.Judge. The conclusions are the host's to draw.
func (t *teller) Conclude(_ *result.Run, trials []result.Trial) { t.trials(trials) }

func (t *teller) trials(all []result.Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ; t.told < len(all) && t.err == nil; t.told++ {
		t.err = t.to.Send(Message{Trial: &all[t.told]})
	}
}

// Update implements experiment.Progress.
func (t *teller) Update(s experiment.Status) {
	if err := t.to.Send(Message{Status: &s}); err != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.err = errors.Join(t.err, err)
	}
}

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

// quietOut writes to a program's standard output, and returns when the serial line behind it has nothing left to send: what is
// measured next meets no interrupt of it.
type quietOut struct {
	out  io.Writer
	line *os.File
}

// handOver is how long the guest's first process may take to hand on what was written. Waiting costs nothing: the guest's clock
// goes on at once where nothing runs.
const handOver = 20 * time.Millisecond

// OpenOutput is the way from a program inside an exact guest to the host: out, which is sent over the line.
func OpenOutput(out io.Writer, line string) (io.WriteCloser, error) {
	fd, err := unix.Open(line, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the serial line %s: %w; this works only inside a guest", line, err)
	}
	return &quietOut{out, os.NewFile(uintptr(fd), line)}, nil
}

// Write implements io.Writer.
func (q *quietOut) Write(b []byte) (int, error) {
	n, err := q.out.Write(b)
	if err != nil {
		return n, err
	}
	time.Sleep(handOver)
	if err := unix.IoctlSetInt(int(q.line.Fd()), unix.TCSBRK, 1); err != nil && !errors.Is(err, unix.EINTR) {
		return n, fmt.Errorf("wait for the serial line: %w", err)
	}
	return n, nil
}

// Close implements io.Closer.
func (q *quietOut) Close() error { return q.line.Close() }

// Outside is the host's side of a run inside a guest.
type Outside struct {
	Request Request
	Program testbed.GuestProgram
	// Open makes or reopens the run folder when the run's head is known, and may complete the head.
	Open     func(run *result.Run) (*result.Folder, error)
	Progress experiment.Progress
	Judge    experiment.Judge
	// Complete adds to an environment found inside what the host knows of the guest.
	Complete func(e result.Environment) result.Environment
}

// InputError says that a guest has refused the study, as bad or as nothing that it could measure (Kind).
type InputError struct {
	Kind Kind
	Says string
}

// Error implements error.
func (e *InputError) Error() string { return e.Says }

// Is makes errors.Is(err, record.ErrNothing) true for a study of which nothing can be measured in the guest.
func (e *InputError) Is(target error) bool {
	return e.Kind == Nothing && target == record.ErrNothing
}

// leave is how long a run inside a guest may take to end in good order after it was interrupted.
const leave = 90 * time.Second

// outsideRun is a run under way.
type outsideRun struct {
	Outside
	lines  *bufio.Reader
	head   *result.Run
	record *record.Record // nil until the head is known
	end    *End
}

// Follow tells a guest what to run and keeps what it says: each trial is on disk when Follow reads on. It returns the record and
// the folder, which is nil where the run did not begin. A guest that dies fails the run, and what was measured is kept.
func (o Outside) Follow(ctx context.Context) (result.Run, *result.Folder, error) {
	r := &outsideRun{Outside: o, lines: bufio.NewReaderSize(o.Program, 1<<20)}
	request, err := json.Marshal(o.Request)
	if err == nil {
		_, err = o.Program.Write(append(request, '\n'))
	}
	if err != nil {
		return result.Run{}, nil, errors.Join(fmt.Errorf("tell the guest what to run: %w", err), o.Program.Kill())
	}
	left := make(chan struct{})
	defer close(left)
	stop := context.AfterFunc(ctx, func() {
		_ = o.Program.CloseWrite() // it may have ended
		select {
		case <-left:
		case <-time.After(leave):
			_ = o.Program.Kill() // as may have this
		}
	})
	defer stop()
	var folder *result.Folder
	if err = r.messages(); err == nil && r.head != nil {
		r.head.Environment = r.Complete(r.head.Environment)
		folder, err = o.Open(r.head)
	}
	if folder == nil {
		return result.Run{}, nil, r.refusal(r.ended(err))
	}
	rec, err := record.Conduct(ctx, *r.head, folder, o.Judge, func(ctx context.Context, rec *record.Record) error {
		r.record = rec
		return r.conclude(ctx, r.ended(r.messages()))
	})
	return rec.Run, folder, err
}

// ended waits for the guest's program, which is killed after an error.
func (r *outsideRun) ended(err error) error {
	if err != nil {
		err = errors.Join(err, r.Program.Kill())
	}
	return errors.Join(err, r.Program.Wait())
}

// refusal is why a run did not begin.
func (r *outsideRun) refusal(err error) error {
	if r.end != nil && r.end.Kind != "" {
		return &InputError{r.end.Kind, r.end.Error}
	}
	if r.end != nil && r.end.Error != "" {
		err = errors.Join(errors.New(r.end.Error), err)
	}
	if err == nil {
		err = errors.New("it ended without a word")
	}
	return fmt.Errorf("begin the run in the guest: %w", err)
}

// lineMost bounds a message of a guest. One has a trial at most.
const lineMost = 128 << 20

// messages takes what the guest says: before the run has a record to the head, after it to the end.
func (r *outsideRun) messages() error {
	for r.record != nil || r.head == nil {
		line, err := tail.Line(r.lines, lineMost)
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read what the guest says: %w", err)
		}
		var m Message
		if err := json.Unmarshal(line, &m); err != nil {
			return fmt.Errorf("read a message of the guest: %w: %.80q", err, line)
		}
		switch {
		case m.End != nil:
			r.end = m.End
		case m.Status != nil:
			r.Progress.Update(*m.Status)
		case m.Head != nil:
			r.head = m.Head
		case m.Trial != nil && r.record != nil:
			if err := r.record.Keep(*m.Trial); err != nil {
				return err
			}
		}
	}
	return nil
}

// conclude takes over how the guest's run ended, and says what kept it from going on.
func (r *outsideRun) conclude(ctx context.Context, err error) error {
	run := &r.record.Run
	if r.end != nil && r.end.Environment.Kernel != "" {
		run.Environment = r.Complete(r.end.Environment)
	}
	if ctx.Err() != nil && (err != nil || r.end == nil || r.end.Error != "") {
		return nil //nolint:nilerr // the run says that it was interrupted
	}
	switch {
	case r.end != nil && r.end.Ended != "" && r.end.Error == "" && err == nil:
		run.Ended, run.Notes = r.end.Ended, r.end.Notes
		return nil
	case r.end != nil && r.end.Error != "":
		err = errors.Join(errors.New(r.end.Error), err)
	case err == nil:
		err = errors.New("it ended before the run was over")
	}
	return fmt.Errorf("the run in the guest: %w", err)
}
