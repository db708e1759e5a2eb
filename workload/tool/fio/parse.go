package fio

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"netdelta/internal/latency"
	"netdelta/unit"
	"netdelta/workload/tool"
)

// Report is what a run of fio measured. Fields without names of their own in JSON follow from the others.
type Report struct {
	Version      string            `json:"fio version"` // "fio-3.33"
	Milliseconds int64             `json:"timestamp_ms"`
	Global       map[string]string `json:"global options"`
	// Jobs are the run's; one for all that are reported as a group.
	Jobs []Result `json:"jobs"`

	// Written is when the report was, after the run; the zero time where it doesn't say.
	Written time.Time `json:"-"`
}

// Result is what a job measured.
type Result struct {
	Name string `json:"jobname"`
	// Options are the job's, by their names (rw, bs, iodepth), with the global ones that it doesn't override.
	Options map[string]string `json:"job options"`
	// Error is the first error's number, 0 for none; Errors how many operations failed where the job went on after errors.
	Error  int       `json:"error"`
	Errors int64     `json:"total_err"`
	Read   Direction `json:"read"`
	Write  Direction `json:"write"`
	// Runtime is in milliseconds, all jobs of a group added; the shares are percentages of it.
	Runtime     float64 `json:"job_runtime"`
	UserShare   float64 `json:"usr_cpu"`
	SystemShare float64 `json:"sys_cpu"`

	// User and System are processor time in the measured part: in fio itself and in the kernel on its behalf.
	User   time.Duration `json:"-"`
	System time.Duration `json:"-"`
}

// Direction is what a job measured of reads, or of writes.
type Direction struct {
	Operations int64    `json:"total_ios"` // that were done
	Bytes      int64    `json:"io_bytes"`
	Bandwidth  float64  `json:"bw_bytes"` // bytes per second
	Rate       float64  `json:"iops"`     // operations per second, by fio's own account
	Runtime    int64    `json:"runtime"`  // milliseconds
	Whole      *Latency `json:"lat_ns"`   // from the submission of an operation
	Completion *Latency `json:"clat_ns"`  // from the end of its submission

	Duration   time.Duration      `json:"-"` // of the measured part
	Throughput unit.BitsPerSecond `json:"-"`
	Latency    Latency            `json:"-"` // the whole one, where its distribution is told
}

// Done is what the job did: reads, writes, or both added up where it mixed them.
func (r Result) Done() Direction {
	switch {
	case r.Write.Operations == 0:
		return r.Read
	case r.Read.Operations == 0:
		return r.Write
	}
	both := r.Read
	both.Operations += r.Write.Operations
	both.Bytes += r.Write.Bytes
	both.Bandwidth += r.Write.Bandwidth
	both.Rate += r.Write.Rate
	both.Throughput += r.Write.Throughput
	both.Duration = max(r.Read.Duration, r.Write.Duration)
	both.Latency = r.Read.Latency.and(r.Write.Latency)
	return both
}

// Latency is the distribution of the time that operations took, in nanoseconds.
type Latency struct {
	Count       int64       `json:"N"`
	Min         float64     `json:"min"`
	Max         float64     `json:"max"`
	Mean        float64     `json:"mean"`
	Percentiles Percentiles `json:"percentile"`
	Bins        Bins        `json:"bins"` // none in reports of the plain format
}

// and is the distribution of both. It has no percentiles: they follow from bins, where there are any.
func (l Latency) and(o Latency) Latency {
	all := Latency{Count: l.Count + o.Count, Min: min(l.Min, o.Min), Max: max(l.Max, o.Max), Bins: slices.Concat(l.Bins, o.Bins)}
	all.Mean = (l.Mean*float64(l.Count) + o.Mean*float64(o.Count)) / float64(max(all.Count, 1))
	all.Bins.sort()
	return all
}

// Percentile is a latency that so many percent of the operations did not exceed.
type Percentile struct{ Percent, Nanoseconds float64 }

// Percentiles are those that fio gives, ascending.
type Percentiles []Percentile

// UnmarshalJSON reads percentiles by their percentage.
func (p *Percentiles) UnmarshalJSON(text []byte) error {
	var all map[string]float64
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for name, ns := range all {
		percent, err := strconv.ParseFloat(name, 64)
		if err != nil || !(percent >= 0 && percent <= 100) || ns < 0 {
			return fmt.Errorf("percentile %q of %v ns", name, ns)
		}
		*p = append(*p, Percentile{Percent: percent, Nanoseconds: ns})
	}
	slices.SortFunc(*p, func(a, b Percentile) int {
		return slices.Compare([]float64{a.Percent, a.Nanoseconds}, []float64{b.Percent, b.Nanoseconds})
	})
	return nil
}

