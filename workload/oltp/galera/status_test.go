package galera

import (
	"strings"
	"testing"
	"time"

	"netdelta/result"
	"netdelta/workload"
)

func TestServeRefuses(t *testing.T) {
	for _, at := range []workload.Member{{}, {Pod: Nodes}, {Pod: -1}} {
		if _, err := Serve(t.Context(), at, Usual()); err == nil {
			t.Errorf("a node was started at %+v", at)
		}
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

func TestTelling(t *testing.T) {
	for line, want := range map[string]bool{
		"0 [ERROR] WSREP: Will never receive state. Need to abort.":                                                        true,
		"0 [Warning] WSREP: 0.0 (node0): State transfer to 2.0 (node2) failed: Connection refused":                         true,
		"0 [Note] WSREP: 0.0 (node0): State transfer to 2.0 (node2) complete.":                                             false,
		"0 [Note] WSREP: Member 2.0 (node2) requested state transfer from '*any*'. Selected 0.0 (node0)(SYNCED) as donor.": false,
	} {
		if telling.MatchString(line) != want {
			t.Errorf("%s: want %v", line, want)
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
}
