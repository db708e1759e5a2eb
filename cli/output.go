package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"netdelta/experiment"
	"netdelta/insight"
	"netdelta/report/live"
	"netdelta/report/terminal"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
)

// shown is how a verb prints a run.
type shown struct {
	json, verbose, pairs bool
	// advice shows what to change alone, and request what each network is of it.
	advice  bool
	request insight.Request
	// folder is the run folder as commands name it, "" where it is not known.
	folder string
}

// print shows a run: as one JSON document, or as tables.
func (env *environment) print(run result.Run, s shown) error {
	if s.json {
		if s.request.Calls > 0 {
			run.Request = s.request.Record(run)
		}
		return writeJSON(env.out, run.Complete())
	}
	return terminal.Write(env.out, run, terminal.View{Terminal: ui.Detect(env.terminal, env.getenv), Verbose: s.verbose, Pairs: s.pairs, Folder: s.folder, Advice: s.advice, Request: s.request, Program: calledAs()})
}

// progress shows on standard error how far a run is, and writes its events. The zero progress does neither.
type progress struct {
	shown  *ui.Progress
	events *live.Events
	began  time.Time // of counting

	mu       sync.Mutex // of what follows
	status   experiment.Status
	at       time.Time // of the status
	standing live.Standing
	over     bool
	stop     chan struct{} // ends what redraws; nil before the first status
	done     chan struct{}
}

func (env *environment) progress(quiet, events bool) *progress {
	p := &progress{}
	if !quiet {
		p.shown = ui.NewProgress(env.err, ui.Detect(env.console, env.getenv))
	}
	if events {
		p.events = live.NewEvents(env.out)
	}
	return p
}

// begun takes in what the run is of.
func (p *progress) begun(run result.Run, folder *result.Folder) {
	p.events.Had(len(folder.Contents.Trials))
	p.events.Started(run, folder.Dir())
}

// waits says what a run waits for: as a line that stays, and as an event.
func (p *progress) waits(what string) {
	p.shown.Note(what)
	p.events.Waiting(what)
}

// redrawEvery is how often the time left is shown anew while a run says nothing, as it does while it sets networks up.
const redrawEvery = time.Second

// Update implements experiment.Progress.
func (p *progress) Update(s experiment.Status) {
	p.events.Update(s)
	p.mu.Lock()
	p.status, p.at = s, time.Now()
	if p.stop == nil && p.shown != nil && !p.over {
		p.stop, p.done = make(chan struct{}), make(chan struct{})
		go p.redraw(p.stop, p.done)
	}
	p.mu.Unlock()
	p.show()
}

func (p *progress) redraw(stop <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	tick := time.NewTicker(redrawEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
			p.show()
		}
	}
}

// show shows the last status as it is by now.
func (p *progress) show() {
	p.mu.Lock()
	s, standing := p.status, p.standing
	if s.Build > 0 {
		s.Elapsed += time.Since(p.at) // the time begins with the first build
	}
	p.mu.Unlock()
	p.shown.Update(ui.Step{
		Done:  min(1, s.Elapsed.Seconds()/s.Budget.Seconds()),
		Left:  max(0, s.Budget-s.Elapsed).Round(time.Second),
		Text:  doing(s),
		Below: standing.Block,
	})
}

// doing says what a run is about: what it does, where it is, and how many cells are open.
func doing(s experiment.Status) string {
	var parts []string
	switch s.Doing {
	case experiment.Preparing:
		return "preparing what is measured against"
	case experiment.SettingUp:
		parts = append(parts, fmt.Sprintf("setting up build %d", s.Build))
	case experiment.Judging:
		parts = append(parts, fmt.Sprintf("judging build %d", s.Build))
	case experiment.Ending:
		return "removing what was set up"
	default:
		parts = append(parts, fmt.Sprintf("build %d, round %d of %d", s.Build, s.Round, s.Rounds))
	}
	switch {
	case s.Open > 0:
		parts = append(parts, fmt.Sprintf("%d open", s.Open))
	case s.Open == 0:
		parts = append(parts, "all known well enough")
	}
	return strings.Join(parts, " · ")
}

