package cli_test

import (
	"encoding/csv"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/sys/unix"

	"netdelta/report/rows"
	"netdelta/result"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	call(t, dir, statusDone, "report", "old", "--format", "md").shows(t, "### tcp-rr, 300B, across nodes", "| vxlan | +31.5% |", "<details>")
	call(t, dir, statusDone, "report", "old/result.json", "--format", "benchfmt").shows(t, "Unit p50-ns/op better=lower", "BenchmarkTcpRR/network=vxlan/placement=cross-node/message=300-2 1200 ")
	call(t, dir, statusDone, "report", "old", "--format", "openmetrics").shows(t, "# TYPE netdelta_delta_ratio gauge", `network="vxlan"`, "# EOF")
	call(t, dir, statusDone, "report", "old", "--format", "junit").shows(t, "<testsuites name=", `<testsuite name="checks"`, "</testsuites>")

	document := call(t, dir, statusDone, "report", "old", "--format", "json").stdout
	conforms(t, "result.schema.json", []byte(document))
	if shown := call(t, dir, statusDone, "show", "old", "--json").stdout; shown != document {
		t.Error("report and show give different documents")
	}

	want := map[string]int{}
	run := decode(t, document)
	all := trials(t, filepath.Join(dir, "old"))
	want[rows.TableDeltas], want[rows.TableTrials], want[rows.TableChecks] = len(run.Deltas)+len(run.Null), len(all), len(run.Checks)
	for _, tr := range all {
		want[rows.TableBursts] += len(tr.Bursts.Round)
	}
	for _, table := range rows.Tables() {
		text := call(t, dir, statusDone, "report", "old", "--format", "csv", "--what", table).stdout
		lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(lines)-1 != want[table] {
			t.Errorf("%s has %d rows, want %d: %v", table, len(lines)-1, want[table], err)
		}
		name := table + ".parquet"
		written := call(t, dir, statusDone, "report", "old", "--format", "parquet", "--what", table, "--out", name)
		written.says(t, "report: "+name)
		if written.stdout != "" {
			t.Errorf("a report that goes to a file is on standard output too: %.40q", written.stdout)
		}
		if n := parquetRows(t, filepath.Join(dir, name)); n != want[table] {
			t.Errorf("%s has %d rows, want %d", name, n, want[table])
		}
	}
}

func parquetRows(t *testing.T, path string) int {
	t.Helper()
	text := read(t, path)
	f, err := parquet.OpenFile(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	return int(f.NumRows())
}

// The page goes into the run folder unless it is asked for elsewhere, and holds the study as it was run.
func TestReportHTML(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	e := call(t, dir, statusDone, "report", "old").says(t, "report: old/report.html")
	page := read(t, filepath.Join(dir, "old", "report.html"))
	if e.stdout != "" || !strings.HasPrefix(page, "<!DOCTYPE html>") || !strings.Contains(page, "vxlan") || !strings.Contains(page, "study: latency") {
		t.Errorf("standard output has %q, the page %.200q", e.stdout, page)
	}
	if again := call(t, dir, statusDone, "report", "old", "--out", "-").stdout; again != page {
		t.Error("standard output has another page than the file")
	}
	// A report is a view: the folder is read as before, and the study may be gone.
	call(t, dir, statusDone, "show", "old").shows(t, "vxlan")
	if err := os.Remove(filepath.Join(dir, "old", result.StudyFile)); err != nil {
		t.Fatal(err)
	}
	call(t, dir, statusDone, "report", "old/result.json").says(t, "report: old/report.html")
}

// A run folder whose files are links makes no verb read or write what they name.
func TestPlantedLinks(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "planted")
	outside := filepath.Join(dir, "outside")
	write(t, outside, "outside\n")
	link := func(name string) {
		t.Helper()
		path := filepath.Join(dir, "planted", name)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(outside, path); err != nil {
			t.Fatal(err)
		}
	}
	link("report.html")
	call(t, dir, statusDone, "report", "planted").says(t, "report: planted/report.html")
	if text := read(t, outside); text != "outside\n" {
		t.Errorf("the page was written through a link: %.100q", text)
	}
	for _, name := range []string{result.StudyFile, "hops.json"} {
		link(name)
		call(t, dir, statusFailed, "report", "planted").says(t, name, "symbolic link")
		if err := os.Remove(filepath.Join(dir, "planted", name)); err != nil {
			t.Fatal(err)
		}
	}
	link(result.TrialsFile)
	call(t, dir, statusFailed, "show", "planted").says(t, "trials.jsonl: ", "symbolic link")
	call(t, dir, statusFailed, "compare", "planted", "planted").says(t, "trials.jsonl: ", "symbolic link")
}

