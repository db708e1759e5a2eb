package sysbench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// FailedError is the error of a run that gave up.
type FailedError struct {
	Words string // the first of what it says to be fatal
}

// Error implements error.
func (e *FailedError) Error() string { return "sysbench gave up: " + e.Words }

// SyntaxError is the error of a line that is not as sysbench writes it.
type SyntaxError struct {
	Line int // from 1
	Text string
	Why  string
}

// Error implements error.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d of sysbench's output: %s: %q", e.Line, e.Why, e.Text)
}

// ErrNoTransactions is matched by the error of output that has no count of transactions: of another test than a database's, or cut off.
var ErrNoTransactions = errors.New("no count of transactions")

// lineMost is the longest line that is read.
const lineMost = 1 << 20

// Parse reads the output of one run. The error is a *FailedError where sysbench says that the run failed, a *SyntaxError for a
// line that makes no sense, and matches ErrNoTransactions where nothing was counted.
func Parse(output io.Reader) (Report, error) {
	p := parser{}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, lineMost)
	for lines.Scan() {
		p.line++
		p.text = lines.Text()
		p.take(strings.TrimSpace(p.text))
		if p.err != nil {
			return Report{}, p.err
		}
	}
	if err := lines.Err(); err != nil {
		return Report{}, fmt.Errorf("read sysbench's output after line %d: %w", p.line, err)
	}
	if p.fatal != "" {
		return Report{}, &FailedError{p.fatal}
	}
	if !p.counted || p.r.Time <= 0 {
		return Report{}, fmt.Errorf("read sysbench's output of %d lines: %w: give the whole output of a test of a database", p.line, ErrNoTransactions)
	}
	return p.r, nil
}

type parser struct {
	r         Report
	line      int
	text      string // of the line
	err       error  // the first one
	fatal     string
	counted   bool
	histogram bool // within it
	latency   bool
	events    int64 // that the latencies are of
}

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = &SyntaxError{p.line, p.text, why}
	}
}

// second is a line of the series; what follows the percentage may be missing with --percentile=0.
var second = regexp.MustCompile(`^\[ (\d+)s \] thds: \d+ tps: (\S+) qps: (\S+) \(r/w/o: \S+\) lat \(ms,\S+%\): (\S+) err/s: (\S+) reconn/s: (\S+)$`)

// bucket is a line of the distribution.
var bucket = regexp.MustCompile(`^(\d+\.\d+) \|\**\s*(\d+)$`)

func (p *parser) take(line string) {
	if version, found := strings.CutPrefix(line, "sysbench "); found && p.line == 1 {
		p.r.Version, _, _ = strings.Cut(version, " ")
		return
	}
	if words, found := strings.CutPrefix(line, "FATAL: "); found {
		// The first says what, the second why, the others repeat them for each thread.
		switch {
		case p.fatal == "":
			p.fatal = words
		case !strings.Contains(p.fatal, "; ") && !strings.HasPrefix(p.fatal, words):
			p.fatal += "; " + words
		}
		return
	}
	if m := second.FindStringSubmatch(line); m != nil {
		p.second(m[1:])
		return
	}
	if strings.HasPrefix(line, "Latency histogram") {
		p.histogram = true
		return
	}
	if m := bucket.FindStringSubmatch(line); m != nil && p.histogram {
		p.bucket(m[1], m[2])
		return
	}
	if name, value, found := strings.Cut(line, ":"); found {
		p.pair(name, strings.TrimSpace(value))
	}
}

func (p *parser) second(f []string) {
	s := Second{
		At:           int(p.count(f[0])),
		TPS:          p.number(f[1]),
		QPS:          p.number(f[2]),
		AtPercentile: p.milliseconds(f[3]),
		Errors:       p.number(f[4]),
		Reconnects:   p.number(f[5]),
	}
	if n := len(p.r.Seconds); n > 0 && s.At <= p.r.Seconds[n-1].At {
		p.fail("seconds don't rise")
	}
	p.r.Seconds = append(p.r.Seconds, s)
}

// alike is how many buckets sysbench may print with the same latency: those from 1.5 to 2.5 µs.
const alike = 32

func (p *parser) bucket(middle, count string) {
	b := Bucket{Place: placed(p.milliseconds(middle)), Count: p.count(count)}
	if n := len(p.r.Buckets); n > 0 && b.Place <= p.r.Buckets[n-1].Place {
		// With three digits after the point, buckets below some 30 µs are printed alike.
		if b.Place < p.r.Buckets[n-1].Place-alike {
			p.fail("latencies don't rise")
		}
		b.Place = p.r.Buckets[n-1].Place + 1
	}
	if b.Count == 0 || b.Place >= places {
		p.fail("no bucket that sysbench has")
	}
	p.r.Buckets = append(p.r.Buckets, b)
}

// pair takes a line with a name and a value.
func (p *parser) pair(name, value string) {
	switch name {
	case "Number of threads":
		p.r.Threads = int(p.count(value))
	case "Target transaction rate":
		p.r.Target = p.number(strings.TrimSuffix(value, "/sec"))
	case "SQL statistics":
		p.histogram = false
	case "Latency (ms)":
		p.latency = true
	case "read", "write", "other", "transactions", "queries", "ignored errors", "reconnects", "total number of events":
		first, _, _ := strings.Cut(value, " ")
		p.counts(name, p.count(first))
	case "total time":
		p.r.Time = p.duration(value)
	default:
		if p.latency {
			p.latencies(name, value)
		}
	}
}

func (p *parser) counts(name string, n int64) {
	switch name {
	case "read":
		p.r.Reads = n
	case "write":
		p.r.Writes = n
	case "other":
		p.r.Others = n
	case "transactions":
		p.r.Transactions, p.counted = n, true
	case "queries":
		p.r.Queries = n
	case "ignored errors":
		p.r.Errors = n
	case "reconnects":
		p.r.Reconnects = n
	case "total number of events":
		p.events = n
	}
}

// latencies takes a line of the last block but one.
func (p *parser) latencies(name, value string) {
	switch {
	case name == "min":
		p.r.Min = p.milliseconds(value)
	case name == "avg":
		p.r.Mean = p.milliseconds(value)
	case name == "max":
		p.r.Max = p.milliseconds(value)
	case name == "sum":
		// By the sum the mean is known to more digits than avg has.
		if p.events > 0 {
			p.r.Mean = p.milliseconds(value) / float64(p.events)
		}
	case strings.HasSuffix(name, " percentile"):
		digits := strings.TrimRight(strings.TrimSuffix(name, " percentile"), "stndrh")
		p.r.Percentile, p.r.AtPercentile = p.number(digits), p.milliseconds(value)
	case name == "Threads fairness":
		p.latency = false
	}
}

// number is one that is not negative.
func (p *parser) number(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		p.fail("not a number: " + strconv.Quote(text))
		return 0
	}
	return f
}

// count is a whole number that is not negative.
func (p *parser) count(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		p.fail("not a count: " + strconv.Quote(text))
		return 0
	}
	return n
}

// milliseconds gives nanoseconds.
func (p *parser) milliseconds(text string) float64 { return p.number(text) * float64(time.Millisecond) }

// duration reads seconds, as in "2.0143s".
func (p *parser) duration(text string) time.Duration {
	seconds := p.number(strings.TrimSuffix(text, "s"))
	if seconds > math.MaxInt64/float64(time.Second)/2 {
		p.fail("not a time")
		return 0
	}
	return time.Duration(math.Round(seconds * float64(time.Second)))
}
