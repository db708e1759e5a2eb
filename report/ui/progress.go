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

// Progress shows how far a run is: a bar with the time left on a terminal that a person looks at, with lines below it that are drawn again
// with it, and a plain line now and then elsewhere. Nothing of the bar and its lines is left at the end. It is made for standard error and may be called from several goroutines; Update costs next to nothing
// when it is too early to show anything. A nil Progress shows nothing.
type Progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal Terminal
	now      func() time.Time
	last     time.Time // of what was shown
	drawn    int       // lines that stand there: the bar, and those below it; the cursor is in the last
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
	// Below makes the lines below the bar on a terminal, at most so many and each narrower than the terminal; nil is none. It is called only
	// when they are drawn.
	Below func(t Terminal, most int) []string
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
	p.draw(s)
}

// blockMost is how many lines are drawn again at most.
const blockMost = 12

// draw draws a step over what stands there, in one write.
func (p *Progress) draw(s Step) {
	lines := []string{p.terminal.bar(s)}
	if s.Below != nil {
		most := blockMost - 1
		if h := p.terminal.Height; h > 0 {
			most = min(most, h-2) // the line of the cursor, and one of what was there before
		}
		lines = append(lines, s.Below(p.terminal, max(most, 0))...)
	}
	p.show(p.wiped() + strings.Join(lines, "\n\r"))
	p.drawn = len(lines)
}

// wiped is what wipes the bar and its lines off, and leaves the cursor where the bar began.
func (p *Progress) wiped() string {
	if p.drawn <= 1 {
		return "\r\x1b[2K"
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", p.drawn-1)
}

// Tell prints a line where lines are shown; on a terminal the lines below the bar say the same.
func (p *Progress) Tell(text string) {
	if p != nil && !p.terminal.Interactive {
		p.Note(text)
	}
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

// clear removes the bar and its lines; the next step draws it again at once.
func (p *Progress) clear() {
	if p.drawn > 0 {
		p.show(p.wiped())
		p.drawn, p.last = 0, time.Time{}
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
