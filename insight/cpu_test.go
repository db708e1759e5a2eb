package insight_test

import (
	"math"
	"testing"

	"netdelta/insight"
	"netdelta/result"
)

// spend gives each burst of a world's trials processor time: so much for each transaction, and on some networks more.
func spend(trials []result.Trial, more map[string]float64) {
	for i := range trials {
		t := &trials[i]
		b := &t.Bursts
		for range b.Round {
			each := 10_000 * (1 + more[t.Cell])
			b.Work, b.Moved = append(b.Work, 100), append(b.Moved, 60_000)
			b.ClientCPU = append(b.ClientCPU, int64(60*each))
			b.ServerCPU = append(b.ServerCPU, int64(30*each))
			b.KernelCPU = append(b.KernelCPU, int64(10*each))
		}
	}
}

func TestCPUPerTransactionIsADelta(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	spend(trials, map[string]float64{"bridge": 0.25})
	// What a disturbed burst took does not count.
	trials[0].Bursts.Disturbed[3], trials[0].Bursts.ClientCPU[3] = "preempted", 1<<40
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	found := 0
	for _, d := range deltas {
		if d.Metric != insight.MetricCPU {
			continue
		}
		found++
		want := 1.0
		if d.Network == "bridge" {
			want = 1.25
		}
		if math.Abs(d.Ratio-want) > 1e-9 || d.Unit != "ns" || math.Abs(d.BaselineValue-10_000) > 1e-6 {
			t.Errorf("%s: ratio %v of %v %s, want %v of 10000 ns", d.Network, d.Ratio, d.BaselineValue, d.Unit, want)
		}
	}
	if found != 3 {
		t.Errorf("%d deltas of the processor time, want one for each of 3 networks", found)
	}
}

// What the kernel does in no thread's name is not known of other machines: the figure is then of both ends.
func TestCPUWithoutTheKernels(t *testing.T) {
	w := usual()
	trials := w.trials(t)
	spend(trials, nil)
	for i := range trials {
		trials[i].Bursts.KernelCPU = nil
	}
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	found := 0
	for _, d := range deltas {
		if d.Metric == insight.MetricCPU {
			found++
			if math.Abs(d.BaselineValue-9_000) > 1e-6 {
				t.Errorf("%s is held against %v ns, want 9000 of both ends", d.Network, d.BaselineValue)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d deltas of the processor time, want one for each of 3 networks", found)
	}
}

func TestCPUOfAStreamIsPerGigabyte(t *testing.T) {
	w := usual()
	w.stream = true
	trials := w.trials(t)
	spend(trials, nil)
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	for _, d := range deltas {
		// 100 transactions of 10 us for 60 kB are 1 ms, and 16.7 s for a gigabyte.
		if d.Metric == insight.MetricCPU && (d.Unit != "s/GB" || math.Abs(d.BaselineValue-1e6/60e3) > 1e-9) {
			t.Errorf("%v %s, want 16.7 s/GB", d.BaselineValue, d.Unit)
		}
	}
}

func TestTrialsWithoutCPUHaveNoSuchDelta(t *testing.T) {
	w := usual()
	deltas, _, _ := insight.Deltas(w.cells(), w.trials(t), insight.Options{})
	for _, d := range deltas {
		if d.Metric == insight.MetricCPU {
			t.Fatalf("a delta of %s came from nothing", d.Metric)
		}
	}
}

// A search sends too much on purpose: what that takes is in no figure, neither as a delta nor drawn.
func TestSearchesHaveNoCPU(t *testing.T) {
	w := usual()
	w.stream = true
	trials := w.trials(t)
	spend(trials, nil)
	if all := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Spendings(w.cells()[0].Setting()); len(all) == 0 {
		t.Fatal("streams have no processor time: the test shows nothing")
	}
	for i := range trials {
		trials[i].Bursts.NoDrop = trials[i].Bursts.Throughput
	}
	deltas, _, _ := insight.Deltas(w.cells(), trials, insight.Options{})
	for _, d := range deltas {
		if d.Metric == insight.MetricCPU {
			t.Errorf("a search has a delta of %s for %s", d.Metric, d.Network)
		}
	}
	if all := insight.Gather(w.cells(), insight.Summarize(result.List(trials))).Spendings(w.cells()[0].Setting()); len(all) > 0 {
		t.Errorf("searches are drawn with processor time: %+v", all)
	}
}
