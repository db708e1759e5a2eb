// Package sysbench knows the command line of sysbench 1.0 and reads what its database tests print. It is pure: it starts
// nothing.
package sysbench

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"netdelta/workload/tool"
)

// FailedError is the error of a run that gave up.
type FailedError struct {
	Words string // the first of what it says to be fatal
}

// Error implements error.
func (e *FailedError) Error() string { return "sysbench gave up: " + e.Words }

// ErrNoTransactions is matched by the error of output that has no count of transactions: of another test than a database's, or cut off.
var ErrNoTransactions = errors.New("no count of transactions")

// Parse reads the output of one run. The error is a *FailedError where sysbench says that the run failed, has a place
// (tool.PlaceError) for a line that makes no sense, and matches ErrNoTransactions where nothing was counted.
func Parse(output []byte) (Report, error) {
	p := parser{}
	for line := range bytes.Lines(output) {
		p.line++
		p.take(strings.TrimSpace(string(line)))
		if p.err != nil {
			return Report{}, fmt.Errorf("sysbench's output: %w", p.err)
		}
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
	err       error // the first one
	fatal     string
	counted   bool
	histogram bool // within it
	latency   bool
	events    int64 // that the latencies are of
}

func (p *parser) fail(why string) {
	if p.err == nil {
		p.err = &tool.PlaceError{Line: p.line, Err: errors.New(why)}
	}
}

// second is a line of the series; what follows the percentage may be missing with --percentile=0.
var second = regexp.MustCompile(`^\[ (\d+)s \] thds: \d+ tps: (\S+) qps: \S+ \(r/w/o: \S+\) lat \(ms,\S+%\): \S+ err/s: (\S+) reconn/s: \S+$`)

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
	s := Second{At: int(p.count(f[0])), TPS: p.number(f[1]), Errors: p.number(f[2])}
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
	first, _, _ := strings.Cut(value, " ")
	switch name {
	case "Number of threads":
		p.r.Threads = int(p.count(value))
	case "Target transaction rate":
		p.r.Target = p.number(strings.TrimSuffix(value, "/sec"))
	case "SQL statistics":
		p.histogram = false
	case "transactions":
		p.r.Transactions, p.counted = p.count(first), true
	case "ignored errors":
		p.r.Errors = p.count(first)
	case "reconnects":
		p.r.Reconnects = p.count(first)
	case "total number of events":
		p.events = p.count(first)
	case "total time":
		p.r.Time = p.duration(value)
	case "Latency (ms)", "Threads fairness":
		p.latency = name == "Latency (ms)"
	default:
		if p.latency {
			p.latencies(name, value)
		}
	}
}

