package imported

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload/tool"
	"netdelta/workload/tool/fio"
	"netdelta/workload/tool/iperf3"
	"netdelta/workload/tool/k6"
	"netdelta/workload/tool/netperf"
	"netdelta/workload/tool/sockperf"
	"netdelta/workload/tool/sysbench"
	"netdelta/workload/tool/wrk"
)

// measured is one test that a file tells of.
type measured struct {
	tool, version string
	workload      string
	params        result.Params
	started       time.Time // zero where the file does not say
	trial         result.Trial
	note          string // what the reader must know
}

// format is what a program writes.
type format struct {
	name string
	is   func(text []byte) bool
	// read reads a file. workload is what the user said, for formats that don't say it.
	read func(text []byte, workload string) ([]measured, error)
}

// reader reads files by what parses them, and makes measurements of what that finds.
func reader[R any](parse func([]byte) (R, error), measurements func(found R, workload string) ([]measured, error)) func([]byte, string) ([]measured, error) {
	return func(text []byte, workload string) ([]measured, error) {
		found, err := parse(text)
		if err != nil {
			return nil, err
		}
		return measurements(found, workload)
	}
}

// formats are all that are recognised, by their content. Those that are told most surely come first.
func formats() []format {
	return []format{
		{"iperf3 (-J)", iperf3.Is, reader(iperf3.Parse, readIperf3)},
		{"fio (--output-format=json)", isFio, reader(fio.Parse, readFio)},
		{"k6 (summary or --out json)", k6.Is, reader(k6.Parse, readK6)},
		{"sockperf (what it prints, or --full-log)", sockperf.Is, reader(sockperf.Parse, readSockperf)},
		{"netperf (tables, -o or -k)", netperf.Is, reader(netperf.Parse, readNetperf)},
		{"wrk (what it prints)", isWrk, reader(wrk.Parse, readWrk)},
		{"sysbench (what it prints)", isSysbench, reader(sysbench.Parse, readSysbench)},
	}
}

// ErrUnknown is the error of a file of no known format.
var ErrUnknown = errors.New("a file of no format that is known")

// parse reads a file in whatever format it has.
func parse(text []byte, workload string) ([]measured, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	var names []string
	for _, f := range formats() {
		if !f.is(text) {
			names = append(names, f.name)
			continue
		}
		found, err := f.read(text, workload)
		if err == nil && len(found) == 0 {
			err = errors.New("it has no result")
		}
		if err != nil {
			return nil, fmt.Errorf("as %s: %w", f.name, tool.Place(text, err))
		}
		return found, nil
	}
	return nil, unknown(text, names)
}

// unknown says what a file of another format looks like.
func unknown(text []byte, names []string) error {
	var looks string
	head := string(bytes.TrimSpace(text[:min(len(text), 4<<10)]))
	switch {
	case head == "":
		looks = "it is empty"
	case strings.ContainsRune(head, 0) || !utf8.ValidString(head[:max(len(head)-utf8.UTFMax, 0)]):
		looks = "it is binary"
	case strings.HasPrefix(head, "Connecting to host"):
		looks = "it is what iperf3 prints for people: run it with -J"
	case strings.HasPrefix(head, "------------------------------------------------------------\nClient connecting"):
		looks = "it is of iperf 2: use iperf3 with -J"
	case strings.Contains(head, "execution: local") || strings.Contains(head, "http_req_duration..."):
		looks = "it is what k6 prints for people: run it with --summary-export"
	case strings.Contains(head, "fio-3") || strings.Contains(head, "groupid="):
		looks = "it is what fio prints for people: run it with --output-format=json"
	case strings.HasPrefix(head, "{") || strings.HasPrefix(head, "["):
		looks = "it is JSON of another program"
	default:
		line, _, _ := strings.Cut(head, "\n")
		looks = fmt.Sprintf("it begins with %.60q", line)
	}
	return fmt.Errorf("%w: %s; known are %s", ErrUnknown, looks, strings.Join(names, ", "))
}

// located puts the name of a file, and the place in it, before an error.
func located(name string, err error) error {
	var place *tool.PlaceError
	switch {
	case errors.As(err, &place) && place.Column > 0:
		return fmt.Errorf("%s:%d:%d: %w", name, place.Line, place.Column, without(err, place))
	case errors.As(err, &place):
		return fmt.Errorf("%s:%d: %w", name, place.Line, without(err, place))
	}
	return fmt.Errorf("%s: %w", name, err)
}

// placeless is an error whose place has been said already.
type placeless struct {
	text string
	err  error
}

func (p *placeless) Error() string { return p.text }
func (p *placeless) Unwrap() error { return p.err }

// without leaves the place out of an error's text.
func without(err error, place *tool.PlaceError) error {
	return &placeless{strings.Replace(err.Error(), place.Error(), place.Err.Error(), 1), err}
}

