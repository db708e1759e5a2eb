package sockperf

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// colours are what sockperf adds for terminals, whether there is one or not.
const colours = `\x1b\[[0-9;]*m`

// Is says whether a text looks like what sockperf prints or logs.
func Is(text []byte) bool {
	head := text[:min(len(text), 4<<10)]
	return bytes.Contains(head, []byte("sockperf: ")) && (bytes.Contains(head, []byte("== version")) || bytes.Contains(head, []byte("[Total Run]")))
}

// Parse reads what a client of sockperf has printed, its full log, or the one after the other. Errors in its form have a place
// (tool.PlaceError).
func Parse(text []byte) (Report, error) {
	p := parser{colours: regexp.MustCompile(colours), figures: figures(), half: true}
	for number := 1; len(text) > 0; number++ {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if err := p.line(string(bytes.TrimRight(line, "\r"))); err != nil {
			return Report{}, &tool.PlaceError{Line: number, Err: err}
		}
	}
	p.double()
	return p.report, p.report.validate()
}

// parser is a reading under way.
type parser struct {
	report  Report
	colours *regexp.Regexp
	figures []figure
	log     bool // the lines are messages
	half    bool // times printed are of half a round trip
	halfLog bool // those of the log are
}

// line reads one line; what it does not know is no concern of its.
func (p *parser) line(line string) error {
	if strings.HasPrefix(line, "packet, txTime(sec)") {
		p.log, p.halfLog = true, !strings.Contains(line, "rtt(usec)")
		return nil
	}
	if strings.HasPrefix(line, "------") {
		p.log = false
	}
	if p.log {
		return p.message(line)
	}
	line = p.colours.ReplaceAllString(line, "")
	for _, f := range p.figures {
		if m := f.form.FindStringSubmatch(line); m != nil {
			return f.take(p, m)
		}
	}
	return nil
}

// message reads a line of the log.
func (p *parser) message(line string) error {
	fields := strings.Split(line, ",")
	if len(fields) != 4 {
		return fmt.Errorf("%.60q is no line of sockperf's log, which has four columns", line)
	}
	at, err := tool.Number(strings.TrimSpace(fields[1]))
	if err != nil {
		return err
	}
	micros, err := tool.Number(strings.TrimSpace(fields[3]))
	if err != nil {
		return err
	}
	if micros < 0 {
		return fmt.Errorf("a message took %g µs: that can't be", micros)
	}
	p.report.Messages = append(p.report.Messages, Message{At: at, RoundTrip: micros * 1e3})
	return nil
}

// double makes round trips of halves.
func (p *parser) double() {
	r := &p.report
	if p.half {
		r.Mean, r.Min, r.Max = 2*r.Mean, 2*r.Min, 2*r.Max
		for i := range r.Percentiles {
			r.Percentiles[i].Value *= 2
		}
	}
	if p.halfLog {
		for i := range r.Messages {
			r.Messages[i].RoundTrip *= 2
		}
	}
}

// figure is a kind of line.
type figure struct {
	form *regexp.Regexp
	take func(p *parser, m []string) error
}

// number is the form of a figure in a line.
const number = `\s*([-+0-9.eE]+)`

// figures are all lines that are read.
func figures() []figure {
	form := func(parts ...string) *regexp.Regexp { return regexp.MustCompile(strings.Join(parts, number)) }
	micros := func(to func(*Report) *float64) func(*parser, []string) error {
		return func(p *parser, m []string) error {
			v, err := tool.Number(m[1])
			*to(&p.report) = v * 1e3
			return err
		}
	}
	return []figure{
		{regexp.MustCompile(`^sockperf: == version #(\S+) ==`), func(p *parser, m []string) error { p.report.Version = m[1]; return nil }},
		{regexp.MustCompile(`IP = \S+\s+PORT =\s*\d+ # (TCP|UDP)`), func(p *parser, m []string) error { p.report.Protocol = m[1]; return nil }},
		{form(`\[Valid Duration\] RunTime=`, ` sec; SentMessages=`, `; ReceivedMessages=`, ``), valid},
		{regexp.MustCompile(`avg-(rtt|lat(?:ency)?)=\s*([-+0-9.eE]+)`), mean},
		{form(`# dropped messages =`, `; # duplicated messages =`, `; # out-of-order messages =`, ``), lost},
		{form(`---> <MAX> observation =`, ``), micros(func(r *Report) *float64 { return &r.Max })},
		{form(`---> <MIN> observation =`, ``), micros(func(r *Report) *float64 { return &r.Min })},
		{form(`---> percentile`, ` =`, ``), percentile},
		{regexp.MustCompile(`following parameters:(.*)`), parameters},
		{regexp.MustCompile(`Message Rate is .* \[msg/sec\]`), func(*parser, []string) error {
			return errors.New("sockperf measured how fast it can send (throughput), not how long an answer takes; run its ping-pong or under-load")
		}},
		{regexp.MustCompile(`^sockperf: ERROR: (.*)`), func(_ *parser, m []string) error { return fmt.Errorf("%w: %s", ErrNothing, m[1]) }},
	}
}

// all reads the figures of a line.
func all(m []string) ([]float64, error) {
	var list []float64
	for _, text := range m[1:] {
		v, err := tool.Number(text)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func valid(p *parser, m []string) error {
	v, err := all(m)
	if err != nil {
		return err
	}
	if !(v[0] > 0 && v[0] < 1e9) {
		return fmt.Errorf("a run of %g seconds can't be", v[0])
	}
	p.report.Duration, p.report.Sent, p.report.Received = time.Duration(v[0]*1e9), int64(v[1]), int64(v[2])
	return nil
}

func mean(p *parser, m []string) error {
	v, err := tool.Number(m[2])
	p.report.Mean, p.half = v*1e3, m[1] != "rtt"
	return err
}

func lost(p *parser, m []string) error {
	v, err := all(m)
	if err != nil {
		return err
	}
	p.report.Dropped, p.report.Duplicated, p.report.OutOfOrder = int64(v[0]), int64(v[1]), int64(v[2])
	return nil
}

func percentile(p *parser, m []string) error {
	v, err := all(m)
	if err != nil {
		return err
	}
	found := Percentile{Percent: v[0], Value: v[1] * 1e3}
	if _, known := p.report.Percentile(found.Percent); !known { // the log repeats what was printed
		p.report.Percentiles = append(p.report.Percentiles, found)
	}
	return nil
}

// fastest is the rate that stands for none (--mps=max).
const fastest = 600_000

// parameters reads how sockperf was called, as its log says it.
func parameters(p *parser, m []string) error {
	for _, field := range strings.Fields(m[1]) {
		key, value, _ := strings.Cut(field, "=")
		if key != "--msg-size" && key != "--mps" {
			continue
		}
		v, err := tool.Number(value)
		switch {
		case err != nil:
			return err
		case key == "--msg-size":
			p.report.Message = unit.Bytes(v)
		case v < fastest:
			p.report.Rate = v
		}
	}
	return nil
}
