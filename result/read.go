package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Schema is the version of the records that this program writes, and the newest that it reads. Fields may be added
// within a version; a change of meaning needs a new one.
const Schema = 1

// Contents is what a journal holds.
type Contents struct {
	Trials []Trial
	// Size is the number of bytes up to the end of the last whole line.
	Size int64
	// Torn describes the torn last line that was left out, "" if there was none.
	Torn string
	// Counted is how many trials the journal has held, 0 where that is not known.
	Counted int
}

// Notes are what a reader of the trials must be told of their journal, whose run's record may be of a time when it held more.
func (c Contents) Notes(run Run) []string { return journalNotes(run, len(c.Trials), c.Counted, c.Torn) }

// Notes say the same as Contents.Notes.
func (s *Stored) Notes(run Run) []string { return journalNotes(run, s.Len(), s.Counted, s.Torn) }

func journalNotes(run Run, held, counted int, torn string) []string {
	var notes []string
	if torn != "" {
		notes = append(notes, torn)
	}
	had, told := run.Trials, ResultFile
	if counted > had {
		had, told = counted, CountFile
	}
	if lost := had - held; lost > 0 && !(lost == 1 && torn != "") {
		notes = append(notes, fmt.Sprintf("%s holds %d trials, and held %d when %s was written: it was cut short, and the rest is lost",
			TrialsFile, held, had, told))
	}
	return notes
}

// CorruptError says that a record can't be read though it was once written whole.
type CorruptError struct {
	File   string
	Line   int // from 1; 0 if the file is not made of lines
	Reason error
}

// Error implements error.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s: corrupt: %v; restore the file from a copy, or remove the line to go on without that trial", place(e.File, e.Line), e.Reason)
}

// place is a file, with the line if it has lines.
func place(file string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", file, line)
	}
	return file
}

// Unwrap returns the reason.
func (e *CorruptError) Unwrap() error { return e.Reason }

// SchemaError says that a record was written by a newer netdelta.
type SchemaError struct {
	File       string
	Line       int // from 1; 0 if the file is not made of lines
	Have, Want int // version of the record, and the newest version that is understood
	// Writer is the version of the netdelta that wrote the folder, "" if it is not known.
	Writer string
}

// Error implements error.
func (e *SchemaError) Error() string {
	newer := "use a newer netdelta"
	if e.Writer != "" {
		newer += fmt.Sprintf(" (%s wrote it)", e.Writer)
	}
	return fmt.Sprintf("%s: written with schema %d, but this netdelta understands schemas up to %d; %s", place(e.File, e.Line), e.Have, e.Want, newer)
}

// ReadJournal reads all trials of a journal; name is its name in errors. A last line without line feed, or one that is
// not JSON, is what a write that was cut short leaves: it is left out and described in Contents.Torn. Any other line that
// is not a trial as it was written is a *CorruptError, and one of a newer schema a *SchemaError.
func ReadJournal(r io.Reader, name string) (Contents, error) {
	var contents Contents
	lines := newLines(r, name)
	var err error
	contents.Size, contents.Torn, err = lines.each(func(l *journalLine) { contents.Trials = append(contents.Trials, l.trial) })
	if err != nil {
		return Contents{}, err
	}
	return contents, nil
}

// each calls keep with the lines that hold a trial, in their order. size and torn are as in Contents.
func (l *journalLines) each(keep func(*journalLine)) (size int64, torn string, _ error) {
	for {
		batch, err := l.next()
		if err != nil || len(batch) == 0 {
			return size, "", err
		}
		l.decode(batch)
		for i := range batch {
			line := &batch[i]
			last := i == len(batch)-1 && atEnd(l.from)
			switch {
			case line.cut:
				return size, fmt.Sprintf("%s:%d: the last line is torn (%d bytes without a line feed) and was dropped", l.name, line.number, len(line.text)), nil
			case line.err != nil && last && !json.Valid(line.text):
				return size, fmt.Sprintf("%s:%d: the last line is torn (%d bytes that are not JSON) and was dropped", l.name, line.number, len(line.text)), nil
			case line.err != nil:
				return size, "", line.err
			}
			keep(line)
			size += int64(len(line.text))
		}
	}
}

// readLine appends what comes up to the next line feed, and the line feed, to a line. What is no journal may have none for gigabytes.
func readLine(r *bufio.Reader, line []byte) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > int(lineMost):
			return nil, fmt.Errorf("a line has more than %v: this is no journal", lineMost)
		}
	}
}

// atEnd reports whether nothing follows.
func atEnd(r *bufio.Reader) bool {
	_, err := r.Peek(1)
	return errors.Is(err, io.EOF)
}

// schemaOf returns the version of a record without looking at the rest of it, which another version may have changed.
func schemaOf(record []byte) (int, error) {
	if bytes.HasPrefix(record, fmt.Appendf(nil, `{"schema":%d,`, Schema)) || bytes.HasPrefix(record, fmt.Appendf(nil, "{\n  \"schema\": %d,", Schema)) {
		return Schema, nil // as each line of a journal and each record begins, which need not be decoded twice then
	}
	var header struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(record, &header); err != nil {
		return 0, err
	}
	if header.Schema == nil || *header.Schema < 1 {
		return 0, errors.New(`it has no "schema" of 1 or more, which every netdelta that was released has written`)
	}
	return *header.Schema, nil
}
