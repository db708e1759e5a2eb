package cli

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"netdelta/experiment"
	"netdelta/insight"
	"netdelta/report/terminal"
	"netdelta/report/ui"
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

// progress shows on standard error how far a run is.
type progress struct {
	shown *ui.Progress
	began time.Time // of counting
	// leading is what stands out so far, nil before the first build is judged.
	leading atomic.Pointer[string]
}

func (env *environment) progress(quiet bool) *progress {
	if quiet {
		return &progress{}
	}
	return &progress{shown: ui.NewProgress(env.err, ui.Detect(env.console, env.getenv))}
}

// Update implements experiment.Progress.
func (p *progress) Update(s experiment.Status) {
	p.shown.Update(ui.Step{
		Done: min(1, s.Elapsed.Seconds()/s.Budget.Seconds()),
		Left: max(0, s.Budget-s.Elapsed).Round(time.Second),
		Text: doing(s, p.leading.Load()),
	})
}

// doing says what a run is about: what stands out so far and how many cells are open, then where it is.
func doing(s experiment.Status, leading *string) string {
	var parts []string
	if leading != nil && *leading != "" {
		parts = append(parts, *leading)
	}
	switch {
	case s.Open > 0:
		parts = append(parts, fmt.Sprintf("%d open", s.Open))
	case s.Open == 0:
		parts = append(parts, "all known well enough")
	}
	parts = append(parts, fmt.Sprintf("build %d, round %d of %d", s.Build, s.Round, s.Rounds))
	return strings.Join(parts, " · ")
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
func (p *progress) Stop() { p.shown.Close() }
