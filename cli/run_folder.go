package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/result"
)

// What each run leaves in its folder for readers: a page for people, and metrics for Prometheus.
const (
	pageFile    = "report.html"
	metricsFile = "metrics.txt"
)

// writeViews writes the page and the metrics of a run that has just ended.
func (env *environment) writeViews(run result.Run, dir string) error {
	contents, err := result.LoadTrials(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	text, err := result.LoadStudy(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	traced, err := loadHops(dir)
	if err != nil {
		return fmt.Errorf("writing %s: %w", pageFile, err)
	}
	view := reported{Measured: insight.Measured{Run: run, Trials: contents.Trials}, study: text, hops: traced}
	if err := replaceFile(filepath.Join(dir, metricsFile), func(w io.Writer) error { return writeMetrics(w, view) }); err != nil {
		return err
	}
	return env.writeReport(filepath.Join(dir, pageFile), func(w io.Writer) error { return writeHTML(w, view) })
}

// openFolder makes the run folder and names the run, or opens the folder of the run that is resumed.
func (env *environment) openFolder(s *study.Study, run *result.Run, o runOptions) (*result.Folder, error) {
	if o.resume != "" {
		return reopenFolder(run, o.resume)
	}
	data, err := s.Marshal()
	if err != nil {
		return nil, err
	}
	return env.newFolder(s.Name, data, run, o.out)
}

// newFolder makes the folder of a run of the study in data: out, or a new one in runs.
func (env *environment) newFolder(name string, data []byte, run *result.Run, out string) (_ *result.Folder, err error) {
	run.Run = name + "-" + time.Now().UTC().Format("20060102-150405")
	if out == "" {
		if out, err = freshFolder("runs", run.Run); err != nil {
			return nil, err
		}
		run.Run = filepath.Base(out)
		if err := pointTo(filepath.Join("runs", "latest"), run.Run); err != nil {
			printError(env.err, err.Error()) // a convenience: the run goes on without it
		}
	}
	taken := occupied(out)
	folder, err := result.Create(out, data)
	if err != nil && taken {
		return nil, withStatus(exitUsage, err)
	}
	return folder, err
}

// freshFolder makes a folder of this name, or of the name with a number if there is one already, and returns its path: runs
// that start in the same second don't meet.
func freshFolder(parent, name string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("making the folder for runs: %w; choose another place with --out", err)
	}
	path := filepath.Join(parent, name)
	for n := 2; ; n++ {
		err := os.Mkdir(path, 0o755)
		if !errors.Is(err, fs.ErrExist) {
			return path, err
		}
		path = filepath.Join(parent, fmt.Sprintf("%s-%d", name, n))
	}
}

// occupied says whether there is something in a folder.
func occupied(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) > 0
}

// reopenFolder takes up an earlier run: its name, its start, its seed and its cells.
func reopenFolder(run *result.Run, dir string) (*result.Folder, error) {
	folder, err := result.Open(dir)
	if err != nil {
		return nil, err
	}
	old, err := result.Load(dir)
	if errors.Is(err, fs.ErrNotExist) {
		// The run was killed before it wrote its head: the study, with its seed, is all that there is of it.
		old, err = *run, nil
		old.Run = filepath.Base(filepath.Clean(dir))
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	run.Run, run.Started, run.Cells, run.Seed = old.Run, old.Started, old.Cells, old.Seed
	run.Environment.Links, run.Environment.Sysctls = old.Environment.Links, old.Environment.Sysctls
	run.Notes = slices.Concat(old.Notes, []string{fmt.Sprintf("resumed with %d finished trials", len(folder.Contents.Trials))})
	if torn := folder.Contents.Torn; torn != "" {
		run.Notes = append(run.Notes, torn)
	}
	return folder, nil
}

// pointTo makes path a symbolic link to a target beside it. An older link is replaced; anything else that has its name stays.
func pointTo(path, target string) error {
	old, err := os.Lstat(path)
	if err == nil && old.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	err = os.Symlink(target, fresh)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return fmt.Errorf("pointing %s at this run: %w", path, errors.Join(err, removeLeft(fresh)))
	}
	return nil
}

// removeLeft removes what may be there.
func removeLeft(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
