package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sampleTrial is a trial with a few bursts; build makes it distinct.
func sampleTrial(build int) Trial {
	started := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	return Trial{
		Schema: Schema, Cell: "vxlan/cross-node/tcp-rr/300", Role: RoleCell, Build: build,
		Started: started, Finished: started.Add(time.Second),
		Bursts: Bursts{
			Round: []int{0, 1, 2}, Start: []int64{10, 20, 30}, Duration: []int64{5, 5, 5},
			Transactions: []int64{100, 101, 102}, P50: []float64{21000.5, 21001, 20999},
			Disturbed: []string{"", "steal", ""},
		},
		Transactions: 303, Bytes: 303 * 600, ClientCPU: 1, ServerCPU: 1,
		TCP:    &TCPInfo{Retransmits: 1, RTT: 30 * time.Microsecond, CongestionControl: "cubic"},
		Series: []Second{{At: 1, Transactions: 303}},
	}
}

// filled makes a run folder with n trials in it.
func filled(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	folder, err := Create(dir, []byte("study: latency\n"))
	if err != nil {
		t.Fatal(err)
	}
	for build := range n {
		if err := folder.Append(sampleTrial(build)); err != nil {
			t.Fatal(err)
		}
	}
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResumeReadsWhatWasAppended(t *testing.T) {
	dir := filled(t, 3)
	folder, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := folder.Append(sampleTrial(3)); err != nil {
		t.Fatal(err)
	}
	contents, err := LoadTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Trial{sampleTrial(0), sampleTrial(1), sampleTrial(2), sampleTrial(3)}
	if diff := cmp.Diff(want, contents.Trials); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[:3], folder.Contents.Trials); diff != "" {
		t.Errorf("trials at opening (-want +got):\n%s", diff)
	}
	if contents.Torn != "" || folder.Contents.Torn != "" {
		t.Errorf("torn: %q and %q, want none", contents.Torn, folder.Contents.Torn)
	}
}

// TestTornAnywhere cuts the journal at each byte of its last line: what was acknowledged before it must survive, and a
// resumed run must go on at a clean line.
func TestTornAnywhere(t *testing.T) {
	dir := filled(t, 3)
	path := filepath.Join(dir, TrialsFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for cut := last + 1; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		folder, err := Open(dir, nil)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(folder.Contents.Trials) != 2 || !strings.Contains(folder.Contents.Torn, "trials.jsonl:3:") {
			t.Fatalf("cut at %d: %d trials, torn %q", cut, len(folder.Contents.Trials), folder.Contents.Torn)
		}
		if err := errors.Join(folder.Append(sampleTrial(2)), folder.Close()); err != nil {
			t.Fatal(err)
		}
		again, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, whole) {
			t.Fatalf("cut at %d: the journal differs after the torn trial was done again", cut)
		}
	}
}

