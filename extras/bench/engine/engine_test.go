package main

import (
	"fmt"
	"os"
	"testing"
	"time"

	"netdelta/extras/bench/harness"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/stats"
)

func TestMain(m *testing.M) {
	harness.Children()
	os.Exit(leak.Main(m))
}

// TestAgreesWithOtherToolsWhenQuiet holds the engines against the plain loop, sockperf and iperf3 in the same pods: they
// measure the same thing, so they must agree within what a busy machine does to them.
func TestAgreesWithOtherToolsWhenQuiet(t *testing.T) {
	require.Quiet(t)
	require.Namespaces(t)
	require.Tool(t, "gcc")
	reference, err := compile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := options{turns: 16, burst: 20 * time.Millisecond, size: 64}
	for _, protocol := range []string{"tcp", "udp"} {
		t.Run(protocol, func(t *testing.T) {
			agree(t, 0.7, 1.3, func(e *ends, s *sheet) error { return e.againstLoop(t.Context(), o, reference, protocol, s) })
		})
	}
	for _, c := range contests(o.size) {
		least, most := 0.7, 1.3
		switch c.program {
		case "iperf3":
			most = 1.5
		case "wrk":
			continue // clients of HTTP need not agree
		}
		t.Run(c.name, func(t *testing.T) {
			require.Tool(t, c.program)
			agree(t, least, most, func(e *ends, s *sheet) error { return e.againstProgram(t.Context(), c, 1, s) })
		})
	}
}

// agree tries up to three times whether all ratios of a measurement lie within bounds.
func agree(t *testing.T, least, most float64, measure func(*ends, *sheet) error) {
	t.Helper()
	for try := 1; ; try++ {
		problem := compare(t, least, most, measure)
		if problem == "" {
			return
		}
		if try == 3 {
			t.Fatal(problem)
		}
		t.Logf("try %d: %s", try, problem)
	}
}

func compare(t *testing.T, least, most float64, measure func(*ends, *sheet) error) (problem string) {
	e, err := open(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	s := newSheet(64)
	if err := measure(e, s); err != nil {
		return err.Error()
	}
	compared := 0
	for _, l := range s.lines {
		if len(l.ours) == 0 {
			continue
		}
		compared++
		middle := stats.Median(l.ratios())
		t.Logf("%s: %.3f", l.name, middle)
		if middle < least || middle > most {
			problem += fmt.Sprintf("%s is %.3f, want %.2f to %.2f. ", l.name, middle, least, most)
		}
	}
	if compared == 0 {
		return "nothing could be compared"
	}
	return problem
}

func TestMedianInterval(t *testing.T) {
	var values []float64
	for i := range 101 {
		values = append(values, float64((i*37)%101))
	}
	// 101 values: the order statistics are 50 -+ 1.96 sqrt(101)/2, about 10.
	if low, high := medianInterval(values); low != 40 || high != 60 || stats.Median(values) != 50 {
		t.Errorf("median %v [%v, %v] of 0 to 100", stats.Median(values), low, high)
	}
	if low, high := medianInterval([]float64{2, 1}); low != 1 || high != 2 {
		t.Errorf("interval of two values: [%v, %v]", low, high)
	}
}
