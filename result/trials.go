package result

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"os"
)

// Trials are the trials of a run, in the order of its journal. They may take more memory than there is: each is read when it is asked
// for. Several goroutines may ask at a time.
type Trials interface {
	Len() int
	// Trial reads one, which the caller does not change. One that can't be read any more has failed, and says why.
	Trial(i int) *Trial
}

// Each reads one trial after the other; nil has none.
func Each(trials Trials) iter.Seq[*Trial] {
	return func(yield func(*Trial) bool) {
		for i := 0; trials != nil && i < trials.Len(); i++ {
			if !yield(trials.Trial(i)) {
				return
			}
		}
	}
}

// All reads all trials.
func All(trials Trials) []Trial {
	list := make([]Trial, 0, trials.Len())
	for t := range Each(trials) {
		list = append(list, *t)
	}
	return list
}

// List are trials in memory.
type List []Trial

// Len implements Trials.
func (l List) Len() int { return len(l) }

// Trial implements Trials.
func (l List) Trial(i int) *Trial { return &l[i] }

// Stored are the trials of a journal that stay on disk. They can be read for as long as their folder is open.
type Stored struct {
	// Torn and Counted are as in Contents.
	Torn    string
	Counted int
	file    *os.File
	name    string
	lines   []storedLine
	columns []string // columnNames
}

// storedLine is where a trial is in its journal.
type storedLine struct {
	cell  string
	build int
	at    int64
	size  int
}

// Stored reads the journal, as Trials does, and leaves its trials there. Each is shown to see with its place in the journal, from 0, while
// others are being shown to it; see must not change it, and must copy what it keeps of its bursts.
func (f *Files) Stored(see func(i int, t *Trial)) (*Stored, error) {
	file, err := f.Open(TrialsFile)
	if err != nil {
		return nil, unreadable(f.path, f, err)
	}
	f.reading = append(f.reading, file)
	s := &Stored{file: file, name: f.name(TrialsFile), Counted: f.counted()}
	at := int64(0)
	lines := newLines(file, s.name)
	lines.see, s.columns = see, lines.columns
	_, s.Torn, err = lines.each(func(l *journalLine) {
		s.lines = append(s.lines, storedLine{l.trial.Cell, l.trial.Build, at, len(l.text)})
		at += int64(len(l.text))
	})
	if err != nil {
		return nil, f.newer(err)
	}
	return s, nil
}

// Len implements Trials.
func (s *Stored) Len() int { return len(s.lines) }

// Trial implements Trials.
func (s *Stored) Trial(i int) *Trial {
	line := s.lines[i]
	text := make([]byte, line.size)
	var t Trial
	_, err := io.ReadFull(io.NewSectionReader(s.file, line.at, int64(line.size)), text)
	if err == nil {
		text = bytes.TrimSuffix(text, []byte("\n"))
		d := lineDecoder{columns: s.columns}
		err = d.read(&t, text, checkSeal(text) == nil)
	}
	if err != nil {
		return &Trial{Schema: Schema, Cell: line.cell, Role: RoleCell, Build: line.build, Failed: fmt.Sprintf("read it from %s again: %v", s.name, err)}
	}
	return &t
}

var (
	_ Trials = List(nil)
	_ Trials = (*Stored)(nil)
)
