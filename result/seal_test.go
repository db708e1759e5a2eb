package result

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A bit that flips anywhere in a journal is found, or does not change any trial: none of 2000 may do so unnoticed.
func TestFlippedBits(t *testing.T) {
	dir := filled(t, 6)
	whole, err := os.ReadFile(filepath.Join(dir, TrialsFile))
	if err != nil {
		t.Fatal(err)
	}
	want, err := ReadJournal(bytes.NewReader(whole), "j")
	if err != nil {
		t.Fatal(err)
	}
	const seed = 11
	random := rand.New(rand.NewPCG(seed, seed))
	found := 0
	for range 2000 {
		bit := random.IntN(8 * len(whole))
		flipped := bytes.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		got, err := ReadJournal(bytes.NewReader(flipped), "j")
		line := bytes.Count(whole[:bit/8], []byte("\n")) + 1
		var corrupt *CorruptError
		var newer *SchemaError
		switch {
		case errors.As(err, &corrupt) && corrupt.Line == line, errors.As(err, &newer), got.Torn != "":
			found++
		case err != nil:
			t.Errorf("bit %d, in line %d: %v", bit, line, err)
		case !reflect.DeepEqual(got.Trials, want.Trials):
			t.Errorf("bit %d, in line %d: the trials have changed unnoticed", bit, line)
		}
	}
	// The name of the first line's checksum is the only place where a flip makes it look like a line of an older netdelta.
	if found < 1950 {
		t.Errorf("only %d flips of 2000 were found", found)
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