// Parse reads what fio wrote with --output-format=json or json+. Lines that its engines wrote before the report, or after it, are
// skipped. The error of what can't be read has its place (tool.PlaceError).
func Parse(text []byte) (*Report, error) {
	document, err := cut(text)
	if err != nil {
		return nil, err
	}
	var r Report
	if err := tool.JSON(document, &r); err != nil {
		return nil, fmt.Errorf("read a report of fio: %w", err)
	}
	if r.Version == "" || len(r.Jobs) == 0 {
		return nil, errors.New("read a report of fio: it has no version or no jobs; it is another program's, or of a run that did not begin")
	}
	if r.Milliseconds > 0 {
		r.Written = time.UnixMilli(r.Milliseconds)
	}
	for i := range r.Jobs {
		if err := r.Jobs[i].complete(r.Global); err != nil {
			return nil, fmt.Errorf("read a report of fio: job %q: %w", r.Jobs[i].Name, err)
		}
	}
	return &r, nil
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

// longest is the longest run whose times are believed, in milliseconds: a year.
const longest = 366 * 24 * 3600 * 1000

// mostBytes is how many bytes and operations are believed: reads and writes can be added up.
const mostBytes = 1 << 61

var errNegative = errors.New("it counts less than nothing")

// complete checks a job, and computes what follows from what it says.
func (r *Result) complete(global map[string]string) error {
	options := maps.Clone(global)
	if options == nil {
		options = map[string]string{}
	}
	maps.Copy(options, r.Options)
	r.Options = options
	user, system := r.UserShare/100*r.Runtime, r.SystemShare/100*r.Runtime
	if r.Errors < 0 || user < 0 || user > longest || system < 0 || system > longest {
		return errNegative
	}
	r.User, r.System = time.Duration(user*float64(time.Millisecond)), time.Duration(system*float64(time.Millisecond))
	if err := r.Read.complete(); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if err := r.Write.complete(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (d *Direction) complete() error {
	switch {
	case d.Bytes < 0 || d.Operations < 0 || d.Rate < 0 || d.Bandwidth < 0:
		return errNegative
	case d.Bytes > mostBytes || d.Operations > mostBytes:
		return fmt.Errorf("it counts %d operations of %d bytes together", d.Operations, d.Bytes)
	case d.Runtime < 0 || d.Runtime > longest:
		return fmt.Errorf("it took %d ms", d.Runtime)
	}
	d.Duration, d.Throughput = time.Duration(d.Runtime)*time.Millisecond, unit.BitsPerSecond(d.Bandwidth*8)
	from := d.Whole
	if d.Completion != nil && (from == nil || !from.told() && d.Completion.told()) {
		from = d.Completion
	}
	switch {
	case from != nil:
		d.Latency = *from
	case d.Operations > 0:
		return errors.New("it has no latencies in nanoseconds; use fio 3.0 or newer, without gtod_reduce")
	}
	if l := d.Latency; l.Count < 0 || l.Min < 0 || l.Max < 0 || l.Mean < 0 {
		return errors.New("a latency is less than nothing")
	}
	return nil
}

// told says whether the distribution is given, not only its mean.
func (l *Latency) told() bool { return len(l.Percentiles) > 0 || len(l.Bins) > 0 }

// Bin is how many latencies lie from Low to below High.
type Bin struct{ Low, High, Count int64 }

// Bins are all latencies, ascending.
type Bins []Bin

// mostCount is how many latencies of a bin are believed: sums of them can't overflow.
const mostCount = 1 << 40

// UnmarshalJSON reads counts by the middle of their bins.
func (b *Bins) UnmarshalJSON(text []byte) error {
	var counts map[string]int64
	if err := json.Unmarshal(text, &counts); err != nil {
		return err
	}
	for name, count := range counts {
		middle, err := strconv.ParseInt(name, 10, 64)
		if err != nil || middle < 0 || middle > highest || count < 0 || count > mostCount {
			return fmt.Errorf("%d latencies of %q ns", count, name)
		}
		if count > 0 {
			low, high := bounds(middle)
			*b = append(*b, Bin{Low: low, High: high, Count: count})
		}
	}
	b.sort()
	return nil
}

func (b Bins) sort() {
	slices.SortFunc(b, func(a, b Bin) int { return cmp.Or(cmp.Compare(a.Low, b.Low), cmp.Compare(a.Count, b.Count)) })
}

// fio counts latencies in bins: one for each nanosecond below 128, and above that 64 for each power of two. A report names a
// bin by its middle.
const (
	binBits = 6
	exact   = 2 << binBits
	highest = 1 << 40 // ns; fio's last bin ends below
)

// bounds are the bounds of the bin that holds a value, the upper one exclusive.
func bounds(value int64) (low, high int64) {
	if value < exact {
		return value, value + 1
	}
	width := int64(1) << (bits.Len64(uint64(value)) - 1 - binBits)
	low = value &^ (width - 1)
	return low, low + width
}

// Quantile is the latency below which the share q of the operations lies (0 to 1), taken to lie evenly within their bins; 0
// without bins.
func (l Latency) Quantile(q float64) float64 {
	total := int64(0)
	for _, b := range l.Bins {
		total += b.Count
	}
	rank := min(max(q, 0), 1) * float64(total)
	for i, b := range l.Bins {
		if count := float64(b.Count); rank <= count || i == len(l.Bins)-1 {
			at := float64(b.Low) + float64(b.High-b.Low)*min(rank/count, 1)
			// The extremes are known exactly, and lie inside their bins.
			if l.Max > 0 && l.Min <= l.Max {
				at = min(max(at, l.Min), l.Max)
			}
			return at
		}
		rank -= float64(b.Count)
	}
	return 0
}

// parts is into how many parts a bin is divided in a histogram that is finer than fio's.
const parts = 16

// Record puts the latencies into a histogram; a bin's are spread evenly over it.
func (l Latency) Record(h *latency.Histogram) {
	for _, b := range l.Bins {
		n := min(b.Count, parts, b.High-b.Low)
		for i := range n {
			// The i-th of n parts, of the bin's width and of its latencies.
			h.Record(b.Low+(b.High-b.Low)*(2*i+1)/(2*n), b.Count*(i+1)/n-b.Count*i/n)
		}
	}
}
