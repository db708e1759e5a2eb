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

// TestAgreesWithOtherTools holds the engines against the plain loop, sockperf and iperf3 in the same namespaces: they
// measure the same thing, so they must agree within what a busy machine does to them.
func TestAgreesWithOtherTools(t *testing.T) {
	require.Namespaces(t)
	require.Tool(t, "gcc")
	require.Tool(t, "taskset")
	p, err := prepare()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(p.folder); err != nil {
			t.Error(err)
		}
	})
	o := options{rounds: 1, burst: 20 * time.Millisecond, size: 64}
	for _, protocol := range []string{"tcp", "udp"} {
		t.Run(protocol+"-rr", func(t *testing.T) {
			require.Tool(t, "sockperf")
			agree(t, 0.7, 1.3, func(ends *namespaces, s *sheet) error { return latencies(t.Context(), o, p, ends, protocol, s) })
		})
	}
	for _, flows := range []int{1, 4} {
		t.Run(fmt.Sprintf("tcp-stream of %d", flows), func(t *testing.T) {
			require.Tool(t, "iperf3")
			agree(t, 0.7, 1.5, func(ends *namespaces, s *sheet) error { return streams(t.Context(), o, p, ends, flows, s) })
		})
	}
}

// agree tries up to three times whether all ratios of a measurement lie within bounds.
func agree(t *testing.T, least, most float64, measure func(*namespaces, *sheet) error) {
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

func compare(t *testing.T, least, most float64, measure func(*namespaces, *sheet) error) (problem string) {
	ends, err := newNamespaces()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := ends.close(); err != nil {
			t.Error(err)
		}
	}()
	s := newSheet()
	if err := measure(ends, s); err != nil {
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

// TestAlign finds turns in a log whose clock is ahead, runs slow, and shows a pause that was no turn's.
func TestAlign(t *testing.T) {
	ms := time.Millisecond
	turns := []span{{0, 20 * ms}, {70 * ms, 90 * ms}, {120 * ms, 140 * ms}, {200 * ms, 220 * ms}}
	want := foreignClock{rate: 0.97, offset: 3 * time.Second}
	packets := []packet{{at: want.at(-100 * ms)}}
	for i, turn := range turns {
		for at := turn.begin; at < turn.end; at += ms {
			if i == 2 && at > turn.begin+5*ms {
				at += 13 * ms // the processor was taken away
			}
			packets = append(packets, packet{at: want.at(at)})
		}
	}
	got, err := align(packets, turns)
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		if off := (got.at(turn.begin) - want.at(turn.begin)).Abs(); off > 4*ms {
			t.Errorf("turn at %v is off by %v", turn.begin, off)
		}
	}
	if _, err := align(packets[:3], turns); err == nil {
		t.Error("turns were found where there are none")
	}
}
