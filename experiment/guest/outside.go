package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
)

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

// messages takes what the guest says: before the run has a record to the head, after it to the end.
func (r *outsideRun) messages() error {
	for r.record != nil || r.head == nil {
		line, err := r.lines.ReadBytes('\n')
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