// The workloads of applications.
const (
	web      = "http"
	storage  = "block"
	database = "oltp"
)

// head is the beginning of a file, by which its format is told.
func head(text []byte) []byte { return text[:min(len(text), 64<<10)] }

func isFio(text []byte) bool { return bytes.Contains(head(text), []byte(`"fio version"`)) }

func isWrk(text []byte) bool {
	return bytes.Contains(head(text), []byte("Running ")) && bytes.Contains(head(text), []byte("threads and ")) ||
		bytes.Contains(head(text), []byte("Requests/sec:"))
}

func isSysbench(text []byte) bool {
	return bytes.Contains(head(text), []byte("sysbench ")) || bytes.Contains(head(text), []byte("SQL statistics:"))
}

// readFio reads the jobs of a run of fio, each of which is a measurement.
func readFio(report *fio.Report, _ string) ([]measured, error) {
	var all []measured
	for _, job := range report.Jobs {
		d := job.Done()
		if job.Error != 0 || d.Operations == 0 || d.Duration <= 0 {
			return nil, fmt.Errorf("job %q has done nothing (error %d): measure it again, or leave the file out", job.Name, job.Error)
		}
		m := measured{tool: fio.Program, version: strings.TrimPrefix(report.Version, "fio-"), workload: storage, params: blocks(job.Options), trial: trial(d.Duration)}
		if !report.Written.IsZero() {
			m.started = report.Written.Add(-d.Duration)
		}
		if job.Read.Operations > 0 && job.Write.Operations > 0 && len(d.Latency.Bins) == 0 {
			m.note = "fio did reads and writes at once in some jobs, and its report has no histogram: their percentiles are unknown; have fio write --output-format=json+"
		}
		if err := m.operations(job, d); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// operations takes the figures of a job of fio.
func (m *measured) operations(job fio.Result, d fio.Direction) error {
	t := &m.trial
	t.Transactions, t.Bytes, t.Errors = d.Operations, d.Bytes, job.Errors
	b := &t.Bursts
	b.Transactions, b.Rate, b.Throughput, b.Errors = []int64{d.Operations}, []float64{d.Rate}, []float64{float64(d.Throughput)}, []int64{job.Errors}
	l := latencies{min: d.Latency.Min, mean: d.Latency.Mean, max: d.Latency.Max}
	if len(d.Latency.Bins) > 0 {
		l.p50, l.p90, l.p99 = d.Latency.Quantile(0.5), d.Latency.Quantile(0.9), d.Latency.Quantile(0.99)
		h := latency.NewHistogram()
		d.Latency.Record(h)
		var err error
		if t.Histogram, err = h.Encode(); err != nil {
			return err
		}
	} else {
		for _, p := range d.Latency.Percentiles {
			for percent, to := range map[float64]*float64{50: &l.p50, 90: &l.p90, 99: &l.p99} {
				if p.Percent == percent {
					*to = p.Nanoseconds
				}
			}
		}
	}
	l.set(b)
	return nil
}

// blocks are the parameters of a job of fio, as far as it was told them.
func blocks(options map[string]string) result.Params {
	store, size, depth, clients := options["ioengine"], 4*unit.KiB, 1, 0
	if store == "rbd" {
		store = "ceph"
	}
	if given, err := blockSize(cmp.Or(options["bs"], options["blocksize"])); err == nil {
		size = given
	}
	if n, err := strconv.Atoi(options["iodepth"]); err == nil && n > 0 {
		depth = n
	}
	if n, err := strconv.Atoi(options["numjobs"]); err == nil && n > 1 {
		clients = n
	}
	operation, reads := cmp.Or(options["rw"], options["readwrite"], "read"), 0.0
	if percent, err := strconv.ParseFloat(options["rwmixread"], 64); err == nil && fio.Mixed(operation) {
		reads = percent / 100
	}
	return result.Params{Own: result.OwnOf("store", store, "operation", operation, "block", size, "depth", depth, "reads", reads), Clients: clients}
}

// blockSize is a size as fio takes it: k, m and g are powers of 1024.
func blockSize(text string) (unit.Bytes, error) {
	digits := strings.TrimRight(strings.ToLower(text), "ib")
	factor := unit.Byte
	if n := len(digits); n > 0 {
		if f, scaled := map[byte]unit.Bytes{'k': unit.KiB, 'm': unit.MiB, 'g': unit.GiB}[digits[n-1]]; scaled {
			digits, factor = digits[:n-1], f
		}
	}
	v, err := strconv.ParseInt(digits, 10, 40)
	if err != nil || v < 1 || v > int64(unit.GiB) {
		return 0, fmt.Errorf("block size %q: not a size", text)
	}
	return unit.Bytes(v) * factor, nil
}

// readSysbench reads a run of sysbench. What kind of transactions it made it does not print.
func readSysbench(r sysbench.Report, _ string) (_ []measured, err error) {
	if r.Time <= 0 || r.Transactions <= 0 {
		return nil, errors.New("it has no transactions, or does not say how long they took")
	}
	m := measured{
		tool: "sysbench", version: r.Version, workload: database, params: result.Params{Connections: r.Threads, RequestRate: r.Target}, trial: trial(r.Time),
		note: "sysbench does not print which kind of transactions it made: see to it that all files are of the same",
	}
	t := &m.trial
	t.Transactions, t.Errors = r.Transactions, r.Errors
	t.Bursts.Transactions, t.Bursts.Errors = []int64{r.Transactions}, []int64{r.Errors}
	t.Bursts.Rate = []float64{float64(r.Transactions) / r.Time.Seconds()}
	l := latencies{min: r.Min, mean: r.Mean, max: r.Max}
	if len(r.Buckets) > 0 {
		l.p50, l.p90, l.p99 = r.Quantile(0.5), r.Quantile(0.9), r.Quantile(0.99)
		err = histogram(t, r.Each)
	} else if r.Percentile == 99 {
		l.p99 = r.AtPercentile
	}
	l.set(&t.Bursts)
	for i, s := range r.Seconds {
		span := s.At
		if i > 0 {
			span -= r.Seconds[i-1].At
		}
		t.Series = append(t.Series, result.Second{At: float64(s.At - span), Span: float64(span), Transactions: int64(s.TPS * float64(span))})
	}
	return []measured{m}, err
}

// readWrk reads a run of wrk.
func readWrk(r *wrk.Report, _ string) (_ []measured, err error) {
	if r.Requests == 0 {
		return nil, errors.New("wrk got no answer; is the server reached?")
	}
	m := measured{tool: wrk.Program, workload: web, params: result.Params{Connections: r.Connections, Engine: wrk.Program}, trial: trial(r.Duration)}
	failed := r.Errors.Sum()
	good := max(r.Requests-r.Errors.Status, 0)
	t := &m.trial
	t.Transactions, t.Bytes, t.Errors = good, int64(r.Bytes), failed
	t.Bursts.Transactions, t.Bursts.Errors = []int64{good}, []int64{failed}
	t.Bursts.Rate = []float64{float64(good) / r.Duration.Seconds()}
	t.Bursts.Throughput = []float64{float64(r.Bytes) * 8 / r.Duration.Seconds()}
	l := latencies{mean: float64(r.Mean), max: float64(r.Max)}
	for _, p := range r.Percentiles {
		for share, to := range map[float64]*float64{0.5: &l.p50, 0.9: &l.p90, 0.99: &l.p99} {
			if p.Share == share {
				*to = float64(p.Latency)
			}
		}
	}
	if len(r.Latencies) > 0 {
		l.p50, l.p90, l.p99 = reached(r.Latencies, 0.5), reached(r.Latencies, 0.9), reached(r.Latencies, 0.99)
		l.min = float64(r.Latencies[0].Latency)
		err = histogram(t, func(record func(ns, count int64)) {
			for _, c := range r.Latencies {
				record(int64(c.Latency), c.Requests)
			}
		})
	}
	l.set(&t.Bursts)
	return []measured{m}, err
}

// reached is the latency that a share of the requests did not exceed.
func reached(all []wrk.Count, share float64) float64 {
	var total, passed int64
	for _, c := range all {
		total += c.Requests
	}
	for _, c := range all {
		if passed += c.Requests; float64(passed) >= share*float64(total) {
			return float64(c.Latency)
		}
	}
	return 0
}

// readK6 reads a run of k6.
func readK6(r k6.Report, _ string) (_ []measured, err error) {
	m := measured{
		tool: "k6", workload: web, params: result.Params{Connections: r.VUs, Engine: "k6"}, started: r.Started, trial: trial(r.Duration),
	}
	good := max(r.Requests-r.Failed, 0)
	t := &m.trial
	t.Transactions, t.Errors, t.Bytes = good, r.Failed, int64(r.Received)
	t.Bursts.Transactions, t.Bursts.Errors = []int64{good}, []int64{r.Failed}
	t.Bursts.Rate = []float64{float64(good) / r.Duration.Seconds()}
	if r.Received > 0 {
		t.Bursts.Throughput = []float64{float64(r.Received) * 8 / r.Duration.Seconds()}
	}
	latencies{r.Min, r.P50, r.P90, r.P99, r.Mean, r.Max}.set(&t.Bursts)
	if len(r.Latencies) > 0 {
		h := latency.NewHistogram()
		for _, ns := range r.Latencies {
			h.Record(int64(ns), 1)
		}
		t.Histogram, err = h.Encode()
	}
	return []measured{m}, err
}
