// Package change carries changes of a cluster out for as long as a run measures what they do, and undoes them. What is to be
// done is recorded on disk before it is begun, so that a killed run's changes can be undone too; a Lease keeps two runs from
// changing one cluster at once.
package change

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/internal/owner"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
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
	return owner.StateFolder(getenv, "changes")
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
	// Others may not read it: commands may hold secrets.
	if err := result.KeepFile(path, append(data, '\n')); err != nil {
		return fmt.Errorf("record what is changed, before it is: %w; nothing was changed", err)
	}
	return nil
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

// Restored is a change of a killed run that has been undone.
type Restored struct{ Run, Network, Cluster string }

// String says what was done.
func (r Restored) String() string {
	return fmt.Sprintf("the change of cluster %s for %s, by run %s", r.Cluster, testbed.ChangedFor(r.Network), r.Run)
}

// Recover undoes what runs that were killed have changed of their clusters, as recorded in the state folder ("" is DefaultState).
// Changes of runs that are under way are left alone. Log is told of each step. What can't be undone is a *testbed.RestoreError
// among the joined errors, and stays recorded.
func Recover(ctx context.Context, state string, log io.Writer) ([]Restored, error) {
	if state == "" {
		var err error
		if state, err = DefaultState(os.Getenv); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = owner.CheckFolder(state, owner.StateVariable) // the records hold commands
	}
	if err != nil {
		return nil, fmt.Errorf("look for what killed runs have changed: %w", err)
	}
	var done []Restored
	var errs []error
	for _, e := range entries {
		mark, is := strings.CutSuffix(e.Name(), recordSuffix)
		if !is {
			continue
		}
		if o, err := owner.Parse(mark); err != nil || !o.Dead() {
			continue
		}
		path := filepath.Join(state, e.Name())
		r, err := read(path)
		if err == nil {
			err = r.recover(ctx, log)
		}
		if err == nil {
			err = errors.Join(remove(path), r.removeCopy())
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		done = append(done, Restored{Run: r.Run, Network: r.Network, Cluster: r.Cluster})
	}
	return done, errors.Join(errs...)
}

// recover undoes the change of a killed run.
func (r *record) recover(ctx context.Context, log io.Writer) error {
	failed := func(err error) error {
		return &testbed.RestoreError{Network: r.Network, Dir: r.Dir, Steps: r.lines(), Err: err}
	}
	cluster, err := r.connect()
	if err != nil {
		return failed(err)
	}
	c := &carrier{cluster: cluster, dir: r.Dir, kubeconfig: r.Kubeconfig, log: log}
	say(log, "restoring cluster %s after %s of run %s\n", r.Cluster, testbed.ChangedFor(r.Network), r.Run)
	if err := c.undo(ctx, r); err != nil {
		return failed(err)
	}
	l := &lease{api: cluster.API, namespace: r.Lease, holder: r.Owner}
	return l.drop(ctx)
}

// connect finds the cluster that was changed, and no other.
func (r *record) connect() (*kube.Cluster, error) {
	if r.Kubeconfig == "" && r.Variable != os.Getenv(kubeconfigVariable) {
		return nil, fmt.Errorf("the cluster was found by %s=%s: set it so", kubeconfigVariable, testbed.Quoted(r.Variable))
	}
	cluster, err := kube.Connect(kube.Config{Kubeconfig: r.Kubeconfig, Context: r.Context, Namespace: r.Namespace})
	if err != nil {
		return nil, err
	}
	if cluster.REST.Host != r.Server {
		return nil, fmt.Errorf("the cluster that was changed is at %s, and the kubeconfig names %s now", r.Server, cluster.REST.Host)
	}
	return cluster, nil
}

// sameContext refuses commands where they would speak to another cluster than netdelta does: they know of the kubeconfig and its
// current context, not of a context that netdelta was told of.
func (c *Changer) sameContext(change testbed.Change) error {
	wanted := c.options.Config.Context
	if wanted == "" {
		return nil
	}
	current, err := kube.CurrentContext(c.options.Config.Kubeconfig)
	if err != nil {
		return err
	}
	if current == wanted {
		return nil
	}
	for _, actions := range [][]testbed.Action{change.Apply, change.Ready, change.Restore} {
		for _, a := range actions {
			if len(a.Command) > 0 {
				return fmt.Errorf("%s changes the cluster by commands, which would speak to context %q of the kubeconfig, not to %q; make it the current one: kubectl config use-context %s",
					testbed.ChangedFor(change.Network), current, wanted, testbed.Quoted(wanted))
			}
		}
	}
	return nil
}
