package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/internal/latency"
	"netdelta/internal/native"
	"netdelta/stats"
)

// line is one comparison: what it should be, and what it was.
type line struct {
	name, unit string
	target     float64 // 0 for none
	atLeast    bool    // the target is a lower bound
	ours       []float64
	theirs     []float64 // empty: ours is held against the target itself
}

// sheet gathers the comparisons, in the order in which they are printed.
type sheet struct{ lines []*line }

func loopName(protocol string) string { return protocol + "-rr p50 / C loop" }

func newSheet(size int) *sheet {
	s := &sheet{lines: []*line{
		{name: loopName("tcp"), unit: "us", target: 1.03},
		{name: loopName("udp"), unit: "us", target: 1.03},
	}}
	for _, c := range contests(size) {
		for _, f := range c.figures {
			s.lines = append(s.lines, &line{name: c.lineName(f), unit: f.unit, target: f.target, atLeast: f.atLeast})
		}
	}
	s.lines = append(s.lines, &line{name: "recording one latency", unit: "ns", target: 40})
	return s
}

func (s *sheet) add(name string, ours, theirs float64) {
	i := slices.IndexFunc(s.lines, func(l *line) bool { return l.name == name })
	s.lines[i].ours = append(s.lines[i].ours, ours)
	s.lines[i].theirs = append(s.lines[i].theirs, theirs)
}

// ratios returns ours divided by theirs for each pair, or ours where a value has no pair.
func (l *line) ratios() []float64 {
	ratios := slices.Clone(l.ours)
	for i := range l.theirs {
		ratios[i] /= l.theirs[i]
	}
	return ratios
}

// print writes the table and returns how many targets were surely missed: the whole interval lies on the wrong side.
func (s *sheet) print(w io.Writer) (missed int) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "what\tratio\t95% interval\tquartiles\ttarget\tours\ttheirs\tpairs\t")
	for _, l := range s.lines {
		ratios := l.ratios()
		if len(ratios) == 0 {
			_, _ = fmt.Fprintf(t, "%s\tnot measured: the program is missing\t\t\t\t\t\t\t\n", l.name)
			continue
		}
		low, high := medianInterval(ratios)
		middle := stats.Median(ratios)
		aim := "none"
		if l.target > 0 {
			surely, sign, missing := low, "<=", func(v float64) bool { return v > l.target }
			if l.atLeast {
				surely, sign, missing = high, ">=", func(v float64) bool { return v < l.target }
			}
			verdict := "met"
			switch {
			case missing(surely):
				verdict, missed = "MISSED", missed+1
			case missing(middle):
				verdict = "not resolved"
			}
			aim = fmt.Sprintf("%s %.2f %s", sign, l.target, verdict)
		}
		theirs := ""
		if len(l.theirs) > 0 {
			theirs = scaled(stats.Quantile(l.theirs, 0.5), l.unit)
		}
		_, _ = fmt.Fprintf(t, "%s\t%.4g\t[%.4g, %.4g]\t[%.4g, %.4g]\t%s\t%s\t%s\t%d\t\n", l.name, middle, low, high,
			stats.Quantile(ratios, 0.25), stats.Quantile(ratios, 0.75), aim, scaled(stats.Quantile(l.ours, 0.5), l.unit), theirs, len(ratios))
	}
	_ = t.Flush()
	return missed
}

func scaled(v float64, unit string) string {
	switch unit {
	case "us", "k/s":
		v /= 1e3
	case "Gbit/s":
		v /= 1e9
	}
	return fmt.Sprintf("%.2f %s", v, unit)
}

// medianInterval is the 95% interval of a median: between two order statistics, or the whole range when there are too few values.
func medianInterval(values []float64) (low, high float64) {
	low, high, ok := stats.MedianInterval(values, 0.95)
	if !ok {
		return slices.Min(values), slices.Max(values)
	}
	return low, high
}

// cpuTime is the processor time of this thread, which is what counts on a busy machine.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(ts.Nano())
}

// recording measures what one latency costs: taking it in the loop, and after the burst its share of quantiles and
// histogram.
func recording(s *sheet) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	arena, err := native.NewArena(native.Reserved(unsafe.Sizeof(latency.Recorder{})) + latency.Memory)
	if err != nil {
		panic(err)
	}
	r := (*latency.Recorder)(arena.Take(unsafe.Sizeof(latency.Recorder{})))
	c := clock.System()
	r.Open(arena, c)
	histogram, batch := latency.NewHistogram(), &latency.Batch{}
	const burst = 2000
	// Latencies of a real kind: around 10 microseconds, with a tail.
	values := make([]int64, burst)
	for i := range values {
		values[i] = c.Span(time.Duration(7000 + 3000*math.Abs(math.Sin(float64(i*i))) + 1e5*math.Pow(float64(i%97)/97, 40)))
	}
	for range 50 {
		begin := cpuTime()
		for range 20 {
			r.Reset()
			for _, v := range values {
				r.Record(v)
			}
			batch.Take(r)
			histogram.Add(batch)
		}
		spent := float64(cpuTime()-begin) / (20 * burst)
		l := s.lines[len(s.lines)-1]
		l.ours = append(l.ours, spent)
	}
	_ = arena.Free()
}
