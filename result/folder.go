package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
)

// The names of a run folder's files, apart from TrialsFile.
const (
	StudyFile       = "study.yaml"
	EnvironmentFile = "environment.json"
	ResultFile      = "result.json"
)

// ErrNotEmpty says that a new run folder has something in it already.
var ErrNotEmpty = errors.New("it is not empty")

// Folder is a run folder that this process writes: locked until Close.
type Folder struct {
	*Files
	journal *Journal
	// Contents is what the journal held when the folder was opened, and Earlier its record: nil where the run was killed before it wrote
	// one. Both are empty after Create.
	Contents Contents
	Earlier  *Run
	moved    atomic.Bool // and the caller has been told
}

// Create makes a new run folder with the study as run. The directory is made with its parents; if it exists it must be
// empty, so that no file of another run or of the user is touched: else the error matches ErrNotEmpty.
func Create(dir string, study []byte) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain(fmt.Errorf("make the run folder: %w", err))
	}
	files, err := OpenFiles(dir)
	if err != nil {
		return nil, explain(fmt.Errorf("make the run folder: %w", err))
	}
	folder := &Folder{Files: files}
	if err := folder.fill(study); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// fill writes what every run folder has from its beginning.
func (f *Folder) fill(study []byte) error {
	switch _, err := f.self.Readdirnames(1); {
	case err == nil:
		return fmt.Errorf("make the run folder %s: %w; choose a new folder with --out, or go on with the run that it holds by --resume", f.path, ErrNotEmpty)
	case !errors.Is(err, io.EOF):
		return explain(fmt.Errorf("read the run folder: %w", at(f.path, err)))
	}
	var err error
	if f.journal, err = createJournal(f.Files); err != nil {
		return err
	}
	if err := f.write(StudyFile, study); err != nil {
		return err
	}
	return syncParent(f.path)
}

