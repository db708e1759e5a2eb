// Package history keeps what the runs of a user found on a machine, a line for each run, in the user's state folder. By them a later run knows how
// far runs on that machine differ, which no run can know by itself.
package history

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/owner"
	"netdelta/result"
	"netdelta/unit"
)

// Folder is the name of the folder below the user's state folder (owner.StateFolder).
const Folder = "history"

const (
	runsFile = "runs.jsonl"
	lockFile = "lock"
	// runsMost is how many runs are kept, and fileMost the greatest size of a file that is read: a run of 500 deltas takes 100 kB.
	runsMost = 200
	fileMost = 32 * unit.MiB
	// patience is how long another run that writes is waited for.
	patience = 5 * time.Second
)

// line is a run in the file.
type line struct {
	Schema  int                 `json:"schema"`
	Started time.Time           `json:"started"`
	Place   string              `json:"place"`
	Boot    string              `json:"boot,omitempty"`
	Deltas  []insight.PastDelta `json:"deltas"`
}

// Place names what two runs must have in common for their deltas to be the same ones: the testbed that the study asks for, and the machines and
// kernels that it is on.
func Place(e result.Environment, on study.Testbed) (string, error) {
	var machines []string
	if c := e.Cluster; c != nil {
		machines = append(machines, c.Name, c.Version, c.Network, c.Proxy)
		for _, n := range c.Nodes {
			machines = append(machines, n.Name, n.Kernel, n.CPU.Model)
		}
	}
	for _, s := range e.Servers {
		machines = append(machines, s.Name)
	}
	text, err := json.Marshal([]any{on, e.Hostname, e.Kernel, e.Arch, e.CPU.Model, e.CPU.Count, e.Virtual, machines})
	if err != nil {
		return "", fmt.Errorf("describe the machine for the history of runs: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))[:16], nil
}

// Earlier are the deltas of earlier runs in a place, the oldest first. There are none where the folder is not there. Lines that can't be
// read are left out: a later version may have written them.
func Earlier(folder, place string) ([][]insight.PastDelta, error) {
	if err := owner.CheckFolder(folder, owner.StateVariable); err != nil {
		return nil, err
	}
	all, err := read(folder)
	if err != nil {
		return nil, err
	}
	var runs [][]insight.PastDelta
	for _, text := range all {
		var l line
		if json.Unmarshal(text, &l) == nil && l.Schema == result.Schema && l.Place == place {
			runs = append(runs, l.Deltas)
		}
	}
	return runs, nil
}

// read is the lines of the file of a folder that is the user's own.
func read(folder string) ([][]byte, error) {
	files, err := result.OpenFiles(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := files.Read(runsFile, fileMost)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, files.Close()); err != nil {
		return nil, fmt.Errorf("read what earlier runs found: %w; remove the file to begin anew", err)
	}
	return bytes.FieldsFunc(data, func(r rune) bool { return r == '\n' }), nil
}

// Keep adds a run in a place to the file, if it came to its end and has deltas to keep.
func Keep(ctx context.Context, folder, place string, run result.Run) error {
	deltas := insight.Past(run)
	switch run.Ended {
	case plan.EndedInterrupted, plan.EndedFailed, plan.EndedNothing, plan.Running:
		return nil
	}
	if len(deltas) == 0 {
		return nil
	}
	text, err := json.Marshal(line{Schema: result.Schema, Started: run.Started, Place: place, Boot: run.Environment.Boot, Deltas: deltas})
	if err == nil {
		err = add(ctx, folder, text)
	}
	if err != nil {
		return fmt.Errorf("keep what this run found for later runs: %w", err)
	}
	return nil
}

// add adds a line, and leaves out the oldest where there are too many.
func add(ctx context.Context, folder string, text []byte) (err error) {
	if err := owner.CheckFolder(folder, owner.StateVariable); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	unlock, err := owner.Lock(ctx, filepath.Join(folder, lockFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	all, err := read(folder)
	if err != nil {
		return err
	}
	all = append(all, text)
	all = all[max(0, len(all)-runsMost):]
	return result.KeepFile(filepath.Join(folder, runsFile), append(bytes.Join(all, []byte("\n")), '\n'))
}
