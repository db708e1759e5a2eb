// Package sockperf knows the program sockperf: how to call its ping-pong, and how to read what it prints and its log of all
// messages.
package sockperf

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/gather"
	"netdelta/unit"
	"netdelta/workload/tool"
)

// Program is sockperf's name, on PATH and as a package.
const Program = "sockperf"

// The protocols that sockperf tells.
const (
	TCP = "TCP"
	UDP = "UDP"
)

// Report is what one test of sockperf measured: what it printed, its full log, or both in one text. Times are of whole round
// trips, in nanoseconds, also where sockperf shows the half of them.
type Report struct {
	Version  string
	Protocol string     // TCP, UDP or "": the log does not say it
	Message  unit.Bytes // 0 where it does not say it: only the log does
	// Rate is what was asked for in messages per second (under-load); 0 is one after another, or not said.
	Rate float64
	// Duration is the length of the part that counts: without sockperf's own warm-up at the start, and its end.
	Duration                time.Duration
	Sent, Received, Dropped int64
	Mean, Min, Max          float64
	// Percentiles are those that it prints, the highest first.
	Percentiles []Percentile
	// Messages are all of the log, in the order of sending; none without it.
	Messages []Message
}

// Percentile is a point of the distribution.
type Percentile struct{ Percent, Value float64 }

// Message is a line of the log: when it was sent, in seconds of sockperf's clock, and its round trip in nanoseconds.
type Message struct{ At, RoundTrip float64 }

// ErrNothing is the error of a test that measured nothing.
var ErrNothing = errors.New("sockperf has measured nothing")

// ErrSilent is matched too where messages were sent and none came back.
var ErrSilent = errors.New("no message came back; is the server reached?")

// Percentile is the value of a percentile that was printed.
func (r Report) Percentile(percent float64) (value float64, known bool) {
	p, known := gather.First(r.Percentiles, func(p Percentile) bool { return p.Percent == percent })
	return p.Value, known
}

// validate refuses figures that nothing can have.
func (r Report) validate() error {
	switch {
	case r.Received == 0 && len(r.Messages) == 0:
		return fmt.Errorf("%w: %w", ErrNothing, ErrSilent)
	case r.Sent < 0 || r.Received < 0 || r.Dropped < 0 || r.Duration <= 0:
		return fmt.Errorf("sockperf reports %d messages sent and %d received in %v: that can't be", r.Sent, r.Received, r.Duration)
	}
	return nil
}

// Least is the smallest message that sockperf sends.
const Least = 14 * unit.Byte

// Test is a test to run.
type Test struct {
	Server   netip.AddrPort // of IPv4: sockperf knows IPv6 only since 3.8
	TCP      bool
	Message  unit.Bytes
	Nagle    bool          // leaves TCP_NODELAY off
	Duration time.Duration // whole seconds; sockperf leaves the first 400 ms and the last 50 out
	Log      string        // a file for the log of all messages; "" is none
}

// ServerArgs are the arguments of a server.
func ServerArgs(listen netip.AddrPort, tcp, nagle bool) []string {
	return append([]string{"server"}, ends(listen, tcp, nagle)...)
}

// ClientArgs are the arguments of a client that sends a message when the last one has come back.
func ClientArgs(t Test) []string {
	args := append([]string{"ping-pong", "--full-rtt"}, ends(t.Server, t.TCP, t.Nagle)...)
	args = append(args, "--time", tool.Seconds(t.Duration), "--msg-size", strconv.FormatInt(int64(t.Message), 10))
	if t.Log != "" {
		args = append(args, "--full-log", t.Log)
	}
	return args
}

// ends is what both sides are told.
func ends(at netip.AddrPort, tcp, nagle bool) []string {
	args := []string{"--ip", at.Addr().Unmap().String(), "--port", strconv.Itoa(int(at.Port()))}
	if tcp {
		args = append(args, "--tcp")
	}
	if nagle {
		args = append(args, "--tcp-avoid-nodelay")
	}
	return args
}

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
	p := parser{colours: regexp.MustCompile(colours), half: true}
	p.forms = p.figures()
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if err := p.line(string(bytes.TrimRight(line, "\r\n"))); err != nil {
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
	forms   []figure
	log     bool // the lines are messages
	half    bool // times printed are of half a round trip
	halfLog bool // times of the log are
}

