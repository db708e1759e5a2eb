package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/report/reporttest"
	"netdelta/result"
)

const statusRegressed = 4

// runs writes run folders of these worlds: "old", "again" (the same machine, nothing changed), "later" (another machine, VXLAN costs
// more), "few" (too few builds), "lacking" (no VXLAN) and "hostile".
func runs(tb testing.TB, dir string, names ...string) {
	tb.Helper()
	again, few, lacking := reporttest.Usual(), reporttest.Usual(), reporttest.Usual()
	lacking.Name, lacking.Seed, lacking.Networks = "latency-20300102-060708", 5, []string{"bridge"}
	again.Name, again.Seed = "latency-20300102-040506", 3
	few.Name, few.Seed, few.Builds = "latency-20300102-050607", 4, 2
	worlds := map[string]reporttest.World{"old": reporttest.Usual(), "again": again, "later": reporttest.Later(), "few": few, "lacking": lacking}
	for _, name := range names {
		run, trials := reporttest.Spoiled(tb)
		if name != "hostile" {
			run, trials = worlds[name].Measure(tb)
		}
		reporttest.Write(tb, filepath.Join(dir, name), run, trials)
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old", "again", "later", "few", "lacking", "hostile")

	found := call(t, dir, statusRegressed, "compare", "old", "later")
	found.shows(t, "kernel: 6.12.1 → 6.18.5", "host itself: 20.0 µs → 41.1 µs; another machine, not compared", "regressed")
	if lines := strings.Split(strings.TrimSpace(found.stdout), "\n"); !strings.Contains(strings.Join(lines[len(lines)-2:], " "), "REGRESSION: 1 of 2 deltas") {
		t.Errorf("the outcome does not stand last:\n%s", found.stdout)
	}
	if found.stderr != "" {
		t.Errorf("standard error has %q", found.stderr)
	}
	call(t, dir, statusDone, "compare", "later", "old").shows(t, "No regression was found", "improved")
	call(t, dir, statusDone, "compare", "old", "again").shows(t, "Same machine and kernel", "Nothing changed")
	call(t, dir, statusDone, "compare", "old", "later", "--margin", "20%").shows(t, "same to within 20%")
	call(t, dir, statusRegressed, "compare", "old/result.json", "later", "--metric", "p90", "--all").shows(t, "p50 (reported, not judged)")
	call(t, dir, statusNothing, "compare", "old", "few").shows(t, "8 and 2 of 3 builds")
	call(t, dir, statusDone, "compare", "old", "again", "--require-known").shows(t, "or more could have been found")
	call(t, dir, statusNothing, "compare", "old", "again", "--margin", "0.1%", "--require-known").says(t, "--require-known")
	call(t, dir, statusNothing, "compare", "old", "lacking", "--require-known").says(t, "1 delta ")
	call(t, dir, statusDone, "compare", "lacking", "old", "--require-known")
	call(t, dir, statusDone, "compare", "old", "lacking")
	call(t, dir, statusUsage, "compare", "old", "again", "few", "--require-known").says(t, "--require-known")
	call(t, dir, statusDone, "compare", "old", "again", "--margin", "0.1%").shows(t, "unresolved")
	call(t, dir, statusNothing, "compare", "old", "again", "--metric", "loss").shows(t, "no delta in common")

	if err := os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "old"))); err != nil {
		t.Fatal(err)
	}
	call(t, dir, statusUsage, "compare", "old", "copy").says(t, "old", "copy", "same run")

	md := call(t, dir, statusRegressed, "compare", "old", "later", "--format", "md")
	md.shows(t, "**REGRESSION", "| vxlan | +6.5% |")

	call(t, dir, statusRegressed, "compare", "old", "later", "--format", "github").shows(t, "::error title=Regression%3A vxlan%2C tcp-rr", "::notice title=netdelta compare::REGRESSION")
	call(t, dir, statusRegressed, "compare", "old", "later", "--format", "junit").shows(t, `<testsuite name="changes" tests="2" failures="1"`, `type="regressed"`)

	document := call(t, dir, statusRegressed, "compare", "old", "later", "--format", "json").stdout
	conforms(t, "comparison.schema.json", []byte(document))
	var c result.Comparison
	if err := json.Unmarshal([]byte(document), &c); err != nil || c.Verdict != "regressed" || len(c.Changes) != 2 || len(c.Differences) == 0 {
		t.Errorf("%v: %s", err, document)
	}
	conforms(t, "comparison.schema.json", []byte(call(t, dir, statusNothing, "compare", "old", "few", "--format", "json").stdout))

	for _, args := range [][]string{{"old", "hostile"}, {"old", "hostile", "--format", "md"}, {"old", "hostile", "--format", "github"}, {"old", "hostile", "--format", "junit"}} {
		cmd := command(t, dir, append([]string{"compare"}, args...)...)
		if e := finish(t, cmd); obeyed(e.stdout) || obeyed(e.stderr) || e.stdout == "" {
			t.Errorf("%v prints what a terminal obeys, or nothing: %q", args, e.stdout)
		}
	}
}

