package change

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// FolderFile is the record in the folder of a run, for as long as the run has its cluster changed.
const FolderFile = "changed.json"

// recordSuffix ends the names of records in the folder of all runs; they begin with their owner's mark.
const recordSuffix = ".json"

// recordMost is the greatest size of a record that is read: it has manifests in it.
const recordMost = 16 * unit.MiB

// DefaultState is the folder of all runs whose changes are not undone: below $XDG_STATE_HOME, or .local/state of the home folder.
func DefaultState(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home := getenv("HOME")
		if !filepath.IsAbs(home) {
			return "", errors.New("find a place to record changes of the cluster: there is no home folder; set XDG_STATE_HOME or HOME")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "netdelta", "changes"), nil
}

// record is what it takes to undo a change: all of it, so that neither study nor manifests are needed any more.
type record struct {
	Schema int    `json:"schema"`
	Owner  string `json:"owner"` // mark of the program that made the change
	Run    string `json:"run"`
	// Cluster is the name of the context, Server the address of the API server: what is restored must be what was changed.
	Cluster    string        `json:"cluster"`
	Server     string        `json:"server"`
	Kubeconfig string        `json:"kubeconfig,omitempty"` // as it was asked for
	Variable   string        `json:"kubeconfig_variable,omitempty"`
	Context    string        `json:"context,omitempty"`
	Namespace  string        `json:"namespace"`
	Lease      string        `json:"lease_namespace"`
	Network    string        `json:"network"`
	Began      time.Time     `json:"began"`
	Dir        string        `json:"dir"`
	Folder     string        `json:"folder,omitempty"` // of the run, where its copy is
	Within     time.Duration `json:"within_ns"`
	Restore    []step        `json:"restore"`
}

// lines are the steps as one would type them.
func (r *record) lines() []string {
	return gather.Each(r.Restore, func(s step) string { return s.String() })
}

// write brings the record to disk. Nothing may be changed before it has returned.
func (r *record) write(path string) error {
	r.Schema = result.Schema
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("record what is changed in %s: %w", path, err)
	}
	if err := store(path, append(data, '\n')); err != nil {
		return fmt.Errorf("record what is changed, before it is: %w; nothing was changed", err)
	}
	return nil
}

// store replaces a file as a whole and returns when it is on disk. Others may not read it: commands may hold secrets.
func store(path string, data []byte) error {
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	files, err := result.OpenFiles(dir)
	if err != nil {
		return err
	}
	err = files.Replace(name, 0o600, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	return errors.Join(err, files.Close())
}

// remove takes a record away, on disk too: one that came back would undo what was never changed.
func remove(path string) error {
	dir, name := filepath.Split(path)
	files, err := result.OpenFiles(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = errors.Join(files.Remove(name), files.Close())
	}
	if err != nil {
		return fmt.Errorf("remove the record of a change that is undone: %w", err)
	}
	return nil
}

// removeCopy takes away the copy in the folder of the run, unless a later run there has written its own.
func (r *record) removeCopy() error {
	if r.Folder == "" {
		return nil
	}
	path := filepath.Join(r.Folder, FolderFile)
	switch there, err := read(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err // it is not known whose the file is
	case there.Owner != r.Owner:
		return nil
	}
	return remove(path)
}

// read reads a record.
func read(path string) (*record, error) {
	dir, name := filepath.Split(path)
	files, err := result.OpenFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("read what a killed run has changed: %w", err)
	}
	data, err := files.Read(name, recordMost)
	if err = errors.Join(err, files.Close()); err != nil {
		return nil, fmt.Errorf("read what a killed run has changed: %w", err)
	}
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("read what a killed run has changed: %s: %w; restore the cluster by what it says, and remove it", path, err)
	}
	if r.Schema > result.Schema {
		return nil, fmt.Errorf("read what a killed run has changed: %s was written by a newer netdelta; clean up with that one", path)
	}
	return &r, nil
}

// String is the step as one would type it.
func (s step) String() string {
	return testbed.Action{Command: s.Command, Manifest: s.Manifest, Delete: s.Delete}.String()
}
