package oltp

import (
	"strings"
	"testing"
	"time"

	"netdelta/result"
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
		{result.Params{Connections: 257}, "oltp: connections 257 is out of range: 1 to 256"},
		{result.Params{Message: 1}, "oltp: message is no parameter of this workload; leave it out"},
		{result.Params{Search: true}, "oltp: rate is no parameter"},
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
	for _, at := range []workload.Place{{}, {Pod: nodes}, {Pod: -1}} {
		if _, err := serve(t.Context(), result.Params{}, at); err == nil {
			t.Errorf("a node was started at %+v", at)
		}
	}
	if _, err := dial(t.Context(), result.Params{}, workload.Place{Pod: -1}); err == nil {
		t.Error("a client was opened without a node")
	}
}

func TestReadVersion(t *testing.T) {
	for said, want := range map[string]string{
		"mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)\n": "",
		"mariadbd  Ver 11.8.2-MariaDB-1 for debian-linux-gnu on x86_64":                         "",
		"mysqld  Ver 10.3.39-MariaDB-0+deb10u2 for debian-linux-gnu on x86_64":                  "MariaDB 10.3.39 is too old: it has to be 10.5 or newer; install a newer mariadb-server-core",
		"mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)":                 "it has to be MariaDB",
	} {
		_, err := readVersion(said)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", said, err, want)
		}
	}
}

// well is what a node says that is.
const well = "wsrep_local_state_comment\tSynced\nwsrep_cluster_size\t3\nwsrep_cluster_status\tPrimary\nwsrep_ready\tON\n" +
	"wsrep_last_committed\t17\nwsrep_provider_version\t4.23(rXXXX)\nwsrep_evs_repl_latency\t0.0002/0.001/0.5/0.01/1000\n"

func TestStatus(t *testing.T) {
	s := readStatus(well)
	if ails := s.unwell(); ails != "" || s.committed != 17 || s.galera != "4.23" {
		t.Errorf("%+v: %q", s, ails)
	}
	want := result.Replication{Min: 200 * time.Microsecond, Mean: time.Millisecond, Max: 500 * time.Millisecond, Samples: 1000}
	if r := s.replication(); r == nil || *r != want {
		t.Errorf("replication %+v", r)
	}
	for change, ails := range map[[2]string]string{
		{"Primary", "non-Primary"}: "it has lost its quorum: it sees 3 of 3 nodes (non-Primary)",
		{"Synced", "Joining"}:      "it is not synced, but Joining",
		{"\tON", "\tOFF"}:          "it refuses statements (wsrep_ready is OFF)",
		{"size\t3", "size\t2"}:     "its cluster has 2 of 3 nodes",
	} {
		if got := readStatus(strings.Replace(well, change[0], change[1], 1)).unwell(); got != ails {
			t.Errorf("%v: %q, want %q", change, got, ails)
		}
	}
	for _, latency := range []string{"", "0/0/0/0/0", "1/2/3/4", "x/1/1/1/1", "-1/1/1/1/1", "NaN/1/1/1/1"} {
		if r := (status{latency: latency}).replication(); r != nil {
			t.Errorf("%q: %+v", latency, r)
		}
	}
	double := result.Replication{Min: 100 * time.Microsecond, Mean: 4 * time.Millisecond, Max: 5 * time.Millisecond, Samples: 500}
	both := merge(&want, &double)
	if *both != (result.Replication{Min: 100 * time.Microsecond, Mean: 2 * time.Millisecond, Max: 500 * time.Millisecond, Samples: 1500}) {
		t.Errorf("both are %+v", both)
	}
	if merge(nil, &want) != &want || merge(&want, nil) != &want || merge(nil, nil) != nil {
		t.Error("nothing beside something is something")
	}
	if r := between(&double, &want); *r != (result.Replication{Min: want.Min, Mean: want.Min, Max: want.Max, Samples: 500}) {
		t.Errorf("between them: %+v", r)
	}
	if between(&want, &want) != nil || between(nil, &want) != &want || between(&want, &double) != &double {
		t.Error("readings without a sample between them, and of figures that were cleared")
	}
}
