package serve

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netdelta/insight"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// server keeps what it has read of the runs.
type server struct {
	Runs
	lock  sync.Mutex
	known map[string]kept // by name
}

// kept is what is known of a run, as of the record's last change.
type kept struct {
	changed time.Time
	entry   entry
}

// entry is a run in the list.
type entry struct {
	Name, Study, Testbed, Ended, Answer string
	Started                             time.Time
	// figures are the headline changes of the run, by setting and network.
	figures map[figureKey]float64
}

// figureKey names a figure of a study's course.
type figureKey struct{ setting, network string }

// When prints the start.
func (e entry) When() string { return e.Started.UTC().Format("2006-01-02 15:04") }

func (s *server) path(name string) string { return filepath.Join(s.Dir, name) }

// recorded says whether a name is a run folder's, and when its record changed. The link to the latest run is none.
func (s *server) recorded(name string) (changed time.Time, is bool) {
	if name == "." || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return time.Time{}, false
	}
	folder, err := os.Lstat(s.path(name))
	if err != nil || !folder.IsDir() {
		return time.Time{}, false
	}
	record, err := os.Stat(filepath.Join(s.path(name), result.ResultFile))
	if err != nil {
		return time.Time{}, false
	}
	return record.ModTime(), true
}

// entries are the runs of the folder, the newest first. A folder that can't be read is no run.
func (s *server) entries() ([]entry, error) {
	found, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	var all []entry
	for _, f := range found {
		changed, is := s.recorded(f.Name())
		if !is {
			continue
		}
		k, known := s.known[f.Name()]
		if !known || !k.changed.Equal(changed) {
			e, err := s.read(f.Name())
			if err != nil {
				continue
			}
			k = kept{changed, e}
			s.known[f.Name()] = k
		}
		all = append(all, k.entry)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// read reads a run's record, as it was after its last build.
func (s *server) read(name string) (entry, error) {
	files, err := result.OpenRun(s.path(name))
	if err != nil {
		return entry{}, err
	}
	run, err := files.Record()
	if err := errors.Join(err, files.Close()); err != nil {
		return entry{}, err
	}
	e := entry{Name: name, Study: ui.Clean(run.Study), Testbed: ui.Clean(run.Testbed), Ended: ui.Clean(run.Ended), Started: run.Started, figures: map[figureKey]float64{}}
	e.Answer = ui.Clean(strings.Join(words.Summary(run), " "))
	for _, d := range run.Deltas {
		if d.Headline && d.Ratio > 0 {
			e.figures[figureKey{words.Title(d.Setting) + " against " + d.Baseline, insight.Name(d.Network, d.Path)}] = d.Ratio
		}
	}
	return e, nil
}
