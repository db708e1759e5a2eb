// Package result holds the records of a run: cells, trials, deltas, the environment, and the journal that keeps them on disk.
package result

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
)

// ID names the trial within its run: its cell and its build.
func (t Trial) ID() string { return fmt.Sprintf("%s#%d", t.Cell, t.Build) }

// Measured says whether the trial gave anything.
func (t Trial) Measured() bool { return t.Failed == "" }

// validate returns what makes the trial useless as a record, nil if nothing does.
func (t Trial) validate() error {
	switch {
	case t.Schema != Schema:
		return fmt.Errorf("its schema is %d, not %d", t.Schema, Schema)
	case t.Cell == "":
		return errors.New("it names no cell")
	case t.Role != RoleCell && t.Role != RoleBaseline && t.Role != RoleControl && t.Role != RoleReference:
		return fmt.Errorf("its role is %q, not %q, %q, %q or %q", t.Role, RoleCell, RoleBaseline, RoleControl, RoleReference)
	case t.Build < 0:
		return fmt.Errorf("its build is %d, below 0", t.Build)
	}
	return t.Bursts.validate()
}

// validate returns an error if the columns don't belong together.
func (b Bursts) validate() error {
	n := len(b.Round)
	columns := []struct {
		name     string
		rows     int
		optional bool
	}{
		{"start_ns", len(b.Start), false},
		{"duration_ns", len(b.Duration), false},
		{"span_ns", len(b.Span), true},
		{"transactions", len(b.Transactions), true},
		{"lost", len(b.Lost), true},
		{"min", len(b.Min), true},
		{"p50", len(b.P50), true},
		{"p90", len(b.P90), true},
		{"p99", len(b.P99), true},
		{"mean", len(b.Mean), true},
		{"max", len(b.Max), true},
		{"split", len(b.Split), true},
		{"sweep_level", len(b.SweepLevel), true},
		{"throughput", len(b.Throughput), true},
		{"disturbed", len(b.Disturbed), true},
		{"pair", len(b.Pair), true},
	}
	for _, column := range columns {
		if column.rows != n && (column.rows != 0 || !column.optional) {
			return fmt.Errorf("its bursts have %d rounds but %d entries of %s", n, column.rows, column.name)
		}
	}
	return nil
}

// complete returns b with empty instead of missing columns where every trial has one, so that they are never null in JSON.
func (b Bursts) complete() Bursts {
	b.Round, b.Start, b.Duration = orEmpty(b.Round), orEmpty(b.Start), orEmpty(b.Duration)
	return b
}

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

// Drop is how many packets were dropped in one place of a testbed.
type Drop struct {
	// Device is where: "node0/eth0". Queue is the queueing discipline that did it: "netem"; "" is the device itself.
	Device  string `json:"device"`
	Queue   string `json:"queue,omitempty"`
	Packets uint64 `json:"packets"`
}

// Exact says of a run that it was measured in guests whose clock counts instructions: each build is a guest of its own,
// whose seed decides where the kernel and the programs lie in memory and how their hash tables are salted. The spread over
// seeds is what the interval of a delta is.
type Exact struct {
	// Seeds are the seeds of the guests, in the order of builds.
	Seeds []uint64 `json:"seeds"`
	// PerInstruction is how many nanoseconds the guest's clock goes on with each instruction.
	PerInstruction float64 `json:"ns_per_instruction"`
	// Transactions is how many were measured of each cell in each build.
	Transactions int `json:"transactions"`
	// Emulator, Processor and Image name what the count depends on: QEMU's version, the processor that it emulates, and the
	// guest's image (a hash of all that is in it).
	Emulator  string `json:"emulator"`
	Processor string `json:"processor"`
	Image     string `json:"image"`
}

// ExactTrial is what a trial counted, as medians over its transactions.
type ExactTrial struct {
	Seed uint64 `json:"seed"`
	// Request and Response are the instructions from before a message is sent until the other end has all of it; RoundTrip
	// is both.
	Request   float64 `json:"request_instructions"`
	Response  float64 `json:"response_instructions"`
	RoundTrip float64 `json:"round_trip_instructions"`
}

// ExactMargin is within how much two exact figures count as the same, as a share: above what seeds differ by, and below what
// a single firewall rule costs.
const ExactMargin = 0.001

// ExactComparison compares this run, which measured time, with an exact run of the same networks.
type ExactComparison struct {
	// Run names the exact run; Exact is how it counted.
	Run      string         `json:"run"`
	Exact    Exact          `json:"exact"`
	Settings []ExactSetting `json:"settings"`
	// Correlation is the median of the settings' rank correlations; left out where no setting has one.
	Correlation *float64 `json:"rank_correlation,omitempty"`
}

// ExactSetting is one setting that both runs have, in the headline metric.
type ExactSetting struct {
	Setting
	Baseline string         `json:"baseline"`
	Metric   string         `json:"metric"`
	Networks []ExactNetwork `json:"networks"`
	// Correlation is Spearman's, from -1 to 1, over the networks; left out with fewer than three.
	Correlation *float64 `json:"rank_correlation,omitempty"`
}

