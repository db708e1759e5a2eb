package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"sync"

	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
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

// linesAtOnce is how many lines of a journal are decoded together: enough to keep all processors busy, few enough to hold in memory
// next to their trials.
const linesAtOnce = 128

// journalLine is a line of a journal with its line feed, and what it holds.
type journalLine struct {
	text   []byte
	number int  // from 1
	cut    bool // the journal ends in it, without a line feed
	sealed bool // it has a checksum, and is as it was written
	trial  Trial
	err    error // why it holds no trial
}

// journalLines reads a journal.
type journalLines struct {
	from    *bufio.Reader
	name    string   // in errors
	read    int      // lines
	sealed  bool     // a line has a checksum: netdelta may have resumed a run that one without checksums began
	columns []string // columnNames
	batch   []journalLine
	// see is given each trial with its place, from 0, by several goroutines at once, and the trial's bursts for as long as it looks at them;
	// nil for nothing.
	see func(i int, t *Trial)
}

// newLines reads a journal, whose name is for errors.
func newLines(from io.Reader, name string) journalLines {
	return journalLines{from: bufio.NewReaderSize(from, 1<<16), name: name, columns: columnNames(), batch: make([]journalLine, 0, linesAtOnce)}
}

// next returns the next lines, checked but not yet decoded, in the place of the last ones; none at the end. The error is the reader's.
func (l *journalLines) next() ([]journalLine, error) {
	batch := l.batch[:0]
	for len(batch) < linesAtOnce {
		text, err := readLine(l.from, batch[:len(batch)+1][len(batch)].text[:0])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return nil, fmt.Errorf("read %s: %w", place(l.name, l.read+1), err)
		}
		if ended && len(text) == 0 {
			break
		}
		l.read++
		batch = append(batch, journalLine{text: text, number: l.read, cut: ended})
		if ended {
			break
		}
		line := &batch[len(batch)-1]
		line.err = l.check(line)
	}
	l.batch = batch
	return batch, nil
}

// check holds a line against its version and its checksum.
func (l *journalLines) check(line *journalLine) error {
	corrupt := func(err error) error { return &CorruptError{File: l.name, Line: line.number, Reason: err} }
	text := bytes.TrimSuffix(line.text, []byte("\n"))
	if len(bytes.TrimSpace(text)) == 0 {
		return corrupt(errors.New("the line is empty"))
	}
	version, err := schemaOf(text)
	if err != nil {
		return corrupt(err)
	}
	if version > Schema {
		return &SchemaError{File: l.name, Line: line.number, Have: version, Want: Schema}
	}
	switch err := checkSeal(text); {
	case err == nil:
		l.sealed, line.sealed = true, true
	case !errors.Is(err, errUnsealed):
		return corrupt(err)
	case l.sealed:
		return corrupt(fmt.Errorf("%w, and lines before it have one", err))
	}
	return nil
}

// decode reads the trials of lines on all processors.
func (l *journalLines) decode(batch []journalLine) {
	var wait sync.WaitGroup
	for part := range slices.Chunk(batch, 1+len(batch)/runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			d := lineDecoder{columns: l.columns}
			for i := range part {
				line := &part[i]
				if line.err != nil || line.cut {
					continue
				}
				if err := d.read(&line.trial, bytes.TrimSuffix(line.text, []byte("\n")), line.sealed); err != nil {
					line.err = &CorruptError{File: l.name, Line: line.number, Reason: err}
				} else if l.see != nil {
					l.see(line.number-1, &line.trial)
					line.trial.Bursts = Bursts{} // the next line's take their place
					continue
				}
				d.bursts = Bursts{} // the trial keeps them
			}
		})
	}
	wait.Wait()
}

// lineDecoder decodes trials. What that takes is kept for the next one.
type lineDecoder struct {
	columns []string // columnNames
	bursts  Bursts   // of the last trial
	others  []byte   // a trial's text without its bursts
}

// read decodes a trial and checks it. What netdelta wrote, as a checksum that holds shows (sealed), takes a decoder of a tenth of the time;
// all else, and what that decoder refuses, takes the one whose errors readers know.
func (d *lineDecoder) read(t *Trial, text []byte, sealed bool) error {
	if sealed && d.readSealed(t, text) {
		return t.validate()
	}
	*t = Trial{}
	if err := json.Unmarshal(text, t); err != nil {
		return err
	}
	t.Bursts = t.Bursts.exact().complete()
	return t.validate()
}

// readSealed decodes a trial as encodeTrial writes it; false if it is written otherwise.
func (d *lineDecoder) readSealed(t *Trial, text []byte) bool {
	const key = `"bursts":{` // in a text of the trial's, the quotes would have backslashes before them
	before, after, found := bytes.Cut(text, []byte(key))
	bursts, after, ok := readColumns(after, d.columns, &d.bursts)
	if !found || !ok {
		return false
	}
	d.others = append(append(append(d.others[:0], before...), key+"}"...), after...)
	err := jsonv2.Unmarshal(d.others, t, jsonv1.FormatDurationAsNano(true))
	t.Bursts = bursts
	return err == nil
}

// exact copies the columns without the room that decoding leaves at their ends: a third of the memory of a large run. Columns without
// entries are left out.
func (b Bursts) exact() Bursts {
	var e Bursts
	from, to := reflect.ValueOf(&b).Elem(), reflect.ValueOf(&e).Elem()
	for i := range from.NumField() {
		if c := from.Field(i); c.Len() > 0 {
			column := reflect.MakeSlice(c.Type(), c.Len(), c.Len())
			reflect.Copy(column, c)
			to.Field(i).Set(column)
		}
	}
	return e
}
