package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"netdelta/report/reporttest"
	"netdelta/workload/catalogue"
)

// Two runs that can't be compared are an answer in a browser, too, and no failure of the server.
func TestServeSaysWhatCannotBeCompared(t *testing.T) {
	dir := t.TempDir()
	run, trials := reporttest.Usual().Measure(t)
	later, laterTrials := reporttest.Later().Measure(t)
	empty := later
	empty.Run = "empty"
	reporttest.Write(t, filepath.Join(dir, "run"), run, trials)
	reporttest.Write(t, filepath.Join(dir, "copy"), run, trials)
	reporttest.Write(t, filepath.Join(dir, "later"), later, laterTrials)
	reporttest.Write(t, filepath.Join(dir, "empty"), empty, nil)
	env := &environment{getenv: os.Getenv, workloads: catalogue.Workloads()}
	for name, want := range map[string]struct {
		says  string
		table bool
	}{
		"copy":  {"are the same run", false},
		"empty": {"has nothing to compare", false},
		"later": {"", true},
	} {
		c, err := env.serveComparison(filepath.Join(dir, "run"), filepath.Join(dir, name))
		if err != nil || !strings.Contains(c.Says, want.says) || (len(c.Changes) > 0) != want.table {
			t.Errorf("%s: %+v, error %v", name, c, err)
		}
	}
}
