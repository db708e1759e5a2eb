package oltp

import (
	"strings"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

func TestCheck(t *testing.T) {
	for _, p := range []result.Params{{}, Workload().Defaults, {Own: result.OwnOf("mix", "write_only"), Connections: 256, CPU: "any"}} {
		if err := Workload().Check(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, c := range []struct {
		params result.Params
		want   string
	}{
		{result.Params{Own: result.OwnOf("mix", "delete")}, `oltp: mix "delete" is unknown: read_write, point_select, update_index, write_only`},
		{result.Params{Own: result.OwnOf("tables", 65)}, "oltp: tables 65 is out of range: 1 to 64"},
		{result.Params{Own: result.OwnOf("rows", 99)}, "oltp: rows 99 is out of range: 100 to 100000000"},
		{result.Params{Connections: 257}, "oltp: connections 257 is out of range: 1 to 256"},
		{result.Params{Message: 1}, "oltp: message is no parameter of this workload; leave it out"},
		{result.Params{Search: true}, "oltp: rate: search is no parameter"},
		{result.Params{RequestRate: 1}, "oltp: request rate is no parameter"},
		{result.Params{CongestionControl: "bbr"}, "oltp: congestion control is no parameter"},
		{result.Params{Nagle: true}, "oltp: nagle is no parameter"},
		{result.Params{BusyPoll: time.Microsecond}, "oltp: busy poll is no parameter"},
		{result.Params{CPU: "same"}, `oltp: cpu "same"`},
		{result.Params{Own: result.OwnOf("store", "nbd")}, "oltp: store is no parameter"},
	} {
		if err := Workload().Check(c.params); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.params, err, c.want)
		}
	}
	if _, err := serve(t.Context(), result.Params{}, workload.Member{}); err == nil {
		t.Error("a node was started nowhere")
	}
	if _, err := dial(t.Context(), result.Params{}, workload.Member{Pod: -1}); err == nil {
		t.Error("a client was opened without a node")
	}
}

// What holds other tables is another cluster, which takes memory for them.
func TestTables(t *testing.T) {
	usual, same := demand(result.Params{}), demand(result.Params{Own: result.OwnOf("tables", 4, "rows", 25_000)})
	if usual.Memory != same.Memory || usual.Cluster.Key != same.Cluster.Key {
		t.Errorf("the usual tables are %+v and %+v", usual, same)
	}
	large := demand(result.Params{Own: result.OwnOf("tables", 10, "rows", 10_000_000)})
	if large.Cluster.Key == usual.Cluster.Key || large.Memory < 3*25*unit.GiB || large.Memory > 3*32*unit.GiB {
		t.Errorf("ten tables of ten million rows are %+v", large)
	}
}

func TestReplication(t *testing.T) {
	want := result.Replication{Min: 200 * time.Microsecond, Mean: time.Millisecond, Max: 500 * time.Millisecond, Samples: 1000}
	double := result.Replication{Min: 100 * time.Microsecond, Mean: 4 * time.Millisecond, Max: 5 * time.Millisecond, Samples: 500}
	both := merge(&want, &double)
	if *both != (result.Replication{Min: 100 * time.Microsecond, Mean: 2 * time.Millisecond, Max: 500 * time.Millisecond, Samples: 1500}) {
		t.Errorf("both are %+v", both)
	}
	if merge(nil, &want) != &want || merge(&want, nil) != &want || merge(nil, nil) != nil {
		t.Error("nothing next to something is something")
	}
	if r := between(&double, &want); *r != (result.Replication{Min: want.Min, Mean: want.Min, Max: want.Max, Samples: 500}) {
		t.Errorf("between them: %+v", r)
	}
	if between(&want, &want) != nil || between(nil, &want) != &want || between(&want, &double) != &double {
		t.Error("readings without a sample between them, and of figures that were cleared")
	}
}
