package html

import (
	"os"
	"path/filepath"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// written writes a run's report into a folder that ends with the test.
func written(t testing.TB, run result.Run, trials []result.Trial, options ...Option) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(f, run, insight.Summarize(result.List(trials)), options...); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
