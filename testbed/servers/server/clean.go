package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/testbed/lab"
)

// Cleaned is what was found of killed runs and removed or restored, for people.
type Cleaned struct {
	Removed []string `json:"removed"`
}

// abandoned is how old a folder is that no supervisor was started in: sending the program takes less.
const abandoned = 10 * time.Minute

// clean puts back what killed supervisors left, but for the folder of this one.
func clean(ctx context.Context, mine string) (done Cleaned, err error) {
	orphans, err := lab.Cleanup(ctx)
	for _, o := range orphans {
		done.Removed = append(done.Removed, o.String())
	}
	folders, failed := filepath.Glob(filepath.Join(Parent, Prefix+"*"))
	err = errors.Join(err, failed)
	for _, f := range folders {
		if f == mine || !left(f) {
			continue
		}
		what, failed := putBack(f)
		if err = errors.Join(err, failed); failed == nil {
			done.Removed = append(done.Removed, what...)
		}
	}
	return done, err
}

// left says whether a folder is one whose supervisor has certainly died.
func left(folder string) bool {
	about, err := os.Lstat(folder)
	if err != nil || !about.IsDir() || about.Mode().Perm()&0o077 != 0 {
		return false
	}
	mark, err := os.ReadFile(filepath.Join(folder, ownerFile))
	if errors.Is(err, fs.ErrNotExist) {
		_, missing := os.Stat(filepath.Join(folder, machine.AgentName))
		return missing == nil && time.Since(about.ModTime()) > abandoned
	}
	if err != nil {
		return false
	}
	who, err := owner.Parse(string(mark))
	return err == nil && who.Dead()
}

// putBack makes the cards what they were that a supervisor had taken, and removes its folder.
func putBack(folder string) (done []string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, CardFile))
	if err == nil {
		var all []taken
		if err := json.Unmarshal(text, &all); err != nil {
			return nil, fmt.Errorf("read what cards were like: %w", err)
		}
		own, err := netns.Own()
		if err != nil {
			return nil, err
		}
		defer func() { _ = own.Close() }()
		for _, t := range all {
			if failed := t.giveBack(own, nil); failed != nil {
				err = errors.Join(err, failed) // the other cards go back all the same
				continue
			}
			done = append(done, "card "+t.Name+", as it was")
		}
		if err != nil {
			return done, err
		}
	}
	return append(done, "directory "+folder), os.RemoveAll(folder)
}
