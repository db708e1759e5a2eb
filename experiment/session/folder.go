package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netdelta/experiment/plan"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/unit"
)

// Location says where a run folder is.
type Location struct {
	// Out is the run folder to make, "" for one in Runs that is named by study and time. Resume is the folder of an earlier run that
	// goes on, "" for a new run.
	Out, Resume string
	// Earlier is the record of that run, nil where the caller has not read it.
	Earlier *result.Record
	// Warn is told what went wrong and does not end the run.
	Warn func(error)
}

// earlier reads the record of the run that is resumed unless the caller has; nil where there is none, or it can't be read: opening the
// folder says what is wrong.
func (l *Location) earlier() *result.Record {
	if l.Earlier == nil && l.Resume != "" {
		l.Earlier, _ = result.LoadRecord(l.Resume)
	}
	return l.Earlier
}

// warn tells the caller who wants to be told.
func (l Location) warn(err error) {
	if l.Warn != nil {
		l.Warn(err)
	}
}

// Open makes the folder of a run of the study and names the run, or opens the folder of the run that is resumed, whose name, start,
// seed and cells the run takes over.
func (l Location) Open(name string, study []byte, run *result.Run) (_ *result.Folder, err error) {
	if l.Resume != "" {
		return l.reopen(run)
	}
	run.Run = name + "-" + time.Now().UTC().Format("20060102-150405")
	out := l.Out
	if out == "" {
		if out, err = FreshFolder(Runs, run.Run); err != nil {
			return nil, err
		}
		run.Run = filepath.Base(out)
	}
	return CreateFolder(out, study)
}

// abandon closes the folder of a run that never had its turn, nil where there is none yet. Nothing is left of a new one, but for an empty
// folder where the user has named it.
func (l Location) abandon(folder *result.Folder) error {
	if folder == nil || l.Resume != "" {
		return folder.Close()
	}
	dir := folder.Dir()
	err := folder.Empty()
	if l.Out == "" {
		err = errors.Join(err, removeLeft(dir))
	}
	return err
}

// markLatest makes a run that is about to measure the latest in Runs. One that waits for its turn, and may never have it, is not.
func (l Location) markLatest(run string) {
	if l.Out != "" || l.Resume != "" {
		return
	}
	if err := pointTo(filepath.Join(Runs, "latest"), run); err != nil {
		l.warn(err) // a convenience: the run goes on without it
	}
}

// CreateFolder makes a run folder. One that has something in it already is an *InputError.
func CreateFolder(dir string, study []byte) (*result.Folder, error) {
	folder, err := result.Create(dir, study)
	if errors.Is(err, result.ErrNotEmpty) {
		return nil, &InputError{err}
	}
	return folder, err
}

// Runs is the parent of run folders that --out does not name.
const Runs = "runs"

// FreshFolder makes a folder of this name, or of the name with a number if there is one already, and returns its path: runs
// that start in the same second don't meet.
func FreshFolder(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for runs: %w; choose another place with --out", err)
	}
	path := filepath.Join(parent, name)
	for n := 2; ; n++ {
		err := os.Mkdir(path, 0o755)
		if !errors.Is(err, fs.ErrExist) {
			return path, err
		}
		path = filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
	}
}

// reopen takes up an earlier run: its name, its start, its seed and its cells.
func (l Location) reopen(run *result.Run) (*result.Folder, error) {
	folder, err := result.Open(l.Resume, l.Earlier)
	if err != nil {
		return nil, err
	}
	old := folder.Earlier
	if old == nil {
		// The run was killed before it wrote its head: the study, with its seed, is all that there is of it.
		head := *run
		head.Run, old = filepath.Base(filepath.Clean(l.Resume)), &head
	}
	run.Run, run.Started, run.Cells, run.Seed = old.Run, old.Started, old.Cells, old.Seed
	run.Environment.Links, run.Environment.Sysctls = old.Environment.Links, old.Environment.Sysctls
	run.Notes = slices.Concat(old.Notes, []string{fmt.Sprintf("resumed with %d finished trials", len(folder.Contents.Trials))})
	run.Notes = append(run.Notes, folder.Contents.Notes(*old)...)
	return folder, nil
}

