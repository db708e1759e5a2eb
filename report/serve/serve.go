// Package serve shows the runs of a folder to the browser of the machine that it runs on: a list with the course of each study over time,
// the page of each run, and what changed between two. It reads, and changes nothing.
package serve

import (
	"bytes"
	_ "embed" // the parts of the page
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"netdelta/insight"
	"netdelta/report/page"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

//go:embed list.tmpl
var listLayout string

//go:embed compare.tmpl
var compareLayout string

//go:embed nav.tmpl
var navLayout string

//go:embed nav.css
var navStyle string

//go:embed serve.css
var style string

//go:embed serve.js
var script string

// again is how many seconds a browser waits before it asks again for the page of a run under way.
const again = "5"

// Runs are what is shown.
type Runs struct {
	// Dir is the folder that holds run folders.
	Dir string
	// Page writes the page of the run in a folder, computed from its journal, and says whether the run is under way.
	Page func(w io.Writer, folder string) (underWay bool, err error)
	// Compare says what changed between the runs in two folders. Of two that can't be compared it says why, and no more.
	Compare func(before, after string) (result.Comparison, error)
}

// Handler answers for the list at /, for a run at /run/NAME/ and its flame graphs below that, and for what changed at
// /compare?old=NAME&new=NAME.
func (r Runs) Handler() http.Handler {
	s := &server{Runs: r, known: map[string]kept{}, busy: make(chan struct{}, pagesAtOnce)}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", s.page(s.list))
	mux.HandleFunc("GET /run/{name}", s.lead)
	mux.Handle("GET /run/{name}/{$}", s.page(s.run))
	mux.Handle("GET /run/{name}/flame/{file}", s.page(s.flame))
	mux.Handle("GET /compare", s.page(s.compare))
	return mux
}

// A page of a large run takes the memory and the processor that a measurement may need: few are made at once, and who can't wait for
// one asks again.
const (
	pagesAtOnce  = 2
	pagePatience = 10 * time.Second
)

// framed is the part of a policy that browsers take from a header alone: no page may show this one inside itself.
const framed = "frame-ancestors 'none'"

// page sends a page when it is whole; an error becomes one of its own.
func (s *server) page(write func(w io.Writer, header http.Header, r *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		select {
		case s.busy <- struct{}{}:
			defer func() { <-s.busy }()
		case <-r.Context().Done():
			return
		case <-time.After(pagePatience):
			h.Set("Retry-After", again)
			h.Set("Content-Security-Policy", "default-src 'none'; "+framed)
			http.Error(w, "other pages are being made, and one more would slow down what is measured: ask again", http.StatusServiceUnavailable)
			return
		}
		var text bytes.Buffer
		send(w, &text, write(&text, h, r))
	}
}

// send sends what was made of a page, or the error of one that could not be made.
func send(w http.ResponseWriter, text *bytes.Buffer, err error) {
	if err != nil {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; "+framed)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, result.ErrNoRun):
		http.Error(w, ui.Clean(err.Error()), http.StatusNotFound)
	case err != nil:
		http.Error(w, ui.Clean(err.Error()), http.StatusInternalServerError)
	default:
		w.Header().Add("Content-Security-Policy", page.PolicyOf(text.String())+"; "+framed) // all policies hold
		_, _ = w.Write(text.Bytes())                                                        // who asked may have gone
	}
}

// folder is the run folder of a name that was asked for: one that may stand in the list, whatever else a name may lead to.
func (s *server) folder(name string) (string, error) {
	if _, is := s.recorded(name); !is {
		return "", fmt.Errorf("show run %q: %w: %s holds no such run", name, fs.ErrNotExist, s.Dir)
	}
	return s.path(name), nil
}

// address is where the page of a run is.
func address(name string) string { return "/run/" + url.PathEscape(name) + "/" }

// lead leads to a run's page by its whole address: links in the page are relative to the folder.
func (s *server) lead(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if _, err := s.folder(name); err != nil {
		send(w, nil, err)
		return
	}
	http.Redirect(w, r, address(name), http.StatusFound)
}

// run shows a run, again and again while it is under way, below links to others.
func (s *server) run(w io.Writer, header http.Header, r *http.Request) error {
	name := r.PathValue("name")
	folder, err := s.folder(name)
	if err != nil {
		return err
	}
	var text strings.Builder
	underWay, err := s.Page(&text, folder)
	if underWay {
		header.Set("Refresh", again)
	}
	if err != nil {
		return err
	}
	links, err := s.links(name)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, page.Headed(text.String(), navStyle, string(links)))
	return err
}

