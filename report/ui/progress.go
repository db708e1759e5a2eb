package ui

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"
)

// barStep is by how many columns a bar grows or shrinks.
const barStep = 10

// How often a run's progress is shown: a bar is drawn again, a line is added.
const (
	redrawEvery = 250 * time.Millisecond
	lineEvery   = 5 * time.Second
)

// Progress shows how far a run is: a bar with the time left on a terminal that a person looks at, a plain line now and
// then elsewhere. It is made for standard error and may be called from several goroutines; Update costs next to nothing
// when it is too early to show anything. A nil Progress shows nothing.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal Terminal
	now      func() time.Time
	last     time.Time // of what was shown
	drawn    bool      // a bar stands on the current line
	over     bool
}

// Step is how far a run is.
type Step struct {
	// Done is from 0 to 1.
	Done float64
	// Left is the time left; negative is unknown.
	Left time.Duration
	// Text says what is going on, in a few words; it is cut to the line.
	Text string
}

// NewProgress shows progress on w, which is the terminal t.
func NewProgress(w io.Writer, t Terminal) *Progress {
	return &Progress{w: w, terminal: t, now: time.Now}
}

// Update shows a step, unless one was shown just before.
func (p *Progress) Update(s Step) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	every := lineEvery
	if p.terminal.Interactive {
		every = redrawEvery
	}
	now := p.now()
	if p.over || !p.last.IsZero() && now.Sub(p.last) < every {
		return
	}
	p.last = now
	if !p.terminal.Interactive {
		p.show(p.terminal.Text(s.line()) + "\n")
		return
	}
	p.show("\r\x1b[2K" + p.terminal.bar(s))
	p.drawn = true
}

// Note prints a line that stays, above the bar.
func (p *Progress) Note(text string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.show(p.terminal.Text(text) + "\n")
}

// Close takes the bar away. Nothing is shown after it but notes. It is idempotent.
func (p *Progress) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.clear()
}

// clear removes the bar; the next step draws it again at once.
func (p *Progress) clear() {
	if p.drawn {
		p.show("\r\x1b[2K")
		p.drawn, p.last = false, time.Time{}
	}
}

// show writes text. Progress that can't be shown, on a closed pipe say, must not end what it is the progress of.
func (p *Progress) show(text string) { _, _ = io.WriteString(p.w, text) }

// line is a step as plain text.
func (s Step) line() string {
	return s.figures(s.Text)
}

// figures are how much of a step is done, the time left, and its text.
func (s Step) figures(text string) string {
	if text != "" {
		text = " · " + text
	}
	return fmt.Sprintf("%3.0f%%  %s%s", math.Floor(100*s.share()), s.left(), text)
}

// share is Done within its range.
func (s Step) share() float64 {
	if !(s.Done > 0) {
		return 0
	}
	return min(s.Done, 1)
}

// left is the time left as text of one width up to a hundred minutes, so that a bar behind it stands still.
func (s Step) left() string {
	if s.Left < 0 {
		return "--:-- left"
	}
	left := s.Left.Round(time.Second)
	return fmt.Sprintf("%2d:%02d left", int(left.Minutes()), int(left.Seconds())%60)
}

// bar is a step as a line that is drawn again, one column short of the terminal: in the last one some would wrap.
func (t Terminal) bar(s Step) string {
	const full, empty = "━", "─"
	text := " " + s.figures(t.Text(s.Text))
	// The bar takes what the text leaves, in steps, so that it stands still while the text changes a little.
	columns := max(min(max(t.Width/4, 8), 40), (t.Width-1-Columns(text))/barStep*barStep)
	filled := int(s.share() * float64(columns))
	done, rest := strings.Repeat(full, filled), strings.Repeat(empty, columns-filled)
	if !t.Unicode {
		done, rest = strings.Repeat("#", filled), strings.Repeat("-", columns-filled)
	}
	text = Shorten(text, max(t.Width-1-columns, 0))
	if !t.Unicode {
		text = ASCII(text)
	}
	return t.Paint(Green, done) + t.Paint(Dim, rest) + text
}