// pointTo makes path a symbolic link to a target in the same folder. An older link is replaced; anything else that has its name stays.
func pointTo(path, target string) error {
	old, err := os.Lstat(path)
	if err == nil && old.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	err = os.Symlink(target, fresh)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return fmt.Errorf("pointing %s at this run: %w", path, errors.Join(err, removeLeft(fresh)))
	}
	return nil
}

// removeLeft removes what may be there.
func removeLeft(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Kept is a run folder among others.
type Kept struct {
	Dir string
	Run result.Run
}

// RunsOf returns the runs of a study in a folder, the earliest first. It skips everything that is not a run folder.
func RunsOf(dir, study string) ([]Kept, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look into the folder of runs: %w", err)
	}
	var all []Kept
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() {
			continue // a link to the latest, say
		}
		if run, err := result.Load(path); err == nil && run.Study == study {
			all = append(all, Kept{path, run})
		}
	}
	slices.SortStableFunc(all, func(a, b Kept) int { return a.Run.Started.Compare(b.Run.Started) })
	return all, nil
}

// LatestWhole is the folder of the latest run that measured something and was not cut short, "" where there is none.
func LatestWhole(all []Kept) string {
	cut := []string{plan.Running, plan.EndedFailed, plan.EndedInterrupted, plan.EndedNothing}
	for _, n := range slices.Backward(all) {
		if len(n.Run.Deltas) > 0 && !slices.Contains(cut, n.Run.Ended) {
			return n.Dir
		}
	}
	return ""
}

// Prune removes the earliest runs of a study until so many are left.
func Prune(dir, study string, keep int) error {
	all, err := RunsOf(dir, study)
	if err != nil {
		return err
	}
	var failed []error
	for _, n := range all[:max(0, len(all)-keep)] {
		if err := os.RemoveAll(n.Dir); err != nil {
			failed = append(failed, fmt.Errorf("remove an old run: %w; remove it by hand, or the folder fills up", err))
		}
	}
	return errors.Join(failed...)
}

// askAgain is how often processors are asked for that another run measures on.
const askAgain = 200 * time.Millisecond

// Turn is how a program waits for others that measure on the same processors.
type Turn struct {
	Wait time.Duration // at most; not at all if it is 0
	Warn func(error)   // told before the wait, and if there can be no turns
}

// Take waits until no other program measures on the processors, and keeps them until release. begin is called before the wait: what is wrong
// with the run is said at once.
func (t Turn) Take(ctx context.Context, cpus []int, begin func() error) (release func() error, err error) {
	claim, err := machine.ClaimCPUs(cpus)
	var busy *machine.BusyError
	switch {
	case err == nil:
	case !errors.As(err, &busy):
		t.Warn(fmt.Errorf("other runs can't be kept from measuring at the same time: %w", err))
	case t.Wait <= 0:
		return nil, fmt.Errorf("%w; wait for its end by --wait, or have both measure on processors of their own by taskset", err)
	}
	if err := begin(); err != nil {
		return nil, errors.Join(err, claim.Release())
	}
	if busy == nil {
		return claim.Release, nil
	}
	t.Warn(fmt.Errorf("waiting for up to %s: %w", unit.FormatDuration(t.Wait), busy))
	if claim, err = awaitTurn(ctx, cpus, t.Wait); errors.As(err, &busy) {
		err = fmt.Errorf("%w still after %s; wait longer by --wait, or have both measure on processors of their own by taskset", err, unit.FormatDuration(t.Wait))
	}
	return claim.Release, err
}

// awaitTurn asks for processors until it has them.
func awaitTurn(ctx context.Context, cpus []int, patience time.Duration) (*machine.Claim, error) {
	for deadline := time.Now().Add(patience); ; {
		claim, err := machine.ClaimCPUs(cpus)
		var busy *machine.BusyError
		if !errors.As(err, &busy) || time.Now().After(deadline) {
			return claim, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(askAgain):
		}
	}
}