// A report replaces what was there: through a link the file that it leads to, and never what is no file.
func TestReportReplaces(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	write(t, filepath.Join(dir, "target.md"), "old\n")
	if err := os.Symlink("target.md", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	call(t, dir, statusDone, "report", "old", "--format", "md", "--out", "link.md").says(t, "report: link.md")
	if info, err := os.Lstat(filepath.Join(dir, "link.md")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is none any more: %v", err)
	}
	whole := call(t, dir, statusDone, "report", "old", "--format", "md", "--out", "-").stdout
	if got := read(t, filepath.Join(dir, "target.md")); got != whole || !strings.HasPrefix(got, "## latency") {
		t.Errorf("the file has %.60q", got)
	}
	// A pipe of the test's own: a device of the machine must not hang on this test.
	pipe := filepath.Join(dir, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	end, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	call(t, dir, statusDone, "report", "old", "--format", "md", "--out", "pipe")
	if info, err := os.Lstat(pipe); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe was replaced: %v", err)
	}
	if err := end.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(whole))
	if _, err := io.ReadFull(end, got); err != nil || string(got) != whole {
		t.Errorf("through the pipe came %.60q: %v", got, err)
	}
	call(t, dir, statusUsage, "report", "old", "--format", "md", "--out", "old").says(t, "old: ", "folder")
	call(t, dir, statusFailed, "report", "old", "--format", "md", "--out", "nowhere/x.md").says(t, "nowhere/x.md")
	for _, name := range entries(t, dir) {
		if strings.HasPrefix(name, ".") {
			t.Errorf("%s was left", name)
		}
	}
}

// Hostile names do nothing to a terminal, a spreadsheet or a page.
func TestReportHostileNames(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "hostile")
	for _, args := range [][]string{{"--format", "md"}, {"--format", "csv"}, {"--format", "csv", "--what", "checks"}, {"--format", "benchfmt"}, {"--format", "openmetrics"}, {"--format", "junit"}} {
		text := strings.ReplaceAll(call(t, dir, statusDone, append([]string{"report", "hostile"}, args...)...).stdout, "\r\n", "\n")
		if obeyed(text) || strings.Contains(text, "\u202e") {
			t.Errorf("%v prints what a terminal obeys", args)
		}
		if args[1] == "md" && strings.Contains(text, "<script") {
			t.Errorf("%v prints a tag", args)
		}
	}
	e := call(t, dir, statusDone, "show", "hostile")
	if obeyed(e.stdout) {
		t.Error("show prints what a terminal obeys")
	}
	if _, err := result.Load(filepath.Join(dir, "hostile")); err != nil {
		t.Error(err)
	}
}

// What only computes ends at once, also while its output is not read.
func TestInterruptedReport(t *testing.T) {
	dir := t.TempDir()
	runs(t, dir, "old")
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	size, err := unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, 1)
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, dir, "report", "old", "--out", "-")
	cmd.Stdout = out
	if err := errors.Join(cmd.Start(), out.Close()); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { // the pipe is full
		n, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
		return err == nil && n >= size
	}) {
		t.Fatal("the page is not printed")
	}
	began := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := await(t, cmd); e.status != statusInterrupted || time.Since(began) > time.Second {
		t.Errorf("exit status %d after %v", e.status, time.Since(began))
	}
}