// links lead from a run to the list, and to the runs of the same study before and after it.
func (s *server) links(name string) (template.HTML, error) {
	all, err := s.entries()
	if err != nil {
		return "", err
	}
	var own struct{ Name, Older, Newer string }
	own.Name = name
	at := slices.IndexFunc(all, func(e entry) bool { return e.Name == name })
	for i, e := range all { // the newest first
		switch {
		case at < 0 || e.Study != all[at].Study || e.Testbed != all[at].Testbed:
		case i < at:
			own.Newer = e.Name
		case i > at && own.Older == "":
			own.Older = e.Name
		}
	}
	return page.New(navLayout, "", "").Part("nav", own)
}

// flameMost is the greatest size of a flame graph that is sent.
const flameMost = 64 * unit.MiB

// flame sends a flame graph of a run's folder. Its page has a script of its own, and who wrote the folder is not known: the browser lets it
// see nothing else and load nothing.
func (s *server) flame(w io.Writer, header http.Header, r *http.Request) error {
	folder, err := s.folder(r.PathValue("name"))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("show a flame graph: %w", err)
	}
	text, err := readGraph(root, r.PathValue("file"))
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("show a flame graph: %w", err)
	}
	header.Add("Content-Security-Policy", "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'")
	_, err = w.Write(text)
	return err
}

// readGraph reads a page of the folder of flame graphs.
func readGraph(root *os.Root, file string) ([]byte, error) {
	name := filepath.Join("flame", file)
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || filepath.Ext(file) != ".html" || info.Size() > int64(flameMost):
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return root.ReadFile(name)
}

// list shows all runs.
func (s *server) list(w io.Writer, _ http.Header, _ *http.Request) error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	data := struct {
		Dir     string
		Entries []entry
		Courses []course
	}{s.Dir, entries, courses(entries)}
	return page.New(listLayout, page.Palette+style, script).Write(w, "the list of runs", data)
}

// Drawing is the course as a picture.
func (c course) Drawing() template.HTML { return c.draw() }

// server keeps what it has read of the runs.
type server struct {
	Runs
	busy  chan struct{} // holds one for each page that is being made
	lock  sync.Mutex
	known map[string]kept // by name
}

// kept is what is known of a run, as of the record's last change.
type kept struct {
	changed time.Time
	entry   entry
}

// entry is a run in the list.
type entry struct {
	Name, Study, Testbed, Ended, Answer string
	Started                             time.Time
	// figures are the headline changes of the run, by setting and network.
	figures map[figureKey]float64
}

// figureKey names a figure of a study's course.
type figureKey struct{ setting, network string }

// When prints the start.
func (e entry) When() string { return e.Started.UTC().Format("2006-01-02 15:04") }

func (s *server) path(name string) string { return filepath.Join(s.Dir, name) }

// recorded says whether a name is a run folder's, and when its record changed. The link to the latest run is none.
func (s *server) recorded(name string) (changed time.Time, is bool) {
	if name == "." || !fs.ValidPath(name) || strings.Contains(name, "/") {
		return time.Time{}, false
	}
	folder, err := os.Lstat(s.path(name))
	if err != nil || !folder.IsDir() {
		return time.Time{}, false
	}
	record, err := os.Stat(filepath.Join(s.path(name), result.ResultFile))
	if err != nil {
		return time.Time{}, false
	}
	return record.ModTime(), true
}

// entries are the runs of the folder, the newest first. A folder that can't be read is no run.
func (s *server) entries() ([]entry, error) {
	found, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	var all []entry
	for _, f := range found {
		changed, is := s.recorded(f.Name())
		if !is {
			continue
		}
		k, known := s.known[f.Name()]
		if !known || !k.changed.Equal(changed) {
			e, err := s.read(f.Name())
			if err != nil {
				continue
			}
			k = kept{changed, e}
			s.known[f.Name()] = k
		}
		all = append(all, k.entry)
	}
	slices.SortStableFunc(all, func(a, b entry) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// read reads a run's record, as it was after its last build.
func (s *server) read(name string) (entry, error) {
	files, err := result.OpenRun(s.path(name))
	if err != nil {
		return entry{}, err
	}
	run, err := files.Record()
	if err := errors.Join(err, files.Close()); err != nil {
		return entry{}, err
	}
	e := entry{Name: name, Study: ui.Clean(run.Study), Testbed: ui.Clean(run.Testbed), Ended: ui.Clean(run.Ended), Started: run.Started, figures: map[figureKey]float64{}}
	e.Answer = ui.Clean(strings.Join(words.Summary(run), " "))
	for _, d := range run.Deltas {
		if d.Headline && d.Ratio > 0 {
			e.figures[figureKey{words.Title(d.Setting) + " against " + d.Baseline, insight.Name(d.Network, d.Path)}] = d.Ratio
		}
	}
	return e, nil
}
