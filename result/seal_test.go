package result

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A bit that flips anywhere in a journal is found: each bit of one line, and some of several lines.
func TestFlippedBits(t *testing.T) {
	for trials, step := range map[int]int{1: 1, 6: 211} {
		whole, err := os.ReadFile(filepath.Join(filled(t, trials), TrialsFile))
		if err != nil {
			t.Fatal(err)
		}
		for bit := 0; bit < 8*len(whole); bit += step {
			flipped := bytes.Clone(whole)
			flipped[bit/8] ^= 1 << (bit % 8)
			got, err := ReadJournal(bytes.NewReader(flipped), "j")
			line := bytes.Count(whole[:bit/8], []byte("\n")) + 1
			var corrupt *CorruptError
			var newer *SchemaError
			switch {
			case errors.As(err, &corrupt) && corrupt.Line == line, errors.As(err, &newer), got.Torn != "":
			case err != nil:
				t.Errorf("bit %d of %d trials, in line %d: %v", bit, trials, line, err)
			default:
				t.Errorf("bit %d of %d trials, in line %d: not found", bit, trials, line)
			}
		}
	}
}

// A journal without checksums is read as ever, and may be gone on with; from the first checksum on every line needs one.
func TestJournalWithoutChecksums(t *testing.T) {
	dir := filled(t, 2)
	path := filepath.Join(dir, TrialsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var old []byte
	for line := range strings.Lines(string(whole)) {
		old = append(old, unsealed(line)...)
	}
	if err := os.WriteFile(path, old, 0o644); err != nil {
		t.Fatal(err)
	}
	folder, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(folder.Append(sampleTrial(2)), folder.Close()); err != nil {
		t.Fatal(err)
	}
	contents, err := LoadTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Trial{sampleTrial(0), sampleTrial(1), sampleTrial(2)}, contents.Trials); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	mixed := append(bytes.Clone(whole), old...)
	var corrupt *CorruptError
	if _, err := ReadJournal(bytes.NewReader(mixed), "j"); !errors.As(err, &corrupt) || corrupt.Line != 3 || !errors.Is(err, errUnsealed) {
		t.Errorf("error %v, want one that names line 3", err)
	}
}
