package foreign

import (
	"os"
	"testing"
	"time"

	"netdelta/workload/tool/netperf"
)

// TestNetperfOutput: what netperf is documented to print becomes a burst.
func TestNetperfOutput(t *testing.T) {
	read := func(name string) netperf.Report {
		t.Helper()
		text, err := os.ReadFile("../tool/netperf/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		all, err := netperf.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	b := perf(read("omni.csv"), 64)
	if b.Transactions != 277801 || b.Bytes != 277801*128 || b.P50 != 34e3 || b.Max != 6655e3 || b.Duration != 10*time.Second || b.Throughput < 28.4e6 || b.Throughput > 28.5e6 {
		t.Errorf("%+v", b)
	}
	r := read("omni.txt")
	if b := perf(r, 128<<10); b.Throughput != 9412.35e6 || b.Bytes != 11765437500 || r.Retransmits != 17 || b.Sent != 0 {
		t.Errorf("%+v", b)
	}
	if dataPort(20003) != 20503 || dataPort(20503) != 20003 {
		t.Error("the ports of a test are not apart")
	}
}
