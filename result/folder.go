package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The names of a run folder's files, apart from TrialsFile.
const (
	StudyFile       = "study.yaml"
	EnvironmentFile = "environment.json"
	ResultFile      = "result.json"
)

// Folder is a run folder that this process writes: locked until Close.
type Folder struct {
	dir     string
	journal *Journal
	// Contents is what the journal held when the folder was opened; empty after Create.
	Contents Contents
}

// Create makes a new run folder with the study as run. The directory is made with its parents; if it exists it must be
// empty, so that no file of another run or of the user is touched.
func Create(dir string, study []byte) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, explain("make the run folder", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, explain("read the run folder", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("make the run folder %s: it is not empty; choose a new folder with --out, or go on with the run that it holds by --resume", dir)
	}
	journal, err := createJournal(filepath.Join(dir, TrialsFile))
	if err != nil {
		return nil, err
	}
	folder := &Folder{dir: dir, journal: journal}
	if err := folder.prepare(study); err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return folder, nil
}

// prepare writes what every run folder has from its beginning.
func (f *Folder) prepare(study []byte) error {
	if err := writeFile(filepath.Join(f.dir, StudyFile), study); err != nil {
		return err
	}
	return syncDir(filepath.Dir(filepath.Clean(f.dir)))
}

// Open opens an existing run folder to resume its run. Folder.Contents holds the trials that are finished; a torn last
// line has been cut off the journal and is described in Contents.Torn, which the user must be shown. A folder that a
// newer netdelta has written is refused with a *SchemaError, one that another process writes with ErrLocked.
func Open(dir string) (*Folder, error) {
	if _, err := LoadStudy(dir); err != nil {
		return nil, err
	}
	if _, err := Load(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	journal, contents, err := openJournal(filepath.Join(dir, TrialsFile))
	if err != nil {
		return nil, err
	}
	return &Folder{dir: dir, journal: journal, Contents: contents}, nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Append adds a finished trial to the journal and returns when it is on disk.
func (f *Folder) Append(t Trial) error { return f.journal.Append(t) }

// WriteEnvironment replaces environment.json.
func (f *Folder) WriteEnvironment(e Environment) error {
	return writeJSON(filepath.Join(f.dir, EnvironmentFile), e.complete())
}

// WriteResult replaces result.json as a whole: a reader sees the old one or the new one. A run writes it at its start
// too, so that a killed run can be shown and resumed with its seed.
func (f *Folder) WriteResult(r Run) error {
	return writeJSON(filepath.Join(f.dir, ResultFile), r.Complete())
}

// Close releases the folder. It is idempotent.
func (f *Folder) Close() error { return f.journal.Close() }

// Load reads result.json of a run folder, which may be in use. If there is none the error matches fs.ErrNotExist, and
// ErrNoRun where the folder holds no run at all.
func Load(dir string) (Run, error) {
	path := filepath.Join(dir, ResultFile)
	data, err := readFile(dir, path)
	if err != nil {
		return Run{}, err
	}
	version, err := schemaOf(data)
	if err != nil {
		return Run{}, corruptFile(path, err)
	}
	if version > Schema {
		return Run{}, &SchemaError{File: path, Have: version, Want: Schema, Writer: writer(dir)}
	}
	var run Run
	if err := json.Unmarshal(data, &run); err != nil {
		return Run{}, corruptFile(path, err)
	}
	return run, nil
}

// corruptFile says what to do about a derived file that can't be read.
func corruptFile(path string, err error) error {
	return fmt.Errorf("read %s: %w; resume the run to write it anew from the journal", path, err)
}

// LoadTrials reads the journal of a run folder, which may be in use; the line that is being written just then counts as
// torn.
func LoadTrials(dir string) (Contents, error) {
	path := filepath.Join(dir, TrialsFile)
	file, err := os.Open(path)
	if err != nil {
		return Contents{}, unreadable(dir, err)
	}
	contents, err := ReadJournal(file, path)
	var newer *SchemaError
	if errors.As(err, &newer) {
		newer.Writer = writer(dir)
	}
	return contents, errors.Join(err, file.Close())
}

// LoadStudy reads the study of a run folder as it was run.
func LoadStudy(dir string) ([]byte, error) { return readFile(dir, filepath.Join(dir, StudyFile)) }

// readFile reads a file of a run folder.
func readFile(dir, path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadable(dir, err)
	}
	return data, nil
}
