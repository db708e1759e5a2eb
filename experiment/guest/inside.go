package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"netdelta/experiment"
	"netdelta/result"
)

// RunVerb is the verb of the command line that carries a run out inside a guest.
const RunVerb = "guest-run"

// Request is what a run inside a guest is told: one line on its standard input. The end of that input interrupts the run.
type Request struct {
	// Study is the study as it is to be run, in the form of a study file: the seed drawn, all that flags say in it.
	Study string `json:"study"`
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