// A fault of a run folder, what is said of it, and how each verb ends.
func TestForeignFolders(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old", "again")
	edit := func(name, file string, change func(string) string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, "old"))); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, name, file)
			before := read(t, path)
			after := change(before)
			if after == before {
				t.Fatalf("%s was not changed", path)
			}
			write(t, path, after)
		}
	}
	remove := func(name string, files ...string) func(t *testing.T) {
		return func(t *testing.T) {
			t.Helper()
			if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, "old"))); err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if err := os.Remove(filepath.Join(dir, name, f)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	replace := func(was, is string) func(string) string {
		return func(text string) string { return strings.ReplaceAll(text, was, is) }
	}
	for _, c := range []struct {
		name    string
		spoil   func(t *testing.T)
		show    int // status of show and report
		compare int
		words   []string // on standard error, of all verbs that fail
		note    string   // in what show prints, where it succeeds
	}{
		{"killed-before-its-record", remove("killed-before-its-record", result.ResultFile), statusNothing, statusNothing,
			[]string{"result.json: ", "--resume killed-before-its-record"}, ""},
		{"killed-before-its-record-too", remove("killed-before-its-record-too", result.ResultFile, result.EnvironmentFile), statusNothing, statusNothing,
			[]string{"result.json: ", "--resume killed-before-its-record-too"}, ""},
		{"torn", edit("torn", result.TrialsFile, func(s string) string { return s[:len(s)-50] }), statusDone, statusDone, nil,
			"trials.jsonl:32: "},
		{"corrupt", edit("corrupt", result.TrialsFile, func(s string) string { return strings.Replace(s, "\n{", "\n[", 1) }), statusFailed, statusFailed,
			[]string{"trials.jsonl:2: corrupt: "}, ""},
		{"newer-result", edit("newer-result", result.ResultFile, replace(`"schema": 1,`, `"schema": 7,`)), statusFailed, statusFailed,
			[]string{"result.json: ", "schema 7", "up to 1", "v1.2.3"}, ""},
		{"newer-trial", edit("newer-trial", result.TrialsFile, replace(`{"schema":1,`, `{"schema":7,`)), statusFailed, statusFailed,
			[]string{"trials.jsonl:1: ", "schema 7", "up to 1", "v1.2.3"}, ""},
		{"older", edit("older", result.ResultFile, replace(`"schema": 1,`, `"schema": 0,`)), statusFailed, statusFailed,
			[]string{"result.json: ", `"schema"`}, ""},
		{"truncated", edit("truncated", result.ResultFile, func(s string) string { return s[:strings.LastIndex(s, "}")] }), statusFailed, statusFailed,
			[]string{"result.json: ", "JSON"}, ""},
		{"no-journal", remove("no-journal", result.TrialsFile), statusDone, statusNothing,
			[]string{"no-journal", "trials.jsonl"}, "trials.jsonl is missing"},
		{"empty-journal", edit("empty-journal", result.TrialsFile, func(string) string { return "" }), statusDone, statusNothing,
			[]string{"empty-journal", "trials.jsonl"}, "Nothing could be compared"},
		{"no-run", func(t *testing.T) {
			t.Helper()
			if err := os.Mkdir(filepath.Join(dir, "no-run"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "no-run", "study.yaml"), "study: mine\n")
		}, statusUsage, statusUsage, []string{"no-run is not a run folder"}, ""},
		{"a-file", func(t *testing.T) { t.Helper(); write(t, filepath.Join(dir, "a-file"), "mine\n") }, statusUsage, statusUsage,
			[]string{"a-file is not a run folder but a file"}, ""},
		{"nowhere", func(*testing.T) {}, statusUsage, statusUsage, []string{"nowhere is not a run folder"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.spoil(t)
			for _, args := range [][]string{
				{"show", c.name}, {"show", c.name, "--json"}, {"report", c.name, "--format", "md"}, {"report", c.name, "--out", "-"},
				{"compare", c.name, "again"}, {"compare", "again", c.name}, {"compare", "again", c.name, "--format", "json"},
			} {
				status := c.show
				if args[0] == "compare" {
					status = c.compare
				}
				e := call(t, dir, status, args...)
				switch {
				case status != statusDone:
					e.says(t, c.words...)
					if e.stdout != "" {
						t.Errorf("%v prints results: %s", args, e.stdout)
					}
				case args[0] == "show" && len(args) == 2:
					e.shows(t, c.note)
				}
			}
		})
	}
	// A comparison says what was left out of its runs.
	call(t, dir, statusDone, "compare", "torn", "again").shows(t, "torn/trials.jsonl:32: ")
}

