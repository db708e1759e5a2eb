package html

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// The pictures of docs/gallery.md are made by scripts/gallery.sh, which gives both flags.
var (
	pictured = flag.String("pictured", "", "make pictures of the report of this run folder")
	pictures = flag.String("pictures", "", "write the pictures into this folder")
)

// TestPictures makes pictures of a report in both widths and colour schemes: of a run folder where one is given, else of a simulated
// run, which shows that it can be done.
func TestPictures(t *testing.T) {
	into := *pictures
	if into == "" {
		into = t.TempDir()
	}
	run, trials := usual().run(t)
	var study []byte
	if *pictured == "" {
		trials = spoil(&run, trials)
	} else {
		run, trials, study = folder(t, *pictured)
	}
	b := startBrowser(t)
	page := written(t, run, trials, WithStudy(study))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 390} {
			b.view(width, scheme)
			b.open(page)
			b.picture(filepath.Join(into, "report-"+strconv.FormatInt(width, 10)+"-"+scheme+".png"), "")
		}
	}
	b.quiet()
}

// folder reads a run folder and judges it.
func folder(t *testing.T, dir string) (result.Run, []result.Trial, []byte) {
	t.Helper()
	run, err := result.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	contents, err := result.LoadTrials(dir)
	if err != nil {
		t.Fatal(err)
	}
	study, err := result.LoadStudy(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	insight.NewJudge(nil).Conclude(&run, contents.Trials)
	return run, contents.Trials, study
}