// judged takes in how a run stands after a build.
func (p *progress) judged(build int, trials []result.Trial, deltas []result.Delta) {
	p.events.Judged(trials, deltas)
	p.mu.Lock()
	p.standing = p.standing.Next(build, deltas)
	line := p.standing.Line()
	p.mu.Unlock()
	if line != "" {
		p.shown.Tell("so far: " + line)
	}
}

// judge judges a run under way, and has its standing shown.
func (p *progress) judge(j words.Judge) live.Judge {
	return live.Judge{Judge: j, Tell: p.judged, Over: p.events.Finished}
}

// Counted implements session.Progress.
func (p *progress) Counted(done, of int) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	elapsed := time.Since(p.began)
	if p.shown == nil || of == 0 {
		return
	}
	step := ui.Step{Done: float64(done) / float64(of), Text: fmt.Sprintf("%d of %d trials counted", done, of)}
	if done > 0 {
		step.Left = (elapsed * time.Duration(of-done) / time.Duration(done)).Round(time.Second)
	}
	p.shown.Update(step)
}

// Stop implements session.Progress.
func (p *progress) Stop() {
	p.mu.Lock()
	stop, done := p.stop, p.done
	p.stop, p.over = nil, true
	p.mu.Unlock()
	if stop != nil {
		close(stop)
		<-done
	}
	p.shown.Close()
}

// replaceFile replaces the file at path atomically: a reader sees the whole old file or the whole new one, also after a crash or on
// a full disk. If path is not a regular file, such as a pipe, it is written to directly.
func replaceFile(path string, write func(io.Writer) error) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link stays one
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return withStatus(exitUsage, fmt.Errorf("write %s: it is a folder; name a file in it with --out", path))
	case err == nil && !info.Mode().IsRegular():
		return explainWrite(writeThrough(path, write))
	}
	files, err := result.OpenFiles(filepath.Dir(path))
	if err != nil {
		return explainWrite(fmt.Errorf("write %s: %w", path, err))
	}
	return errors.Join(explainWrite(files.Replace(filepath.Base(path), 0o644, write)), files.Close())
}

// writeThrough writes to what is already there.
func writeThrough(path string, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("write %w", err)
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// explainWrite adds to an error of writing a file what to do about it.
func explainWrite(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w; free some space there or choose another place with --out", err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w; choose a place that you may write with --out", err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w; make its folder first or choose another place with --out", err)
	}
	return err
}

// stream is standard output or standard error. It remembers that something could not be written, so that no verb has to look after each
// line. A reader that stops reading would hold a verb for ever: a write is waited for no longer than most, nor, after a signal, than
// unreadMost. What comes while such a write hangs is lost.
type stream struct {
	to    io.Writer
	until <-chan struct{} // closed by the first signal
	most  time.Duration   // 0 is for ever

	mu     sync.Mutex
	held   chan struct{} // closed when the write that was waited for in vain has ended
	failed error
}

const (
	// unreadMost is how long, after a signal, a write may take. Two streams and what else there is to do share a second.
	unreadMost = 250 * time.Millisecond
	// messageMost is how long a message may take: a run is to be measured, and its page written, whether its messages are read or not.
	messageMost = 2 * time.Second
)

// errUnread is the failure of a write that was waited for in vain. It may still end.
var errUnread = errors.New("its reader does not read")

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.write(slices.Clone(b)) // which may be read after this has returned
	if s.failed == nil {
		s.failed = err
	}
	return n, err
}

func (s *stream) write(b []byte) (n int, err error) {
	select {
	case <-s.held:
		s.held = nil
	default:
		if s.held != nil {
			return 0, errUnread
		}
	}
	done := make(chan struct{})
	var written int
	var failed error
	go func() {
		written, failed = s.to.Write(b)
		close(done)
	}()
	var late <-chan time.Time
	if s.most > 0 {
		late = time.After(s.most)
	}
	select {
	case <-done:
		return written, failed
	case <-late:
	case <-s.until:
		select {
		case <-done:
			return written, failed
		case <-time.After(unreadMost):
		}
	}
	s.held = done
	return 0, errUnread
}