// If a folder may not be read, the error says so and gives the fix.
func TestUnreadableFolder(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old", "again")
	open(t, dir)
	for _, file := range []string{result.ResultFile, result.TrialsFile} {
		folder := filepath.Join(dir, "closed-"+file)
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(dir, "old"))); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(folder, file), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"show", folder}, {"report", folder, "--format", "md"}, {"compare", filepath.Join(dir, "again"), folder}} {
			e := finish(t, nobody(t, command(t, dir, args...))).want(t, statusFailed)
			e.says(t, file+": permission denied")
		}
	}
}

// A report that can't be written whole leaves the old one as it was.
func TestReportOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	if err := os.Mkdir(filepath.Join(dir, "disk"), 0o755); err != nil {
		t.Fatal(err)
	}
	require.Tool(t, "mount")
	script := `mount --make-rprivate / && mount -t tmpfs -o size=16k tmpfs disk || exit 77
		echo old >disk/bursts.csv
		"$0" report old --format csv --what bursts --out disk/bursts.csv; echo "status $?"
		cat disk/bursts.csv; ls -A disk`
	cmd := exec.Command("sh", "-c", script, os.Getenv(tested))
	cmd.Dir = dir
	out, permitted := privately(t, cmd)
	require.Need(t, "a private mount namespace with a tmpfs", permitted)
	for _, want := range []string{"no space left on device", "status 1\nold\nbursts.csv\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in\n%s", want, out)
		}
	}
}

// A parquet file is for programs: a terminal is refused, a pipe is not.
func TestReportParquetOnTerminal(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	piped := call(t, dir, statusDone, "report", "old", "--format", "parquet").stdout
	if !strings.HasPrefix(piped, "PAR1") || !strings.HasSuffix(piped, "PAR1") {
		t.Errorf("what is piped is no parquet file: %.20q", piped)
	}
	shell := exec.Command("sh", "-c", `"$0" report old --format parquet 2>&1; echo "status $?"`, os.Getenv(tested))
	shell.Dir = dir
	text := onTerminal(t, shell)
	if !strings.Contains(text, "--out") || !strings.Contains(text, "status 2") || strings.Contains(text, "PAR1") {
		t.Errorf("on a terminal: %q", text)
	}
}

// privately runs a command in a mount namespace of its own, and says whether that was permitted: the command ends with 77 where
// it is not.
func privately(t *testing.T, cmd *exec.Cmd) (out string, permitted bool) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	permitted = !errors.Is(err, unix.EPERM) && (!errors.As(err, &exit) || exit.ExitCode() != 77)
	if permitted && err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return string(text), permitted
}
