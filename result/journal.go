package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
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

// CountFile says how many trials the journal holds. A journal that is cut between two lines looks whole by itself; the record of a run
// knows the number only once the run has ended, and a killed run has none.
const CountFile = "trials.count"

// openCount opens the file for writing, and makes it if there is none.
func openCount(files *Files) (*os.File, error) {
	file, err := files.open(CountFile, os.O_WRONLY)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = files.root.OpenFile(CountFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
	if err != nil {
		return nil, explain(fmt.Errorf("count the trials: %w", at(files.name(CountFile), err)))
	}
	return file, nil
}

// writeCount is called when a trial is on disk, so that the number is never above what the journal has held. It need not be on disk
// itself, and that it can't be written loses no trial.
func (j *Journal) writeCount() {
	if j.counter != nil {
		_, _ = j.counter.WriteAt(fmt.Appendf(nil, "%-12d\n", j.held), 0)
	}
}

// counted is how many trials the journal has held, 0 where that is not known. It must be asked before the journal is read, which
// another program may be writing.
func (f *Files) counted() int {
	text, _ := f.Read(CountFile, countMost) // what can't be read holds no number
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// countMost is the greatest size of the file that is read.
const countMost = 64

// Each line of a journal ends in a checksum of all that stands before it, as the last field of its object: programs that don't know
// of it read the line as ever.
const (
	sealKey  = `,"crc32c":"`
	sealEnd  = `"}`
	sealSize = len(sealKey) + 8 + len(sealEnd)
)

// errUnsealed says that a line has no checksum.
var errUnsealed = errors.New("it has no checksum")

// seal adds the checksum to a JSON object.
func seal(line []byte) []byte {
	body := bytes.TrimSuffix(line, []byte("}"))
	return fmt.Appendf(body, sealKey+"%08x"+sealEnd, checksum(body))
}

// checksum is CRC-32C, which finds every error of up to 32 bits in a row and, at the length of a line, of up to 3 bits anywhere.
func checksum(body []byte) uint32 { return crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)) }

// checkSeal returns an error unless a line is as it was written, and errUnsealed where that can't be told: netdelta has written
// lines without a checksum.
func checkSeal(line []byte) error {
	at := len(line) - sealSize
	if at < 0 {
		return errUnsealed
	}
	body, want := line[:at], line[at+len(sealKey):len(line)-len(sealEnd)]
	have := fmt.Sprintf("%08x", checksum(body))
	named := bytes.HasPrefix(line[at:], []byte(sealKey)) && bytes.HasSuffix(line, []byte(sealEnd))
	switch {
	case named && have != string(want):
		return fmt.Errorf("its checksum is %s, and it was written with %s: the line was changed", have, want)
	case !named && have == string(want):
		// A field of another name would be skipped, and the line be taken for one that has no checksum.
		return errors.New("its checksum stands under another name: the line was changed")
	case !named:
		return errUnsealed
	}
	return nil
}
