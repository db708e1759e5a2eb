package oltp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
	"netdelta/workload/tool/sysbench"
)

func TestTargetParams(t *testing.T) {
	large := result.Params{Target: "mysql://u@db.shop.svc/sb", Own: result.OwnOf("mix", "point_select", "tables", 10, "rows", 10_000_000)}
	if err := check(large); err != nil {
		t.Error(err)
	}
	if put := demand(large).Put; put.Key != "10 tables of 10,000,000 rows" || put.Disk < 20*unit.GiB || put.Disk > 40*unit.GiB || put.Within < time.Hour {
		t.Errorf("put there is %+v", put)
	}
	for _, target := range []string{"http://web/", "mysql://u@db", "mysql://u:secret@db/x"} {
		if err := check(result.Params{Target: target}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v", target, err)
		}
	}
	if d := demand(result.Params{Target: "mysql://u@db/x"}); d.Cluster != nil || d.Burst != burst || !d.Opaque {
		t.Errorf("demands %+v", d)
	}
}

// TestTargetTables: what is dropped is what sysbench makes, and the mark after it.
func TestTargetTables(t *testing.T) {
	if got := dropping(galera.Usual()); got != "drop table if exists sbtest1, sbtest2, sbtest3, sbtest4; drop table if exists netdelta_marker" {
		t.Error(got)
	}
	run := sysbench.Run{Test: "oltp_read_write", Config: "/tmp/home-1/sysbench.cnf"}
	if !slices.Contains(run.Args(), "--config-file=/tmp/home-1/sysbench.cnf") {
		t.Errorf("got %q", run.Args())
	}
}

func TestDenied(t *testing.T) {
	for said, fix := range map[string]string{
		"ERROR 1045 (28000): Access denied for user 'u'@'h' (using password: NO)": "give the password by --target-password-file", "(using password: YES)": "has the user's password", "ERROR 1049 (42000): Unknown database 'x'": "netdelta makes none",
		"ERROR 1142 (42000): CREATE command denied": "grant the user create", "ERROR 1105 (HY000): prohibits a table without a primary key": "without a primary key",
		"ERROR 2002 (HY000): Can't connect": "the database's port", "other": "other",
	} {
		if err := mariadb().denied(errors.New(said)); !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: got %v", said, err)
		}
	}
	if got := marking(mark{text: "x"}); !strings.Contains(got, "primary key") {
		t.Errorf("strict clusters refuse the table of %q", got)
	}
}

// TestHoldUnknown: a database that does not let the user ask who answers is measured all the same, and the record says so. One that is away
// when its tables are to be dropped is asked again.
func TestHoldUnknown(t *testing.T) {
	require.Namespaces(t)
	programs := t.TempDir()
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	clientProgram := mariadb().client.Name
	for name, text := range map[string]string{
		clientProgram: `case "$*" in
*processlist*) echo "ERROR 1227 (42000): Access denied; you need the PROCESS privilege" >&2; exit 1;;
*"select version()"*) echo 5.0.1;;
*"drop table"*) echo "$*" >"$0.said"; [ -e "$0.up" ] || { : >"$0.up"; echo "ERROR 2002 (HY000): Can't connect" >&2; exit 1; };;
esac
`,
		sysbench.Program: `echo "$*" >"$0.said"`,
	} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	at := l.Addr().(*net.TCPAddr).AddrPort()
	held, err := hold(t.Context(), result.Params{Own: result.OwnOf("tables", 12, "rows", 3000)}, workload.Target{Scheme: workload.SchemeMySQL, User: "u", Host: "db", Path: "/x", Address: at.Addr(), Port: at.Port()})
	if err != nil {
		t.Fatal(err)
	}
	if says := held.Found().Says; !strings.HasPrefix(says, "5.0.1 on an unknown host") || !strings.Contains(says, "the PROCESS privilege") || strings.Contains(says, "\n") {
		t.Errorf("the record says %q", says)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	for program, says := range map[string]string{sysbench.Program: "--tables=12 --table-size=3000 --threads=8", clientProgram: "sbtest11, sbtest12; drop table if exists netdelta_marker"} {
		if said, err := os.ReadFile(filepath.Join(programs, program+".said")); err != nil || !strings.Contains(string(said), says) {
			t.Errorf("%s was told %q, %v; want %q", program, said, err, says)
		}
	}
}

// A connection that comes from elsewhere than it is made from has something before the database.
func TestBegun(t *testing.T) {
	at := netip.MustParseAddrPort("10.0.0.2:4711")
	for seen, want := range map[string]bool{
		"10.0.0.2:4711": true, "client.example:4711": true, "10.0.0.2": true, "::ffff:10.0.0.2:4711": true,
		"10.0.0.2:4712": false, "10.0.0.1:4711": false, "proxy.example:4712": false,
	} {
		if begun(at, seen) != want {
			t.Errorf("%s is %t", seen, !want)
		}
	}
}

// A mark says what becomes of the tables when no run uses them any more.
func TestMarks(t *testing.T) {
	of := tables{Data: galera.Data{Tables: 10, Rows: 3000}, from: kept}
	for text, frees := range map[string]string{
		marked(of, "RUN", false).text: "sbtest10; drop table if exists netdelta_marker", "an older release's": "sbtest4; drop table",
		marked(of, "RUN", true).text: "update netdelta_marker set mark = 'kept-10-3000' where mark = '10-RUN-kept-3000'",
	} {
		if m := readMark(text); m.text != text || m.run == "" || !strings.Contains(m.free(), frees) {
			t.Errorf("%q is %+v, freed by %s", text, m, m.free())
		}
	}
	if m := readMark(marked(of, "RUN", true).atRest().text); m.run != "" || !m.stays() || m.tables != 10 || m.rows != 3000 {
		t.Errorf("at rest: %+v", m)
	}
}

// What is put into a target is said with what becomes of it.
func TestPutSays(t *testing.T) {
	keys := map[string]bool{}
	for _, from := range []string{fresh, kept, prepared} {
		put := demand(result.Params{Target: "postgres://u@db/x", Own: result.OwnOf("data", from)}).Put
		if keys[put.Key] = true; put.After == "" || (put.Disk == 0) != (from == prepared) {
			t.Errorf("%s: %+v", from, put)
		}
	}
	if len(keys) != 3 {
		t.Errorf("one run may have %v", keys)
	}
	if err := check(result.Params{Own: result.OwnOf("data", kept)}); err == nil {
		t.Error("netdelta's own databases keep tables")
	}
}

// Clients refuse tables that have lost rows, or gained some.
func TestWhole(t *testing.T) {
	data := galera.Usual()
	for counts, says := range map[string]string{
		"25000\n25000\n25000\n25000": "", "25000\n25000\n24999\n25000": "table sbtest3 has 24999 rows", "25001\n25000\n25000\n25000": "table sbtest1", "25000": "1 tables were counted, not 4",
	} {
		if err := whole(counts, data); (says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", counts, err)
		}
	}
	if got := counting(data); strings.Count(got, "select count(*) from sbtest") != data.Tables {
		t.Error(got)
	}
}
