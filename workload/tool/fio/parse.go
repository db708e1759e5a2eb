package fio

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// wireReport is a report as fio writes it, as far as it is read here.
type wireReport struct {
	Version      string            `json:"fio version"`
	Milliseconds int64             `json:"timestamp_ms"`
	Global       map[string]string `json:"global options"`
	Jobs         []wireJob         `json:"jobs"`
}

type wireJob struct {
	Name    string            `json:"jobname"`
	Options map[string]string `json:"job options"`
	Error   int               `json:"error"`
	Errors  int64             `json:"total_err"`
	Read    *wireDirection    `json:"read"`
	Write   *wireDirection    `json:"write"`
	// Runtime is in milliseconds, all jobs of a group added; User and System are percentages of it.
	Runtime float64 `json:"job_runtime"`
	User    float64 `json:"usr_cpu"`
	System  float64 `json:"sys_cpu"`
}

type wireDirection struct {
	Bytes      int64        `json:"io_bytes"`
	Bandwidth  float64      `json:"bw_bytes"` // per second
	Rate       float64      `json:"iops"`
	Runtime    int64        `json:"runtime"` // milliseconds
	Operations int64        `json:"total_ios"`
	Whole      *wireLatency `json:"lat_ns"`
	Completion *wireLatency `json:"clat_ns"`
}

type wireLatency struct {
	Min         float64            `json:"min"`
	Max         float64            `json:"max"`
	Mean        float64            `json:"mean"`
	Dev         float64            `json:"stddev"`
	Count       int64              `json:"N"`
	Percentiles map[string]float64 `json:"percentile"`
	Bins        map[string]int64   `json:"bins"`
}

// Parse reads what fio wrote with --output-format=json or json+. Lines that its engines wrote before the report, or after it, are
// passed over. The error of what can't be read has its place (tool.PlaceError).
func Parse(text []byte) (*Report, error) {
	document, err := cut(text)
	if err != nil {
		return nil, err
	}
	var w wireReport
	if err := tool.JSON(document, &w); err != nil {
		return nil, fmt.Errorf("read a report of fio: %w", err)
	}
	if w.Version == "" || len(w.Jobs) == 0 {
		return nil, errors.New("read a report of fio: it has no version or no jobs; it is another program's, or of a run that did not begin")
	}
	r := &Report{Version: w.Version}
	if w.Milliseconds > 0 {
		r.Written = time.UnixMilli(w.Milliseconds)
	}
	for _, j := range w.Jobs {
		result, err := j.result(w.Global)
		if err != nil {
			return nil, fmt.Errorf("read a report of fio: job %q: %w", j.Name, err)
		}
		r.Jobs = append(r.Jobs, result)
	}
	return r, nil
}

// cut is the JSON of what fio wrote, at its place: what stands before it is blank.
func cut(text []byte) ([]byte, error) {
	start := 0
	for start < len(text) && text[start] != '{' {
		next := bytes.IndexByte(text[start:], '\n')
		if next < 0 {
			start = len(text)
			break
		}
		start += next + 1
	}
	if start == len(text) {
		return nil, errors.New("read a report of fio: it holds no JSON; have fio write it with --output-format=json+")
	}
	document := bytes.Clone(text[:max(bytes.LastIndexByte(text, '}')+1, start)])
	for i := range document[:start] {
		if document[i] != '\n' {
			document[i] = ' '
		}
	}
	return document, nil
}

// result is a job of the report.
func (j wireJob) result(global map[string]string) (Result, error) {
	r := Result{
		Name: j.Name, Options: map[string]string{}, Error: j.Error, Errors: j.Errors,
		User: percent(j.User, j.Runtime), System: percent(j.System, j.Runtime),
	}
	if j.Errors < 0 || r.User < 0 || r.System < 0 {
		return Result{}, errors.New("it counts less than nothing")
	}
	maps.Copy(r.Options, global)
	maps.Copy(r.Options, j.Options)
	for _, d := range []struct {
		name string
		from *wireDirection
		to   *Direction
	}{{"read", j.Read, &r.Read}, {"write", j.Write, &r.Write}} {
		if d.from == nil {
			continue
		}
		var err error
		if *d.to, err = d.from.direction(); err != nil {
			return Result{}, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return r, nil
}

// longest is the longest run whose times are believed, in milliseconds: a year.
const longest = 366 * 24 * 3600 * 1000

// percent is a part of a number of milliseconds; less than nothing where it can't be.
func percent(share, of float64) time.Duration {
	ms := share / 100 * of
	if ms > longest {
		return -1
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// direction is a direction of a job.
func (w wireDirection) direction() (Direction, error) {
	if w.Bytes < 0 || w.Operations < 0 || w.Rate < 0 || w.Bandwidth < 0 {
		return Direction{}, errors.New("it counts less than nothing")
	}
	if w.Runtime < 0 || w.Runtime > longest {
		return Direction{}, fmt.Errorf("it took %d ms", w.Runtime)
	}
	d := Direction{
		Operations: w.Operations, Bytes: w.Bytes, Duration: time.Duration(w.Runtime) * time.Millisecond,
		Rate: w.Rate, Throughput: unit.BitsPerSecond(w.Bandwidth * 8),
	}
	from, whole := w.Whole, true
	if w.Completion != nil && (from == nil || !from.told() && w.Completion.told()) {
		from, whole = w.Completion, false
	}
	if from == nil {
		if w.Operations > 0 {
			return Direction{}, errors.New("it has no latencies in nanoseconds; use fio 3.0 or newer, without gtod_reduce")
		}
		return d, nil
	}
	var err error
	d.Latency, err = from.latency()
	d.Latency.Whole = whole
	return d, err
}

// mostCount is how many latencies of a bin are believed: sums of them can't overflow.
const mostCount = 1 << 40

// told says whether the distribution is given, not only its mean.
func (w *wireLatency) told() bool { return len(w.Percentiles) > 0 || len(w.Bins) > 0 }

// latency is the distribution.
func (w *wireLatency) latency() (Latency, error) {
	l := Latency{Count: w.Count, Min: w.Min, Max: w.Max, Mean: w.Mean, Dev: w.Dev}
	if l.Count < 0 || l.Min < 0 || l.Max < 0 || l.Mean < 0 {
		return Latency{}, errors.New("a latency is less than nothing")
	}
	for name, ns := range w.Percentiles {
		p, err := strconv.ParseFloat(name, 64)
		if err != nil || !(p >= 0 && p <= 100) || ns < 0 {
			return Latency{}, fmt.Errorf("percentile %q of %v ns", name, ns)
		}
		l.Percentiles = append(l.Percentiles, Percentile{Percent: p, Nanoseconds: ns})
	}
	slices.SortFunc(l.Percentiles, func(a, b Percentile) int {
		return cmp.Or(cmp.Compare(a.Percent, b.Percent), cmp.Compare(a.Nanoseconds, b.Nanoseconds))
	})
	for name, count := range w.Bins {
		middle, err := strconv.ParseInt(name, 10, 64)
		if err != nil || middle < 0 || middle > highest || count < 0 || count > mostCount {
			return Latency{}, fmt.Errorf("%d latencies of %q ns", count, name)
		}
		if count == 0 {
			continue
		}
		low, high := bounds(middle)
		l.Bins = append(l.Bins, Bin{Low: low, High: high, Count: count})
	}
	slices.SortFunc(l.Bins, func(a, b Bin) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.Count, b.Count)) })
	return l, nil
}
