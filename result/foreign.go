package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// Imported is Run.Testbed of a run that was made of what other programs measured elsewhere.
const Imported = "imported"

// ErrNoRun says that a path is no run folder: there is nothing, a file, or a folder without any file of a run.
var ErrNoRun = errors.New("not a run folder")

// unreadable says what is wrong with a run folder of which a file can't be read, and what to do about it. Files is nil where the
// folder itself can't be opened.
func unreadable(dir string, files *Files, err error) error {
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%s is %w but a file (%w); give the folder that netdelta run named", dir, ErrNoRun, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("read the run folder: %w; change its permissions, or choose a folder that you may read and, to go on with its run, that you may write", err)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read the run folder: %w", err)
	case files.holdsRun():
		return fmt.Errorf("%w: its run ended before it wrote this file, or the file was taken away; go on with it by netdelta run --resume %s", err, dir)
	}
	return fmt.Errorf("%s is %w (%w); give the folder that netdelta run named", dir, ErrNoRun, err)
}

// holdsRun says whether a folder has any file that makes it a run's. A study alone does not: a user may keep one anywhere.
func (f *Files) holdsRun() bool {
	if f == nil {
		return false
	}
	for _, name := range []string{TrialsFile, ResultFile} {
		if _, err := f.root.Lstat(name); err == nil {
			return true
		}
	}
	return false
}

// writer is the version of the netdelta that wrote a run folder, "" if it can't be told. It is read on its own, since the
// rest of a record may be of a schema that this program does not understand.
func (f *Files) writer() string {
	var record struct {
		Netdelta    string `json:"netdelta"`
		Environment struct {
			Netdelta string `json:"netdelta"`
		} `json:"environment"`
	}
	for _, name := range []string{EnvironmentFile, ResultFile} {
		data, err := f.Read(name, recordMost)
		if err != nil || json.Unmarshal(data, &record) != nil {
			continue
		}
		if record.Netdelta != "" {
			return record.Netdelta
		}
		if record.Environment.Netdelta != "" {
			return record.Environment.Netdelta
		}
	}
	return ""
}
