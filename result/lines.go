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
