package rows

import (
	"slices"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/unit"
)

// The parameters of real workloads, what bounded a trial and what its server measured are columns; a share that could not be
// read is null.
func TestBehindColumns(t *testing.T) {
	params := result.Params{
		Engine: "wrk", File: 600, Reconnect: true,
		Own: result.OwnOf("store", "ceph", "operation", "randwrite", "block", unit.Bytes(4096), "depth", 16, "mix", "read_write"), Clients: 3,
	}
	run := result.Run{Run: "r", Cells: []result.Cell{{ID: "c", Workload: "block", Params: params}}}
	trial := result.Trial{
		Cell: "c", Errors: 2, Bound: &result.Bound{By: "cpu", Link: -1, CPU: 0.97, Disk: 0},
		Disk: &result.Disk{Rate: 5e4, P50: 20 * time.Microsecond}, Replication: &result.Replication{Mean: time.Millisecond},
		Bursts: result.Bursts{Round: []int{0}, Rate: []float64{1234}, Errors: []int64{2}},
	}
	for row := range Trials(run, result.List{trial}) {
		l := row.Level
		if l.Engine != "wrk" || l.File != 600 || !l.Reconnect || l.Store != "ceph" || l.Operation != "randwrite" || l.Block != 4096 ||
			l.Depth != 16 || l.Clients != 3 || l.Mix != "read_write" {
			t.Errorf("the levels are %+v", l)
		}
		if row.Errors != 2 || row.Bound != "cpu" || row.LinkShare != nil || *row.CPUShare != 0.97 || *row.DiskShare != 0 {
			t.Errorf("the bound is %q with %v, %v, %v", row.Bound, row.LinkShare, row.CPUShare, row.DiskShare)
		}
		if *row.DiskRate != 5e4 || *row.DiskP50 != 20_000 || *row.Replication != 1e6 {
			t.Errorf("the disk has %v and %v, replication takes %v", *row.DiskRate, *row.DiskP50, *row.Replication)
		}
	}
	for row := range Trials(run, result.List{{Cell: "c"}}) {
		if row.Bound != "" || row.CPUShare != nil || row.DiskRate != nil || row.Replication != nil {
			t.Errorf("a trial of which nothing is known has %+v", row)
		}
	}
	for row := range Bursts(run, result.List{trial}) {
		if *row.Rate != 1234 || *row.Errors != 2 {
			t.Errorf("the burst has %v and %v", *row.Rate, *row.Errors)
		}
	}
	run.Deltas = []result.Delta{{Cell: "c", Bound: "disk"}}
	rows := slices.Collect(Deltas(run))
	if len(rows) != 1 || rows[0].Bound != "disk" {
		t.Errorf("the deltas are %+v", rows)
	}
}
