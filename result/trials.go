package result

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// Trials are the trials of a run, in the order of its journal. They may take more memory than there is: each is read when it is asked
// for. Several goroutines may ask at a time.
type Trials interface {
	Len() int
	// Key tells a trial without reading it.
	Key(i int) TrialKey
	// Trial reads one, which the caller does not change. One that can't be read any more has failed, and says why.
	Trial(i int) *Trial
}

// TrialKey is what tells a trial from all others: one that is in a journal twice has the same.
type TrialKey struct {
	Cell    string
	Build   int
	Started int64 // nanoseconds of Unix time
}

func (t *Trial) key() TrialKey { return TrialKey{t.Cell, t.Build, t.Started.UnixNano()} }

// List are trials in memory.
type List []Trial

// Len implements Trials.
func (l List) Len() int { return len(l) }

// Key implements Trials.
func (l List) Key(i int) TrialKey { return l[i].key() }

// Trial implements Trials.
func (l List) Trial(i int) *Trial { return &l[i] }

// Stored are the trials of a journal that stay on disk. They are to be closed.
type Stored struct {
	// Torn and Counted are as in Contents.
	Torn    string
	Counted int
	file    *os.File
	name    string
	lines   []storedLine
	rooms   rooms
}

// storedLine is where a trial is in its journal.
type storedLine struct {
	key  TrialKey
	at   int64
	size int
}

// Stored looks through the journal, as Trials does, and leaves its trials there.
func (f *Files) Stored() (*Stored, error) {
	file, err := f.Open(TrialsFile)
	if err != nil {
		return nil, unreadable(f.path, f, err)
	}
	s := &Stored{file: file, name: f.name(TrialsFile), Counted: f.counted()}
	cells := map[string]string{} // the same text for all trials of a cell
	at := int64(0)
	lines := journalLines{from: bufio.NewReaderSize(file, 1<<16), name: s.name, keys: true}
	_, s.Torn, err = lines.each(func(l *journalLine) {
		if known, ok := cells[l.key.Cell]; ok {
			l.key.Cell = known
		}
		cells[l.key.Cell] = l.key.Cell
		s.lines = append(s.lines, storedLine{l.key, at, len(l.text)})
		at += int64(len(l.text))
	})
	if err != nil {
		return nil, errors.Join(f.newer(err), file.Close())
	}
	return s, nil
}

// Len implements Trials.
func (s *Stored) Len() int { return len(s.lines) }

// Key implements Trials.
func (s *Stored) Key(i int) TrialKey { return s.lines[i].key }

// Trial implements Trials.
func (s *Stored) Trial(i int) *Trial {
	line := s.lines[i]
	text := make([]byte, line.size)
	var t Trial
	_, err := io.ReadFull(io.NewSectionReader(s.file, line.at, int64(line.size)), text)
	if err == nil {
		text = bytes.TrimSuffix(text, []byte("\n"))
		err = t.read(text, checkSeal(text) == nil, &s.rooms)
	}
	if err != nil {
		return &Trial{Schema: Schema, Cell: line.key.Cell, Role: RoleCell, Build: line.key.Build, Failed: fmt.Sprintf("read it from %s again: %v", s.name, err)}
	}
	return &t
}

// Close gives the journal back.
func (s *Stored) Close() error { return s.file.Close() }

var (
	_ Trials    = List(nil)
	_ Trials    = (*Stored)(nil)
	_ io.Closer = (*Stored)(nil)
)
