package result

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A journal that is left on disk gives the trials that one in memory gives, once while it is read and again when they are asked for; what
// can't be read again has failed.
func TestStored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := Create(dir, []byte("study: s\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, cell := range []string{"a", `a,"bursts":`, "b", "a"} {
		if err := folder.Append(Trial{Cell: cell, Role: RoleCell, Build: i, Started: time.Unix(int64(i), 5), Bursts: Bursts{Round: []int{1}, Start: []int64{2}, Duration: []int64{3}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, TrialsFile)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	bare := bytes.Split(text, []byte("\n"))[0]
	bare = append(bytes.Clone(bare[:len(bare)-sealSize]), "}\n"...)
	for what, text := range map[string][]byte{"as written": text, "torn": append(bytes.Clone(text), `{"schema":1,`...), "begun without checksums": append(bare, text...)} {
		if err := os.WriteFile(name, text, 0o644); err != nil {
			t.Fatal(err)
		}
		all, err := LoadTrials(dir)
		if err != nil {
			t.Fatal(err)
		}
		files, err := OpenRun(dir)
		if err != nil {
			t.Fatal(err)
		}
		var lock sync.Mutex
		seen := map[int]Trial{}
		stored, err := files.Stored(func(i int, t *Trial) {
			lock.Lock()
			defer lock.Unlock()
			kept := *t
			kept.Bursts = t.Bursts.exact().complete() // the next trial's take their place
			seen[i] = kept
		})
		if err != nil {
			t.Fatal(err)
		}
		if stored.Len() != len(all.Trials) || stored.Torn != all.Torn {
			t.Fatalf("%s: %d trials, %q; in memory %d, %q", what, stored.Len(), stored.Torn, len(all.Trials), all.Torn)
		}
		for i := range all.Trials {
			if got := stored.Trial(i); !reflect.DeepEqual(*got, all.Trials[i]) || !reflect.DeepEqual(seen[i], all.Trials[i]) {
				t.Errorf("%s: trial %d is %+v, and was %+v when it was read, want %+v", what, i, *got, seen[i], all.Trials[i])
			}
		}
		if err := os.Truncate(name, 10); err != nil {
			t.Fatal(err)
		}
		if lost := stored.Trial(2); lost.Measured() || lost.ID() != all.Trials[2].ID() || !strings.Contains(lost.Failed, name) {
			t.Errorf("%s: of a journal that was cut: %+v", what, lost)
		}
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte(`"build":1`), []byte(`"build":7`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	stored := func(f *Files) (*Stored, error) { return f.Stored(func(int, *Trial) {}) }
	var corrupt *CorruptError
	if _, err := readRun(dir, stored); !errors.As(err, &corrupt) || corrupt.Line != 2 {
		t.Errorf("a line that was changed: %v", err)
	}
}

// What is left on disk takes no memory while it is read: a large run has gigabytes of it, which would all have to be collected.
func TestStoredTakesLittleMemory(t *testing.T) {
	dir := filled(t, 0)
	trial := Trial{Cell: "a", Role: RoleCell}
	for i := range 1000 {
		b := &trial.Bursts
		b.Round, b.Start, b.Duration, b.P50 = append(b.Round, i), append(b.Start, int64(i)), append(b.Duration, 5), append(b.P50, 1.5)
	}
	const trials = 16 * linesAtOnce // the first lines grow the buffers that all others are read into
	line, err := encodeTrial(trial)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, TrialsFile), bytes.Repeat(line, trials), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	stored, err := readRun(dir, func(f *Files) (*Stored, error) { return f.Stored(func(int, *Trial) {}) })
	runtime.ReadMemStats(&after)
	if err != nil || stored.Len() != trials {
		t.Fatalf("%d trials, %v", stored.Len(), err)
	}
	if took, size := (after.TotalAlloc-before.TotalAlloc)/trials, uint64(len(line)); took > size/2 {
		t.Errorf("a line of %d bytes takes %d bytes of memory while it is read", size, took)
	}
}