func TestReadJournal(t *testing.T) {
	good := func(build int) string {
		line, err := encodeTrial(sampleTrial(build))
		if err != nil {
			t.Fatal(err)
		}
		return unsealed(string(line)) // so that it can be changed
	}
	newer := strings.Replace(good(1), `"schema":1`, `"schema":2,"wholly":"new"`, 1)
	extra := strings.Replace(good(1), `"schema":1`, `"schema":1,"added":"later"`, 1)
	uneven := strings.Replace(good(1), `"p50":[21000.5,`, `"p50":[`, 1)
	for name, tc := range map[string]struct {
		text   string
		trials int
		torn   string
		bad    int    // the line that is corrupt
		names  string // what the reason names
		newer  int    // the line of another schema
	}{
		"empty":                        {"", 0, "", 0, "", 0},
		"whole":                        {good(0) + good(1), 2, "", 0, "", 0},
		"a field of the same schema":   {good(0) + extra, 2, "", 0, "", 0},
		"torn":                         {good(0) + good(1)[:40], 1, "j:2: the last line is torn (40 bytes without a line feed)", 0, "", 0},
		"only torn":                    {"{", 0, "j:1: the last line is torn", 0, "", 0},
		"whole but for the line feed":  {good(0) + strings.TrimSuffix(good(1), "\n"), 1, "j:2: the last line is torn", 0, "", 0},
		"zeros after a power failure":  {good(0) + strings.Repeat("\x00", 50), 1, "j:2: the last line is torn", 0, "", 0},
		"no JSON at the very end":      {good(0) + good(1)[:40] + "\n", 1, "j:2: the last line is torn (41 bytes that are not JSON)", 0, "", 0},
		"no JSON in the middle":        {good(0) + good(1)[:40] + "\n" + good(2), 0, "", 2, "JSON", 0},
		"empty line in the middle":     {good(0) + "\n" + good(2), 0, "", 2, "empty", 0},
		"another document at the end":  {good(0) + "{}\n", 0, "", 2, `"schema"`, 0},
		"a list":                       {"[]\n" + good(0), 0, "", 1, "", 0},
		"wrong type":                   {strings.Replace(good(0), `"build":0`, `"build":"x"`, 1), 0, "", 1, "", 0},
		"newer":                        {good(0) + newer + good(2), 0, "", 0, "", 2},
		"newer at the end":             {good(0) + newer, 0, "", 0, "", 2},
		"columns of different lengths": {good(0) + uneven, 0, "", 2, "2 entries of p50", 0},
		"no cell":                      {strings.Replace(good(0), "vxlan/cross-node/tcp-rr/300", "", 1), 0, "", 1, "cell", 0},
		"unknown role":                 {strings.Replace(good(0), `"role":"cell"`, `"role":"king"`, 1), 0, "", 1, `"king"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			contents, err := ReadJournal(strings.NewReader(tc.text), "j")
			if tc.bad+tc.newer > 0 {
				var corrupt *CorruptError
				var newer *SchemaError
				switch {
				case errors.As(err, &corrupt) && corrupt.File == "j" && corrupt.Line == tc.bad && strings.Contains(corrupt.Reason.Error(), tc.names):
				case errors.As(err, &newer) && newer.File == "j" && newer.Line == tc.newer && newer.Have == 2 && newer.Want == Schema:
				default:
					t.Fatalf("error %v, want one of %q in line %d", err, tc.names, tc.bad+tc.newer)
				}
				if contents.Trials != nil {
					t.Errorf("an error and %d trials", len(contents.Trials))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(contents.Trials) != tc.trials {
				t.Errorf("%d trials, want %d", len(contents.Trials), tc.trials)
			}
			if (tc.torn == "") != (contents.Torn == "") || !strings.Contains(contents.Torn, tc.torn) {
				t.Errorf("torn %q, want one with %q", contents.Torn, tc.torn)
			}
		})
	}
}

// unsealed is a line of a journal without its checksum.
func unsealed(line string) string { return line[:len(line)-1-sealSize] + "}\n" }

func TestReaderErrorIsReturned(t *testing.T) {
	broken := errors.New("the cable is out")
	_, err := ReadJournal(failing{broken}, "j")
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestOneWriterAtATime(t *testing.T) {
	dir := filled(t, 1)
	first, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("second Open: %v, want %v", err, ErrLocked)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(dir, nil)
	if err != nil {
		t.Fatalf("Open after Close: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

func TestAppendRefusesWhatCanNotBeRead(t *testing.T) {
	dir := filled(t, 0)
	folder, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	notANumber := sampleTrial(0)
	notANumber.Bursts.P50[1] = math.NaN()
	uneven := sampleTrial(0)
	uneven.Bursts.Mean = []float64{1}
	for _, trial := range []Trial{notANumber, uneven, {}, {Cell: "x"}, {Cell: "x", Role: RoleCell, Build: -1}} {
		if err := folder.Append(trial); err == nil {
			t.Errorf("Append(%+v) succeeded", trial)
		}
	}
	if err := folder.Append(Trial{Cell: "x", Role: RoleControl, Failed: "the pod's process died"}); err != nil {
		t.Errorf("a failed trial without bursts: %v", err)
	}
	contents, err := LoadTrials(dir)
	if err != nil || len(contents.Trials) != 1 {
		t.Errorf("%d trials, %v; want the failed one", len(contents.Trials), err)
	}
}

func TestAppendAfterClose(t *testing.T) {
	folder, err := Create(filepath.Join(t.TempDir(), "run"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(folder.Close(), folder.Close()); err != nil {
		t.Fatal(err)
	}
	if err := folder.Append(sampleTrial(0)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after Close: %v, want %v", err, os.ErrClosed)
	}
}

func TestCreateTouchesNoOtherFiles(t *testing.T) {
	dir := filled(t, 1)
	if _, err := Create(dir, nil); !errors.Is(err, ErrNotEmpty) || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("Create over a run: %v, want advice to resume", err)
	}
	if contents, err := LoadTrials(dir); err != nil || len(contents.Trials) != 1 {
		t.Errorf("the run there: %d trials, %v", len(contents.Trials), err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(filepath.Join(file, "run"), nil); err == nil || !strings.Contains(err.Error(), "--out") {
		t.Errorf("Create below a file: %v, want advice to choose another folder", err)
	}
}

func TestResultIsReplacedWhole(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "run")
	study := []byte("study: latency\n")
	folder, err := Create(dir, study)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if _, err := Load(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load without a result: %v, want %v", err, fs.ErrNotExist)
	}
	for seed := range uint64(3) {
		run := Run{Schema: Schema, Run: "r", Study: "latency", Seed: seed, Ended: "running"}
		if err := errors.Join(folder.WriteResult(run), folder.WriteEnvironment(Environment{Kernel: "6.18"})); err != nil {
			t.Fatal(err)
		}
		got, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(run.Complete(), got); diff != "" {
			t.Errorf("result (-want +got):\n%s", diff)
		}
	}
	got, err := LoadStudy(dir)
	if err != nil || !bytes.Equal(got, study) {
		t.Errorf("study %q, %v", got, err)
	}
	if diff := cmp.Diff([]string{EnvironmentFile, ResultFile, StudyFile, CountFile, TrialsFile}, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(entries))
	for i, entry := range entries {
		list[i] = entry.Name()
	}
	return list
}

func TestResultOfANewerSchema(t *testing.T) {
	dir := filled(t, 1)
	newer := fmt.Sprintf(`{"schema":%d,"deltas":"another shape"}`, Schema+1)
	if err := os.WriteFile(filepath.Join(dir, ResultFile), []byte(newer), 0o644); err != nil {
		t.Fatal(err)
	}
	_, loadErr := Load(dir)
	_, openErr := Open(dir, nil)
	for _, err := range []error{loadErr, openErr} {
		var schema *SchemaError
		if !errors.As(err, &schema) || schema.Have != 2 || schema.Want != 1 {
			t.Errorf("error %v, want a *SchemaError of 2 and 1", err)
		}
	}
}

// The record of a run that is resumed is the one that the caller has read; it is read again where another run has gone on meanwhile.
func TestKnownRecordIsReadOnce(t *testing.T) {
	dir := filled(t, 1)
	write := func(name string) {
		folder, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(folder.WriteResult(Run{Schema: Schema, Run: name}), folder.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	known, err := LoadRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	known.Run.Question = "as it is known"
	for _, c := range []struct {
		meanwhile func()
		want      string
	}{{func() {}, "as it is known"}, {func() { write("other") }, ""}} {
		c.meanwhile()
		folder, err := Open(dir, known)
		if err != nil {
			t.Fatal(err)
		}
		if folder.Earlier == nil || folder.Earlier.Question != c.want || (c.want == "") != (folder.Earlier.Run == "other") {
			t.Errorf("the record of %+v, want one whose question is %q", folder.Earlier, c.want)
		}
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	}
	// It is read under the lock, so that no other run changes it meanwhile.
	first, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := os.WriteFile(filepath.Join(dir, ResultFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("%v, want that the folder is locked before its record is read", err)
	}
}

func TestNotARunFolder(t *testing.T) {
	empty := t.TempDir()
	_, loadErr := Load(empty)
	_, trialsErr := LoadTrials(empty)
	_, openErr := Open(empty, nil)
	_, goneErr := Open(filepath.Join(empty, "gone"), nil)
	for _, err := range []error{loadErr, trialsErr, openErr, goneErr} {
		if !errors.Is(err, fs.ErrNotExist) || !errors.Is(err, ErrNoRun) {
			t.Errorf("error %v, want %v", err, ErrNoRun)
		}
	}
	dir := filled(t, 1)
	if err := os.WriteFile(filepath.Join(dir, ResultFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "resume") {
		t.Errorf("Load of half a result: %v, want advice to resume", err)
	}
}

func FuzzReadJournal(f *testing.F) {
	line, err := encodeTrial(sampleTrial(0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(append(bytes.Clone(line), line[:50]...))
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"schema":7}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		contents, err := ReadJournal(bytes.NewReader(data), "fuzz")
		if err != nil {
			if contents.Trials != nil || contents.Size != 0 {
				t.Error("an error with contents")
			}
			return
		}
		if contents.Size > int64(len(data)) || (contents.Torn == "") != (contents.Size == int64(len(data))) {
			t.Errorf("size %d of %d bytes, torn %q", contents.Size, len(data), contents.Torn)
		}
		// What was read must be readable when it is written again, and be the same.
		var again bytes.Buffer
		for _, trial := range contents.Trials {
			line, err := json.Marshal(trial)
			if err != nil {
				t.Fatal(err)
			}
			again.Write(append(seal(line), '\n'))
		}
		second, err := ReadJournal(&again, "again")
		if err != nil || len(second.Trials) != len(contents.Trials) {
			t.Errorf("read again: %d trials of %d, %v", len(second.Trials), len(contents.Trials), err)
		}
	})
}
