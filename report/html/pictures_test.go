package html

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"netdelta/report/browsertest"
	"netdelta/report/words"
	"netdelta/result"
)

// The pictures of docs/reading-a-report.md are made by scripts/gallery.sh, which gives the first two flags. The third is for who changes the
// page and wants to see all of it.
var (
	pictured = flag.String("pictured", "", "make pictures of the report of this run folder")
	pictures = flag.String("pictures", "", "write the pictures into this folder")
	whole    = flag.Bool("whole", false, "make pictures of the whole page too, in all widths and colour schemes")
)

// shot is a picture of a part of a report.
type shot struct {
	name          string
	width, height int64
	scheme        string
	selector      string // what is cut out of the page
	window        bool   // the window from there on, not what is cut out
}

// shots are those pictures.
func shots() []shot {
	return []shot{
		{"report", 1280, 1180, "light", "body", true},
		{"costs", 1280, 900, "light", "#ranking", false},
		{"latency", 1280, 900, "light", "#latency .fig:nth-of-type(1)", false},
		{"drift", 1280, 900, "light", "#drift .fig:nth-of-type(1)", false},
		{"paths", 1280, 1000, "light", ".ways", true},
		{"cpu", 1280, 900, "light", "#cpu .fig:nth-of-type(1)", false},
		{"claims", 1280, 900, "light", "#claims", true},
		{"dark", 1280, 1180, "dark", "body", true},
		{"phone", 390, 1400, "light", "body", true},
	}
}

// pictureMost is the size in bytes up to which a picture is kept with the sources.
const pictureMost = 400_000

// TestPictures makes pictures of a report: of a run folder where one is given, else of a simulated run, which shows that it can be
// done. What a run lacks has no picture.
func TestPictures(t *testing.T) {
	into := *pictures
	if into == "" {
		into = t.TempDir()
	}
	run, trials := usual().run(t)
	var study []byte
	if *pictured != "" {
		run, trials, study = folder(t, *pictured)
	}
	b := browsertest.Start(t)
	page := written(t, run, trials, WithStudy(study))
	b.Open(page)
	browsertest.Ask[bool](b, `document.querySelectorAll('details.place').forEach((d) => { d.open = true; }), true`)
	for _, s := range shots() {
		b.View(s.width, s.height, s.scheme)
		if len(visible(b, s.selector, "e.tagName")) == 0 {
			t.Logf("the report has no %s: no picture of %s", s.selector, s.name)
			continue
		}
		cut := s.selector
		if s.window {
			cut = ""
			browsertest.Ask[bool](b, `(() => { document.querySelector('`+s.selector+`').scrollIntoView(); return true; })()`)
		} else { // room around what is cut out
			browsertest.Ask[bool](b, `(() => { document.querySelector('`+s.selector+`').style.cssText = 'padding: 16px 20px; border: 0; background: var(--paper)'; return true; })()`)
		}
		path := filepath.Join(into, s.name+".png")
		b.Picture(path, cut, false)
		browsertest.Ask[bool](b, `document.querySelector('`+s.selector+`').removeAttribute('style'), true`)
		if info, err := os.Stat(path); err != nil || info.Size() > pictureMost || info.Size() < 5_000 {
			t.Errorf("the picture %s: error %v, or its size is not between 5 and %d kB", s.name, err, pictureMost/1000)
		}
	}
	if *whole {
		b.Open(page)
		views(b, func(width int64, scheme string) {
			b.Picture(filepath.Join(into, "whole-"+strconv.FormatInt(width, 10)+"-"+scheme+".png"), "", true)
		})
	}
	b.Quiet()
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
	words.NewJudge(nil).Conclude(&run, contents.Trials)
	return run, contents.Trials, study
}
