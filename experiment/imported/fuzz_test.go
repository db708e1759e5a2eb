package imported

import (
	"os"
	"testing"
)

// FuzzParse: whatever a file holds, it is an error or measurements that a run can keep.
func FuzzParse(f *testing.F) {
	for _, name := range []string{
		"iperf3/testdata/tcp.json", "sockperf/testdata/udp.txt", "netperf/testdata/omni.csv", "fio/testdata/two-jobs.json", "sysbench/testdata/no-histogram.txt",
		"wrk/testdata/plain.txt", "k6/testdata/summary.json",
	} {
		text, err := os.ReadFile("../../workload/tool/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "")
	}
	f.Add([]byte("THROUGHPUT=1\n"), "tcp-rr")
	f.Fuzz(func(t *testing.T, text []byte, workload string) {
		all, err := parse(text, workload)
		if err != nil {
			_ = located("file", err).Error()
			return
		}
		for _, m := range all {
			b := m.trial.Bursts
			if m.workload == "" || len(b.Round) != 1 || len(b.Duration) != 1 || b.Duration[0] <= 0 {
				t.Errorf("%+v", m)
			}
		}
	})
}
