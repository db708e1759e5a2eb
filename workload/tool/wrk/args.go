// Package wrk knows the program wrk: what to call it with, and how to read what it says.
package wrk

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// Program is its name, and the name of its package.
const Program = "wrk"

// Load is one run of wrk: as fast as answers come.
type Load struct {
	URL         string
	Headers     []string // Name: value, in addition to wrk's own
	Connections int
	Threads     int           // that share the connections; 0 is one
	Duration    time.Duration // counted in whole seconds, rounded up
	Timeout     time.Duration // of a request, counted in whole seconds, rounded up; 0 is wrk's, 2 s
	Script      string        // a file that holds Script; "" for none
}

// Args is the command line of a run.
func Args(l Load) []string {
	args := []string{"--threads", strconv.Itoa(max(l.Threads, 1)), "--connections", strconv.Itoa(max(l.Connections, 1)), "--duration", seconds(l.Duration)}
	if l.Timeout > 0 {
		args = append(args, "--timeout", seconds(l.Timeout))
	}
	for _, h := range l.Headers {
		args = append(args, "--header", h)
	}
	if l.Script != "" {
		args = append(args, "--script", l.Script)
	}
	return append(args, l.URL)
}

// seconds is a time as wrk takes it.
func seconds(d time.Duration) string { return tool.Seconds(max(d, time.Second)) + "s" }

// Script has wrk say at its end, in a line of JSON, all that it knows: every latency, in the microseconds that it counts in.
//
//go:embed script.lua
var Script string

// Report is what wrk says of a run.
type Report struct {
	Connections int
	Duration    time.Duration
	// Requests are those that were answered, also with an error of HTTP.
	Requests int64
	// Bytes are those received, heads of responses among them. Without Script they are rounded to three digits.
	Bytes  unit.Bytes
	Errors Errors
	// Mean and Max are of the latencies, rounded to three digits.
	Mean, Max time.Duration
	// Percentiles are those that --latency prints, in ascending order; none without it.
	Percentiles []Percentile
	// Latencies are all that were measured, in ascending order; none without Script. Mean, Max and Percentiles are
	// of more: wrk adds latencies that it thinks it would have measured if it had not waited for slow answers.
	Latencies []Count
}

// Errors counts what went wrong. Status is answers with another status than 2xx or 3xx; they are among the requests.
type Errors struct{ Connect, Read, Write, Timeout, Status int64 }

// Sum is how many errors there were.
func (e Errors) Sum() int64 { return e.Connect + e.Read + e.Write + e.Timeout + e.Status }

// Percentile is the latency that a share of the requests did not exceed.
type Percentile struct {
	Share   float64 // 0.99
	Latency time.Duration
}

// Count says how many requests took so long.
type Count struct {
	Latency  time.Duration
	Requests int64
}

// reader reads the lines of a report.
type reader struct {
	report Report
	done   bool // the line with the sum of the requests was there
}

// Parse reads what wrk printed, with Script or without.
func Parse(out []byte) (*Report, error) {
	r := reader{}
	number := 0
	for line := range bytes.Lines(out) {
		number++
		text := strings.TrimSpace(string(line))
		var err error
		if strings.HasPrefix(text, `{"duration_us"`) {
			err = r.script(line)
		} else {
			err = r.line(text)
		}
		if err != nil {
			return nil, &tool.PlaceError{Line: number, Err: err}
		}
	}
	if !r.done {
		return nil, fmt.Errorf("this is no report of wrk: it has no line N requests in T; it begins with %.80q", strings.TrimSpace(string(out)))
	}
	return &r.report, nil
}

// line reads one line. One that says nothing to us is passed over.
func (r *reader) line(text string) (err error) {
	words := strings.Fields(text)
	switch {
	case strings.HasSuffix(text, " connections") && len(words) == 5:
		r.report.Connections, err = strconv.Atoi(words[3])
	case strings.HasPrefix(text, "Latency ") && len(words) == 5:
		for i, to := range []*time.Duration{&r.report.Mean, new(time.Duration), &r.report.Max} { // between them is the deviation
			if *to, err = duration(words[i+1]); err != nil {
				break
			}
		}
	case len(words) == 2 && strings.HasSuffix(words[0], "%"):
		err = r.percentile(words[0], words[1])
	case len(words) == 6 && words[1] == "requests" && words[2] == "in":
		err = r.sum(words[0], strings.TrimSuffix(words[3], ","), words[4])
	case strings.HasPrefix(text, "Socket errors:"):
		err = r.socketErrors(text)
	case strings.HasPrefix(text, "Non-2xx or 3xx responses:"):
		r.report.Errors.Status, err = strconv.ParseInt(words[len(words)-1], 10, 64)
	}
	return err
}

// percentile reads a line of the latency distribution.
func (r *reader) percentile(share, latency string) error {
	n, err := tool.Number(strings.TrimSuffix(share, "%"))
	if err != nil {
		return err
	}
	at, err := duration(latency)
	r.report.Percentiles = append(r.report.Percentiles, Percentile{Share: n / 100, Latency: at})
	return err
}