// ExactNetwork is a network in both runs: its ratio to the baseline by time and by instructions, and its place among the
// networks of the setting, the cheapest first; networks of equal cost share a place.
type ExactNetwork struct {
	Network    string  `json:"network"`
	Native     float64 `json:"native_ratio"`
	Exact      float64 `json:"exact_ratio"`
	NativeRank float64 `json:"native_rank"`
	ExactRank  float64 `json:"exact_rank"`
	// NativeVerdict and ExactVerdict are those on its deltas.
	NativeVerdict string `json:"native_verdict"`
	ExactVerdict  string `json:"exact_verdict"`
	// Request and Response are how many instructions it adds to either direction.
	Request  float64 `json:"request_instructions"`
	Response float64 `json:"response_instructions"`
}

// columnNames are the names of the columns of bursts, in the order in which they are written.
func columnNames() []string {
	var names []string
	for field := range reflect.TypeFor[Bursts]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// readColumns decodes bursts as encodeTrial writes them, from behind their first brace: columns are nearly all of a journal, and need a
// tenth of the time that a decoder takes that has to be ready for anything. The values take the place of
// room's. It returns what follows; false for all that is written otherwise.
func readColumns(text []byte, names []string, room *Bursts) (b Bursts, rest []byte, ok bool) {
	columns, rooms := reflect.ValueOf(&b).Elem(), reflect.ValueOf(room).Elem()
	for i, name := range names {
		own := len(name) + len(`"":[`)
		if len(text) <= own || text[0] != '"' || string(text[1:1+len(name)]) != name || string(text[1+len(name):own]) != `":[` {
			continue // left out
		}
		ok = false
		switch column := rooms.Field(i).Addr().Interface().(type) {
		case *[]int:
			text, ok = readColumn(column, text[own:], readNumber[int])
		case *[]int64:
			text, ok = readColumn(column, text[own:], readNumber[int64])
		case *[]float64:
			text, ok = readColumn(column, text[own:], readFloat)
		case *[]string:
			text, ok = readColumn(column, text[own:], readWord)
		}
		if column := rooms.Field(i); column.Len() > 0 {
			columns.Field(i).Set(column)
		}
		switch {
		case !ok || len(text) == 0:
			return Bursts{}, nil, false
		case text[0] == '}':
			return b.complete(), text[1:], true
		case text[0] == ',':
			text = text[1:]
		}
	}
	return Bursts{}, nil, false
}

// readColumn reads the values of an array, from behind its bracket, one by one, and takes no more room than they do.
func readColumn[T any](to *[]T, text []byte, one func([]byte) (T, []byte, bool)) (rest []byte, ok bool) {
	column := (*to)[:0]
	end := bytes.IndexByte(text, ']')
	if *to = column; end <= 0 {
		return text[end+1:], end == 0
	}
	if n := 1 + bytes.Count(text[:end], []byte(",")); n > cap(column) {
		column = make([]T, 0, n)
	}
	for {
		value, rest, ok := one(text)
		if !ok || len(rest) == 0 {
			return nil, false
		}
		column = append(column, value)
		switch text = rest[1:]; rest[0] {
		case ']':
			*to = column
			return text, true
		case ',':
		default:
			return nil, false
		}
	}
}

// readNumber reads a whole number of up to 18 digits.
func readNumber[T int | int64](text []byte) (n T, rest []byte, ok bool) {
	digits := bytes.TrimPrefix(text, []byte("-"))
	at := 0
	for ; at < len(digits) && at < 19 && digits[at]-'0' <= 9; at++ {
		n = 10*n + T(digits[at]-'0')
	}
	if len(digits) < len(text) {
		n = -n
	}
	return n, digits[at:], at > 0 && at < 19
}

// exactDigits is how many decimal digits a float64 holds, whatever they are: such a number over a power of ten is rounded once, as it
// should be.
const exactDigits = 15

// readFloat reads a number.
func readFloat(text []byte) (x float64, rest []byte, ok bool) {
	mantissa, digits, fraction := int64(0), 0, 0
	at, plain := 0, true
	for ; at < len(text) && text[at] != ',' && text[at] != ']'; at++ {
		switch c := text[at]; {
		case c-'0' <= 9:
			if digits++; digits <= exactDigits {
				mantissa = 10*mantissa + int64(c-'0')
			}
			if fraction > 0 {
				fraction++
			}
		case c == '.' && fraction == 0:
			fraction = 1
		case c == '-' && at == 0:
		case c == 'e', c == 'E', c == '-', c == '+':
			plain = false
		default:
			return 0, nil, false
		}
	}
	if !plain || digits > exactDigits || digits == 0 {
		x, err := strconv.ParseFloat(string(text[:at]), 64)
		return x, text[at:], err == nil
	}
	x = float64(mantissa) / math.Pow10(max(fraction-1, 0))
	if text[0] == '-' {
		x = -x
	}
	return x, text[at:], true
}

// readWord reads a text without anything that JSON writes otherwise than it is.
func readWord(text []byte) (word string, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", nil, false
	}
	end := bytes.IndexByte(text[1:], '"')
	if end < 0 || bytes.IndexByte(text[1:1+end], '\\') >= 0 {
		return "", nil, false
	}
	return string(text[1 : 1+end]), text[end+2:], true
}
