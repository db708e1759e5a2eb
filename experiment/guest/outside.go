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
	"netdelta/experiment/plan"
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

// Is makes errors.Is(err, experiment.ErrNothing) true for a study of which nothing can be measured in the guest.
func (e *InputError) Is(target error) bool {
	return e.Kind == Nothing && target == experiment.ErrNothing
}

// leave is how long a run inside a guest may take to end in good order after it was interrupted.
const leave = 90 * time.Second

// outsideRun is a run under way.
type outsideRun struct {
	Outside
	run    result.Run
	folder *result.Folder // nil until the head is known
	trials []result.Trial
	end    *End
}

// Follow tells a guest what to run and keeps what it says: each trial is on disk when Follow reads on. It returns the record and
// the folder, which is nil where the run did not begin. A guest that dies fails the run, and what was measured is kept.
func (o Outside) Follow(ctx context.Context) (result.Run, *result.Folder, error) {
	r := &outsideRun{Outside: o}
	request, err := json.Marshal(o.Request)
	if err == nil {
		_, err = o.Program.Write(append(request, '\n'))
	}
	if err != nil {
		return r.run, nil, errors.Join(fmt.Errorf("tell the guest what to run: %w", err), o.Program.Kill())
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
	err = r.messages(o.Program)
	if err != nil {
		err = errors.Join(err, o.Program.Kill())
	}
	err = errors.Join(err, o.Program.Wait())
	if r.folder == nil {
		return r.run, nil, r.refusal(err)
	}
	return r.conclude(ctx, err)
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

// messages takes what the guest says, to its end.
func (r *outsideRun) messages(from io.Reader) error {
	lines := bufio.NewReaderSize(from, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
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
		if err := r.take(m); err != nil {
			return err
		}
	}
}

// take keeps one message.
func (r *outsideRun) take(m Message) (err error) {
	switch {
	case m.End != nil:
		r.end = m.End
	case m.Status != nil:
		r.Progress.Update(*m.Status)
	case m.Head != nil && r.folder == nil:
		r.run = *m.Head
		r.run.Environment = r.Complete(r.run.Environment)
		if r.folder, err = r.Open(&r.run); err != nil {
			return err
		}
		r.trials = append(r.trials, r.folder.Contents.Trials...)
		if r.run.Started.IsZero() {
			r.run.Started = time.Now()
		}
		r.run.Ended = plan.Running
		return r.folder.WriteResult(r.run)
	case m.Trial != nil && r.folder != nil:
		if err := r.folder.Append(*m.Trial); err != nil {
			return err
		}
		r.trials = append(r.trials, *m.Trial)
	}
	return nil
}

// conclude ends the record, whatever way the run has ended.
func (r *outsideRun) conclude(ctx context.Context, err error) (result.Run, *result.Folder, error) {
	switch {
	case r.end != nil && r.end.Ended != "" && r.end.Error == "" && err == nil:
		r.run.Ended, r.run.Notes = r.end.Ended, r.end.Notes
	case ctx.Err() != nil:
		r.run.Ended, err = plan.EndedInterrupted, nil
	default:
		r.run.Ended = plan.EndedFailed
		if r.end != nil && r.end.Error != "" {
			err = errors.Join(errors.New(r.end.Error), err)
		} else if err == nil {
			err = errors.New("it ended before the run was over")
		}
		err = fmt.Errorf("the run in the guest: %w", err)
	}
	if r.end != nil && r.end.Environment.Kernel != "" {
		r.run.Environment = r.Complete(r.end.Environment)
	}
	r.run.Finished = time.Now()
	r.Judge.Conclude(&r.run, r.trials)
	return r.run, r.folder, errors.Join(err, r.folder.WriteEnvironment(r.run.Environment), r.folder.WriteResult(r.run))
}