// sum reads how many requests there were, in what time, and how much they brought.
func (r *reader) sum(requests, span, read string) (err error) {
	r.done = true
	if r.report.Requests, err = strconv.ParseInt(requests, 10, 64); err != nil {
		return err
	}
	if r.report.Duration, err = duration(span); err != nil {
		return err
	}
	if r.report.Duration <= 0 || r.report.Requests < 0 {
		return fmt.Errorf("%s requests in %s: a run takes time", requests, span)
	}
	n, err := scaled(read, []scale{{"GB", 1 << 30}, {"MB", 1 << 20}, {"KB", 1 << 10}, {"TB", 1 << 40}, {"B", 1}})
	r.report.Bytes = unit.Bytes(math.Round(n))
	return err
}

// socketErrors reads the line of errors that sockets had.
func (r *reader) socketErrors(text string) error {
	m := regexp.MustCompile(`^Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$`).FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("%.80q does not say how many errors sockets had", text)
	}
	e := &r.report.Errors
	for i, n := range []*int64{&e.Connect, &e.Read, &e.Write, &e.Timeout} {
		var err error
		if *n, err = strconv.ParseInt(m[i+1], 10, 64); err != nil {
			return err
		}
	}
	return nil
}

// script reads what Script has printed: the same as wrk, exactly.
func (r *reader) script(line []byte) error {
	var said struct {
		Duration  int64      `json:"duration_us"`
		Requests  int64      `json:"requests"`
		Bytes     int64      `json:"bytes"`
		Errors    Errors     `json:"errors"`
		Latencies [][2]int64 `json:"latencies"`
	}
	if err := tool.JSON(line, &said); err != nil {
		return fmt.Errorf("the line of JSON: %w", err)
	}
	if said.Duration <= 0 || said.Duration > math.MaxInt64/1000 || said.Requests < 0 || said.Bytes < 0 {
		return fmt.Errorf("the line of JSON: %d requests and %d bytes in %d us: a run takes time", said.Requests, said.Bytes, said.Duration)
	}
	r.report.Duration = time.Duration(said.Duration) * time.Microsecond
	r.report.Requests, r.report.Bytes = said.Requests, unit.Bytes(said.Bytes)
	r.report.Errors = said.Errors
	for i, l := range said.Latencies {
		if i > 0 && l[0] <= said.Latencies[i-1][0] {
			return fmt.Errorf("the line of JSON: latencies of %d us after those of %d us", l[0], said.Latencies[i-1][0])
		}
		if l[0] < 0 || l[0] > math.MaxInt64/1000 || l[1] < 0 {
			return fmt.Errorf("the line of JSON: %d requests of %d us", l[1], l[0])
		}
		r.report.Latencies = append(r.report.Latencies, Count{Latency: time.Duration(l[0]) * time.Microsecond, Requests: l[1]})
	}
	r.measured()
	return nil
}

// measured takes away from all latencies those that wrk has added to what it measured. wrk expects a connection's
// requests at their mean interval. Where an answer took two intervals or longer, it adds the requests that should have begun meanwhile. Going
// from the longest latency down, each count is as measured by the time that it is reached.
func (r *reader) measured() {
	each := r.report.Requests / int64(max(r.report.Connections, 1))
	if each == 0 {
		return
	}
	interval := r.report.Duration.Microseconds() / each
	if interval == 0 {
		return
	}
	kept := slices.Clone(r.report.Latencies)
	at := map[int64]int{}
	for i, l := range kept {
		at[l.Latency.Microseconds()] = i
	}
	for i := len(kept) - 1; i >= 0 && kept[i].Latency.Microseconds() >= 2*interval; i-- {
		for m := kept[i].Latency.Microseconds() - interval; m > interval && kept[i].Requests > 0; m -= interval {
			j, there := at[m]
			if !there || kept[j].Requests < kept[i].Requests {
				return // another wrk, which adds none
			}
			kept[j].Requests -= kept[i].Requests
		}
	}
	r.report.Latencies = slices.DeleteFunc(kept, func(c Count) bool { return c.Requests == 0 })
}

// scale is a suffix of a figure, and what it stands for.
type scale struct {
	suffix string
	factor float64
}

// scaled reads a figure with a suffix.
func scaled(text string, scales []scale) (float64, error) {
	for _, s := range scales {
		if figure, found := strings.CutSuffix(text, s.suffix); found {
			n, err := tool.Number(figure)
			return n * s.factor, err
		}
	}
	return 0, fmt.Errorf("%.40q has no unit that wrk uses", text)
}

// duration reads a time.
func duration(text string) (time.Duration, error) {
	n, err := scaled(text, []scale{{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}})
	if err == nil && math.Abs(n) > math.MaxInt64/2 {
		return 0, fmt.Errorf("%.40q is no time that a run can take", text)
	}
	return time.Duration(math.Round(n)), err
}
