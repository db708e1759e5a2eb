package result

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
)

// secret is a file outside of a run folder, which netdelta may read and the author of the folder may not.
func secret(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("the secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// planted are ways to put something else in the place of a run folder's file.
func planted(t *testing.T) map[string]func(path string) error {
	t.Helper()
	outside := secret(t)
	return map[string]func(path string) error{
		"a symbolic link": func(path string) error { return os.Symlink(outside, path) },
		"2 names":         func(path string) error { return os.Link(outside, path) },
		"a pipe":          func(path string) error { return unix.Mkfifo(path, 0o644) },
		"a folder":        func(path string) error { return os.Mkdir(path, 0o755) },
	}
}

// Whatever stands in the place of a file, reading the folder and going on with its run say what it is, without opening it.
func TestReadsNothingPlanted(t *testing.T) {
	for what, plant := range planted(t) {
		for file, read := range map[string]func(dir string) error{
			StudyFile:  func(dir string) error { _, err := LoadStudy(dir); return err },
			ResultFile: func(dir string) error { _, err := Load(dir); return err },
			TrialsFile: func(dir string) error { _, err := LoadTrials(dir); return err },
			// The count is a help: a reader does without.
			CountFile: func(dir string) error { _, err := Open(dir, nil); return err },
		} {
			t.Run(file+" is "+what, func(t *testing.T) {
				dir := filled(t, 1)
				path := filepath.Join(dir, file)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := plant(path); err != nil {
					t.Fatal(err)
				}
				_, opened := Open(dir, nil)
				for _, err := range []error{read(dir), opened} {
					if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), what) {
						t.Errorf("error %v, want one that names %s and %s", err, file, what)
					}
				}
			})
		}
	}
}

// Writing puts a file of its own in the place of a link, and leaves alone what the link names.
func TestWritesThroughNoLink(t *testing.T) {
	for what, plant := range planted(t) {
		if what == "a folder" {
			continue
		}
		t.Run(what, func(t *testing.T) {
			outside := secret(t)
			dir := filled(t, 0)
			folder, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			for _, file := range []string{ResultFile, EnvironmentFile, "report.html"} {
				if what == "a symbolic link" {
					plant = func(path string) error { return os.Symlink(outside, path) }
				}
				if err := plant(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			page := folder.Replace("report.html", 0o644, func(w io.Writer) error {
				_, err := io.WriteString(w, "a page")
				return err
			})
			if err := errors.Join(page, folder.WriteEnvironment(Environment{}), folder.WriteResult(Run{Schema: Schema, Seed: 7})); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(outside); err != nil || string(text) != "the secret\n" {
				t.Errorf("the file outside is %q, %v", text, err)
			}
			if run, err := Load(dir); err != nil || run.Seed != 7 {
				t.Errorf("seed %d, %v", run.Seed, err)
			}
		})
	}
}

// A folder of the run folder is not left by a link either.
func TestFolderIsNoLink(t *testing.T) {
	dir, outside := filled(t, 0), t.TempDir()
	files, err := OpenFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for name, target := range map[string]string{"out": outside, "in": "."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Folder(name); err == nil || !strings.Contains(err.Error(), "a symbolic link") {
			t.Errorf("%s: error %v, want one that names the link", name, err)
		}
	}
	for range 2 {
		flame, err := files.Folder("flame")
		if err == nil {
			err = errors.Join(flame.write("x", nil), flame.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "flame", "x")); err != nil {
		t.Error(err)
	}
}

// sized makes a file that has a size but no content.
func sized(t *testing.T, path string, size int64) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
}

// taken is how many bytes this process has read so far, of files that never end too.
func taken(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/io")
	require.Need(t, "a kernel that counts what processes read (CONFIG_TASK_IO_ACCOUNTING)", err == nil)
	var n int64
	if _, err := fmt.Sscanf(string(text), "rchar: %d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// What is too long, or no end of it is known, is refused before it is read.
func TestRefusesWhatIsTooLong(t *testing.T) {
	dir := filled(t, 1)
	sized(t, filepath.Join(dir, StudyFile), int64(StudyMost)+1)
	sized(t, filepath.Join(dir, ResultFile), 3<<30)
	sized(t, filepath.Join(dir, TrialsFile), 3<<30)
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	file := func(path string) func() error {
		return func() error { _, err := ReadFile(path, StudyMost); return err }
	}
	for what, c := range map[string]struct {
		read  func() error
		names []string
	}{
		"a long study":        {func() error { _, err := LoadStudy(dir); return err }, []string{StudyFile, "1MiB"}},
		"a long result":       {func() error { _, err := Load(dir); return err }, []string{ResultFile, "3GiB"}},
		"a long line":         {func() error { _, err := LoadTrials(dir); return err }, []string{TrialsFile + ":1:", "64MiB"}},
		"a pipe":              {file(pipe), []string{pipe, "is a pipe"}},
		"a device":            {file("/dev/zero"), []string{"/dev/zero", "is a device"}},
		"a folder":            {file(dir), []string{dir, "is a folder"}},
		"a long file":         {file(filepath.Join(dir, TrialsFile)), []string{TrialsFile, "3GiB"}},
		"a pipe for a folder": {func() error { _, err := Load(pipe); return err }, []string{pipe, ErrNoRun.Error()}},
	} {
		before, err := taken(t), c.read()
		for _, name := range c.names {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: error %v, want one that names %s", what, err, name)
			}
		}
		if bytes := taken(t) - before; bytes > 80<<20 { // a line may have 64 MiB
			t.Errorf("%s: %d MiB were read", what, bytes>>20)
		}
	}
}

// A folder that others move, replace or remove while a run writes to it is noticed at the next write, once, and no trial is lost.
func TestMovedFolder(t *testing.T) {
	moved := func(dir string) error { return os.Rename(dir, dir+"-old") }
	for name, tc := range map[string]struct {
		do    func(dir string) error
		where string // the trials are, added to the folder's path
		names string // in the error
	}{
		"moved":    {moved, "-old", "/run-old"},
		"replaced": {func(dir string) error { return errors.Join(moved(dir), os.Mkdir(dir, 0o755)) }, "-old", "/run-old"},
		"a link":   {func(dir string) error { return errors.Join(moved(dir), os.Symlink("/", dir)) }, "-old", "/run-old"},
		"removed":  {os.RemoveAll, "gone", "/run was removed"},
		"emptied":  {func(dir string) error { return os.Remove(filepath.Join(dir, TrialsFile)) }, "gone", TrialsFile},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filled(t, 1)
			folder, err := Open(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			if err := tc.do(dir); err != nil {
				t.Fatal(err)
			}
			if err := folder.Append(sampleTrial(1)); err == nil || !strings.Contains(err.Error(), tc.names) {
				t.Fatalf("error %v, want one with %q", err, tc.names)
			}
			if tc.where == "gone" {
				return
			}
			if err := errors.Join(folder.Append(sampleTrial(2)), folder.WriteResult(Run{Schema: Schema})); err != nil {
				t.Errorf("what follows: %v", err)
			}
			if contents, err := LoadTrials(dir + tc.where); err != nil || len(contents.Trials) != 3 || folder.Dir() != dir+tc.where {
				t.Errorf("%d trials in %s, %v", len(contents.Trials), folder.Dir(), err)
			}
			if _, err := os.Lstat(filepath.Join(dir, ResultFile)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the other folder was written: %v", err)
			}
		})
	}
}