// line reads one line. Lines of other forms are skipped.
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
	for _, f := range p.forms {
		if m := f.form.FindStringSubmatch(line); m != nil {
			return f.take(p, m[1:])
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

// figure is a kind of line, with what takes the words or, where all are numbers, the numbers that its form finds.
type figure struct {
	form    *regexp.Regexp
	words   func(r *Report, words []string) error
	numbers func(r *Report, v []float64) error
}

func (f figure) take(p *parser, words []string) error {
	if f.words != nil {
		return f.words(&p.report, words)
	}
	var numbers []float64
	for _, text := range words {
		v, err := tool.Number(text)
		if err != nil {
			return err
		}
		numbers = append(numbers, v)
	}
	return f.numbers(&p.report, numbers)
}

// number is the form of a figure in a line.
const number = `\s*([-+0-9.eE]+)`

// figures are all lines that are read.
func (p *parser) figures() []figure {
	words := func(form string, take func(*Report, []string) error) figure {
		return figure{form: regexp.MustCompile(form), words: take}
	}
	numbers := func(take func(*Report, []float64) error, parts ...string) figure {
		return figure{form: regexp.MustCompile(strings.Join(parts, number)), numbers: take}
	}
	mean := func(half bool) func(*Report, []float64) error {
		return func(r *Report, v []float64) error { r.Mean, p.half = v[0]*1e3, half; return nil }
	}
	return []figure{
		words(`^sockperf: == version #(\S+) ==`, func(r *Report, m []string) error { r.Version = m[0]; return nil }),
		words(`IP = \S+\s+PORT =\s*\d+ # (TCP|UDP)`, func(r *Report, m []string) error { r.Protocol = m[0]; return nil }),
		numbers(valid, `\[Valid Duration\] RunTime=`, ` sec; SentMessages=`, `; ReceivedMessages=`, ``),
		numbers(mean(false), `avg-rtt=`, ``),
		numbers(mean(true), `avg-lat(?:ency)?=`, ``),
		numbers(func(r *Report, v []float64) error { r.Dropped = int64(v[0]); return nil }, `# dropped messages =`, ``),
		numbers(func(r *Report, v []float64) error { r.Max = v[0] * 1e3; return nil }, `---> <MAX> observation =`, ``),
		numbers(func(r *Report, v []float64) error { r.Min = v[0] * 1e3; return nil }, `---> <MIN> observation =`, ``),
		numbers(percentile, `---> percentile`, ` =`, ``),
		words(`following parameters:(.*)`, parameters),
		words(`Message Rate is .* \[msg/sec\]`, func(*Report, []string) error {
			return errors.New("sockperf measured how fast it can send (throughput), not how long an answer takes; run its ping-pong or under-load")
		}),
		words(`^sockperf: ERROR: (.*)`, func(_ *Report, m []string) error { return fmt.Errorf("%w: %s", ErrNothing, m[0]) }),
	}
}

func valid(r *Report, v []float64) error {
	if !(v[0] > 0 && v[0] < 1e9) {
		return fmt.Errorf("a run of %g seconds can't be", v[0])
	}
	r.Duration, r.Sent, r.Received = time.Duration(v[0]*1e9), int64(v[1]), int64(v[2])
	return nil
}

func percentile(r *Report, v []float64) error {
	if _, known := r.Percentile(v[0]); !known { // the log repeats what was printed
		r.Percentiles = append(r.Percentiles, Percentile{Percent: v[0], Value: v[1] * 1e3})
	}
	return nil
}

// fastest is the rate that stands for none (--mps=max).
const fastest = 600_000

// parameters reads how sockperf was called, as its log says it.
func parameters(r *Report, m []string) error {
	for _, field := range strings.Fields(m[0]) {
		key, value, _ := strings.Cut(field, "=")
		if key != "--msg-size" && key != "--mps" {
			continue
		}
		v, err := tool.Number(value)
		switch {
		case err != nil:
			return err
		case key == "--msg-size":
			r.Message = unit.Bytes(v)
		case v < fastest:
			r.Rate = v
		}
	}
	return nil
}