// latencies takes a line of the last block but one.
func (p *parser) latencies(name, value string) {
	switch digits, percentile := strings.CutSuffix(name, " percentile"); {
	case name == "min":
		p.r.Min = p.milliseconds(value)
	case name == "avg":
		p.r.Mean = p.milliseconds(value)
	case name == "max":
		p.r.Max = p.milliseconds(value)
	case name == "sum" && p.events > 0:
		// By the sum the mean is known to more digits than avg has.
		p.r.Mean = p.milliseconds(value) / float64(p.events)
	case percentile:
		p.r.Percentile, p.r.AtPercentile = p.number(strings.TrimRight(digits, "stndrh")), p.milliseconds(value)
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

// Report is what one run of a database test printed. Latencies are in nanoseconds and of whole transactions.
type Report struct {
	Version string // of sysbench; "" if it was cut off
	Threads int
	// Target is the rate of transactions per second that was asked for; 0 is as many as there can be.
	Target       float64
	Transactions int64 // that succeeded, in all threads
	// Errors are transactions that failed and were tried again (deadlocks, conflicts between nodes), Reconnects connections
	// that had to be opened anew.
	Errors, Reconnects int64
	Time               time.Duration // of the whole run
	Min, Mean, Max     float64       // Min and Max to 10 µs, for that is how they are printed
	// Percentile is the one that was asked for, in percent, and AtPercentile the latency there; 0 if none was.
	Percentile, AtPercentile float64
	// Seconds is the series of the intervals that were reported, in order; the last of a run is often not.
	Seconds []Second
	// Buckets is the distribution, by rising latency; none unless it was asked for.
	Buckets []Bucket
}

// Second is one line of the series.
type Second struct {
	At          int     // seconds since the start, at its end
	TPS, Errors float64 // transactions and errors per second in it
}

// Bucket is one line of the distribution.
type Bucket struct {
	// Place is its number among those that sysbench has: 1024 from a microsecond to 100 s, on a logarithmic scale.
	Place int
	Count int64
}

// The scale of the buckets, in nanoseconds.
const (
	lowest  = float64(time.Microsecond)
	highest = float64(100 * time.Second)
	places  = 1024
)

// at is the latency at a part of the bucket: 0 is its begin, 0.5 its middle, which is what sysbench prints, and 1 its end.
func (b Bucket) at(part float64) float64 {
	return lowest * math.Pow(highest/lowest, (float64(b.Place)+part-0.5)/(places-1))
}

// placed is the place of the bucket with the given middle.
func placed(middle float64) int {
	return int(math.Round(math.Log(max(middle, lowest)/lowest) / math.Log(highest/lowest) * (places - 1)))
}

// Quantile is the latency that a share q of the transactions stays below, by the distribution, 0 without one. Within a
// bucket transactions are taken to be spread evenly: buckets are 1.8% wide, which is more than networks may differ by.
func (r Report) Quantile(q float64) float64 {
	var all int64
	for _, b := range r.Buckets {
		all += b.Count
	}
	rank := q * float64(all)
	for i, b := range r.Buckets {
		if rank <= float64(b.Count) || i == len(r.Buckets)-1 {
			return b.at(min(rank/float64(b.Count), 1))
		}
		rank -= float64(b.Count)
	}
	return 0
}

// spread is over how many values the transactions of a bucket are spread at most: as many as a histogram of three digits has
// there.
const spread = 16

// Each calls f with latencies in whole nanoseconds, and how many transactions took so long: each bucket's are spread
// evenly within it.
func (r Report) Each(f func(ns, count int64)) {
	for _, b := range r.Buckets {
		parts := min(b.Count, spread)
		for i := range parts {
			count := b.Count*(i+1)/parts - b.Count*i/parts
			f(int64(math.Round(b.at((float64(i)+0.5)/float64(parts)))), count)
		}
	}
}

// Lowest is the least latency: to 10 µs as it is printed, or closer where there is a distribution.
func (r Report) Lowest() float64 {
	if len(r.Buckets) == 0 {
		return r.Min
	}
	const half = float64(5 * time.Microsecond) // of the last digit printed
	return min(max(r.Buckets[0].at(0.5), r.Min-half), r.Min+half)
}

// Run is one run of a database test.
type Run struct {
	Test     string // "oltp_read_write"
	Driver   string // by which sysbench speaks to the database: pgsql; "" is mysql, MariaDB's too
	Server   netip.AddrPort
	Socket   string // a path, in place of Server (mysql)
	User     string
	Config   string // a file with more arguments, such as the password; "" for none
	Database string
	Tables   int
	Rows     int // of each table
	Threads  int
	// Time is how long it runs; sysbench counts in whole seconds, and so it is rounded up. 0 is without end.
	Time time.Duration
	// Events end the run once there were so many, whatever Time says; 0 is without end.
	Events int64
}

// Program is its name, and the name of its package.
const Program = "sysbench"

// Percentile is the one that sysbench is asked for: it prints one alone, the others follow from the histogram.
const Percentile = 99

// Args are the arguments of the run itself, by which it prints each second, and its histogram.
func (r Run) Args() []string {
	return append(r.common(),
		"--time="+tool.Seconds(r.Time),
		"--events="+strconv.FormatInt(min(r.Events, math.MaxInt32), 10), // it takes no more
		"--report-interval=1",
		"--histogram=on",
		"--percentile="+strconv.Itoa(Percentile),
		"run")
}

// Prepare are the arguments that make the tables. Rows are numbered from 1 by sysbench: the nodes of a Galera cluster leave numbers out where
// they number them, and transactions, which put a row with a number in place of the one that has it, would add rows.
func (r Run) Prepare() []string { return append(r.common(), "--auto-inc=off", "prepare") }

func (r Run) common() []string {
	driver := cmp.Or(r.Driver, "mysql")
	args := []string{r.Test, "--db-driver=" + driver, "--" + driver + "-user=" + r.User, "--" + driver + "-db=" + r.Database}
	if r.Config != "" {
		args = append(args, "--config-file="+r.Config)
	}
	if r.Socket != "" {
		args = append(args, "--mysql-socket="+r.Socket)
	} else {
		args = append(args, "--"+driver+"-host="+r.Server.Addr().String(), fmt.Sprintf("--%s-port=%d", driver, r.Server.Port()))
	}
	return append(args, fmt.Sprintf("--tables=%d", r.Tables), fmt.Sprintf("--table-size=%d", r.Rows), fmt.Sprintf("--threads=%d", r.Threads))
}

// Option is a line of a file of arguments (Run.Config) that gives an option a value. There are values that can't be given: nothing stands
// for a quote within quotes.
func Option(name, value string) (string, error) {
	for _, quote := range []string{`"`, "'"} {
		if !strings.Contains(value, quote) {
			return name + "=" + quote + value + quote + "\n", nil
		}
	}
	if strings.ContainsAny(value, " \t,") || strings.ContainsAny(value[:1], "\"'#") {
		return "", errors.New("sysbench can't be given one that has both kinds of quotes and a space or a comma, or begins with a quote; choose another")
	}
	return name + "=" + value + "\n", nil
}
