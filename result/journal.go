package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// TrialsFile is the journal's name within a run folder.
const TrialsFile = "trials.jsonl"

// ErrLocked says that another process is writing the run folder.
var ErrLocked = errors.New("the run folder is in use by another run")

// Journal is the append-only file of a run's finished trials, one JSON document a line. It is the truth of a run: a
// trial whose Append has returned survives the death of the process and of the machine. One process at a time writes a
// journal; its methods may be called from several goroutines.
type Journal struct {
	mu   sync.Mutex
	file *os.File
	name string // its path, for messages
	size int64  // bytes up to the end of the last acknowledged line
	held int    // trials, acknowledged ones
	// counter is CountFile; nil where the journal is written without.
	counter *os.File
	// broken is why the file can't be written any more: its end is unknown after a failed rollback or fsync.
	broken error
}

// createJournal makes an empty journal in a folder and locks it. The folder must have none.
func createJournal(files *Files) (*Journal, error) {
	file, err := files.root.OpenFile(TrialsFile, os.O_CREATE|os.O_EXCL|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, explain(fmt.Errorf("create the journal: %w", at(files.name(TrialsFile), err)))
	}
	j := &Journal{file: file, name: files.name(TrialsFile)}
	err = j.lock()
	if err == nil {
		err = explain(file.Sync())
	}
	if err == nil {
		j.counter, err = openCount(files)
	}
	if err == nil {
		err = explain(files.sync())
	}
	if err != nil {
		return nil, errors.Join(err, j.Close(), files.Remove(TrialsFile))
	}
	return j, nil
}

// openJournal opens the journal of a folder for more trials, and locks it.
func openJournal(files *Files) (*Journal, error) {
	file, err := files.open(TrialsFile, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, explain(fmt.Errorf("open the journal: %w", err))
	}
	j := &Journal{file: file, name: files.name(TrialsFile)}
	if err := j.lock(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// recover reads an opened journal and cuts off its torn end, so that the next line starts where a line should. That is described in the
// contents.
func (j *Journal) recover(files *Files) (Contents, error) {
	counted := files.counted()
	contents, err := ReadJournal(j.file, j.name)
	if err != nil {
		return Contents{}, err
	}
	contents.Counted, j.size, j.held = counted, contents.Size, len(contents.Trials)
	if contents.Torn != "" {
		if err := j.rollback(); err != nil {
			return Contents{}, err
		}
	}
	j.counter, err = openCount(files)
	return contents, err
}

// Append adds a finished trial and returns when it is on disk. After an error the journal is as it was before, and
// Append may be tried again unless the error says that the journal can't be written any more.
func (j *Journal) Append(t Trial) error {
	line, err := encodeTrial(t)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return j.broken
	}
	if _, err := j.file.Write(line); err != nil {
		return errors.Join(explain(fmt.Errorf("append trial %s to the journal: %w", t.ID(), err)), j.undo())
	}
	if err := j.file.Sync(); err != nil {
		// The kernel may have thrown away what it could not write and may report success next time: what is on disk
		// is unknown, so nothing may be built on it.
		err = explain(fmt.Errorf("sync trial %s to disk: %w", t.ID(), err))
		j.broken = fmt.Errorf("the journal can't be written any more since: %w", err)
		return errors.Join(err, j.rollback())
	}
	j.size += int64(len(line))
	j.held++
	j.writeCount()
	return nil
}

// count is how many trials the journal holds.
func (j *Journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.held
}

// undo takes back a partial line; if that fails too, the journal is closed to further trials.
func (j *Journal) undo() error {
	err := j.rollback()
	if err != nil {
		j.broken = fmt.Errorf("the journal can't be written any more since: %w", err)
	}
	return err
}

// rollback cuts the file back to the last acknowledged line.
func (j *Journal) rollback() error {
	if err := j.file.Truncate(j.size); err != nil {
		return explain(fmt.Errorf("cut a partial line off the journal: %w", err))
	}
	if err := j.file.Sync(); err != nil {
		return explain(fmt.Errorf("sync the journal: %w", err))
	}
	return nil
}

// isIn says whether the journal is still the one of a folder.
func (j *Journal) isIn(files *Files) bool {
	named, err := files.root.Lstat(TrialsFile)
	if err != nil {
		return false
	}
	own, err := j.file.Stat()
	return err == nil && os.SameFile(named, own)
}

// Close releases the journal and its lock. It is idempotent; Append fails after it.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken == nil {
		j.broken = fmt.Errorf("append to the journal %s: %w", j.name, os.ErrClosed)
	}
	for _, file := range []*os.File{j.file, j.counter} {
		if file == nil {
			continue
		}
		if err := file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			return fmt.Errorf("close the journal: %w", err)
		}
	}
	return nil
}

// encodeTrial returns a trial as a line with its line feed.
func encodeTrial(t Trial) ([]byte, error) {
	t.Schema = Schema
	t.Bursts = t.Bursts.complete()
	if err := t.validate(); err != nil {
		return nil, fmt.Errorf("record trial %s: %w", t.ID(), err)
	}
	line, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("record trial %s: %w", t.ID(), err)
	}
	return append(seal(line), '\n'), nil
}

// lock takes the exclusive lock of the journal without waiting. It lasts as long as the file is open, so a killed run leaves no lock
// behind.
func (j *Journal) lock() error {
	for {
		err := unix.Flock(int(j.file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w; wait until it has ended or choose another folder", j.name, ErrLocked)
		default:
			return fmt.Errorf("lock %s: %w", j.name, err)
		}
	}
}

var _ io.Closer = (*Journal)(nil)