// Open opens an existing run folder to resume its run. Folder.Contents holds the trials that are finished; a torn last
// line has been cut off the journal and is described in Contents.Torn, which the user must be shown. A folder that a
// newer netdelta has written is refused with a *SchemaError, one that another process writes with ErrLocked. The record that is known,
// if any, is read again where another run has gone on in the folder since.
func Open(dir string, known *Record) (*Folder, error) {
	files, err := OpenRun(dir)
	if err != nil {
		return nil, err
	}
	folder := &Folder{Files: files}
	if err := folder.resume(known); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// resume reads what there is, all but the study under the lock, so that no other run changes it meanwhile.
func (f *Folder) resume(known *Record) (err error) {
	if _, err := f.Study(); err != nil {
		return err
	}
	if f.journal, err = openJournal(f.Files); err != nil {
		return err
	}
	if known == nil || !known.isIn(f.Files) {
		if known, err = f.record(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if known != nil {
		f.Earlier = &known.Run
	}
	f.Contents, err = f.journal.recover(f.Files)
	return err
}

// Append adds a finished trial to the journal and returns when it is on disk.
func (f *Folder) Append(t Trial) error {
	if err := f.journal.Append(t); err != nil {
		return err
	}
	return f.here()
}

// WriteEnvironment replaces environment.json.
func (f *Folder) WriteEnvironment(e Environment) error {
	return f.writeJSON(EnvironmentFile, e.complete())
}

// WriteResult replaces result.json as a whole: a reader sees the old one or the new one. A run writes it at its start
// too, so that a killed run can be shown and resumed with its seed.
func (f *Folder) WriteResult(r Run) error {
	r.Trials = f.journal.count()
	return errors.Join(f.writeJSON(ResultFile, r.Complete()), f.here())
}

// here tells the caller once if what was written is not where the user looks for it, since others moved or replaced the folder.
func (f *Folder) here() error {
	if f.inPlace() && f.journal.isIn(f.Files) || f.moved.Swap(true) {
		return nil
	}
	now, err := f.whereabouts()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the run folder %s was removed while the run wrote to it, and its trials with it; start the run again", f.path)
	case err != nil:
		return fmt.Errorf("the run folder %s was moved while the run wrote to it, and can't be found again: %w", f.path, err)
	case !f.journal.isIn(f.Files):
		return fmt.Errorf("%s was removed or replaced while the run wrote to it: the trials of this run are no longer in the run folder %s; start the run again",
			TrialsFile, now)
	}
	return fmt.Errorf("the run folder %s was moved or replaced while the run wrote to it: its trials are in %s; go on with them by --resume %[2]s", f.path, now)
}

// Close releases the folder. It is idempotent, and does nothing for one that could not be opened.
func (f *Folder) Close() error {
	if f == nil {
		return nil
	}
	if f.journal == nil {
		return f.Files.Close()
	}
	return errors.Join(f.journal.Close(), f.Files.Close())
}

// Empty removes what Create has made in a folder whose run does not begin, and closes it. It fails if a file can't be removed.
func (f *Folder) Empty() error {
	var err error
	for _, file := range []string{StudyFile, TrialsFile, CountFile} {
		err = errors.Join(err, f.Remove(file))
	}
	return errors.Join(err, f.Close())
}

// OpenRun opens the folder of a run for reading. If there is none the error matches ErrNoRun.
func OpenRun(dir string) (*Files, error) {
	files, err := OpenFiles(dir)
	if err != nil {
		return nil, unreadable(dir, nil, err)
	}
	return files, nil
}

// Record is the record of a run, as it was when it was read.
type Record struct {
	Run  Run
	file fs.FileInfo
}

// isIn says whether it is still the record of a folder: another one would be in a new file.
func (r *Record) isIn(f *Files) bool {
	now, err := f.root.Lstat(ResultFile)
	return err == nil && os.SameFile(r.file, now) && r.file.ModTime().Equal(now.ModTime()) && r.file.Size() == now.Size()
}

// Record reads result.json, which may be in use. If there is none the error matches fs.ErrNotExist, and ErrNoRun where the folder
// holds no run at all.
func (f *Files) Record() (Run, error) {
	r, err := f.record()
	if err != nil {
		return Run{}, err
	}
	return r.Run, nil
}

func (f *Files) record() (*Record, error) {
	file, err := f.Open(ResultFile)
	if err != nil {
		return nil, unreadable(f.path, f, err)
	}
	info, err := file.Stat()
	var data []byte
	if err == nil {
		data, err = readAll(file, f.name(ResultFile), recordMost)
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, unreadable(f.path, f, err)
	}
	version, err := schemaOf(data)
	if err != nil {
		return nil, corruptFile(f.name(ResultFile), err)
	}
	if version > Schema {
		return nil, &SchemaError{File: f.name(ResultFile), Have: version, Want: Schema, Writer: f.writer()}
	}
	r := &Record{file: info}
	if err := json.Unmarshal(data, &r.Run); err != nil {
		return nil, corruptFile(f.name(ResultFile), err)
	}
	return r, nil
}

// corruptFile says what to do about a derived file that can't be read.
func corruptFile(path string, err error) error {
	return fmt.Errorf("read %s: %w; resume the run to write it anew from the journal", path, err)
}

// Trials reads the journal, which may be in use; the line that is being written just then counts as torn.
func (f *Files) Trials() (Contents, error) {
	file, err := f.Open(TrialsFile)
	if err != nil {
		return Contents{}, unreadable(f.path, f, err)
	}
	counted := f.counted()
	contents, err := ReadJournal(file, f.name(TrialsFile))
	contents.Counted = counted
	return contents, errors.Join(f.newer(err), file.Close())
}

// newer adds to an error about a newer netdelta which one has written the folder.
func (f *Files) newer(err error) error {
	if newer, is := errors.AsType[*SchemaError](err); is {
		newer.Writer = f.writer()
	}
	return err
}

// Study reads the study as it was run.
func (f *Files) Study() ([]byte, error) {
	data, err := f.Read(StudyFile, StudyMost)
	if err != nil {
		return nil, unreadable(f.path, f, err)
	}
	return data, nil
}

// LoadRecord is Load for Open.
func LoadRecord(dir string) (*Record, error) { return readRun(dir, (*Files).record) }

// Load is Files.Record of the run folder at a path.
func Load(dir string) (Run, error) { return readRun(dir, (*Files).Record) }

// LoadTrials is Files.Trials of the run folder at a path.
func LoadTrials(dir string) (Contents, error) { return readRun(dir, (*Files).Trials) }

// LoadStudy is Files.Study of the run folder at a path.
func LoadStudy(dir string) ([]byte, error) { return readRun(dir, (*Files).Study) }

// readRun reads one thing of a run folder.
func readRun[T any](dir string, read func(*Files) (T, error)) (none T, _ error) {
	files, err := OpenRun(dir)
	if err != nil {
		return none, err
	}
	what, err := read(files)
	return what, errors.Join(err, files.Close())
}
