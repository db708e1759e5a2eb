package oltp_test

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// database is one of a user's own, in a pod of a lab, and an agent in another pod.
type database struct {
	agent  *agent.Agent
	target workload.Target
	query  func(statements string) string // as its administrator
}

const secret = "S3cret:word"

// own starts a database of a user's own.
func own(t *testing.T, scheme string) database {
	t.Helper()
	needed(t)
	bed, agents := probetest.Lab(t, testbed.Spec{Nodes: 1, PodsPerNode: 2, Network: "bridge", Link: testbed.Link{MTU: 1500}})
	at := bed.Pods()[1].Address()
	d := database{agent: agents[0], target: workload.Target{
		Scheme: scheme, User: "bench", Password: workload.NewSecret(secret), Host: at.String(), Address: at, Path: "/bench",
	}}
	var client []string
	switch scheme {
	case workload.SchemeMySQL:
		d.target.Port = 3306
		client = mariadb(t, agents[1], at)
	case workload.SchemePostgres:
		d.target.Port = 5432
		client = postgres(t, agents[1], at)
	}
	ask := func(statements string) (string, error) {
		out, err := exec.Command(client[0], append(client[1:], statements)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	require.NoError(t, require.Await(2*time.Minute, "the database answers", func() error {
		out, err := ask("select 1")
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}))
	d.query = func(statements string) string {
		t.Helper()
		said, err := ask(statements)
		if err != nil {
			t.Fatalf("%s: %v: %s", statements, err, said)
		}
		return said
	}
	return d
}

// inside runs a program in the network namespace of an agent's pod, and has it end by a signal at the end of the test.
func inside(t *testing.T, a *agent.Agent, end syscall.Signal, args ...string) {
	t.Helper()
	cmd := exec.Command(require.Tool(t, "nsenter"), append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", a.PID())}, args...)...)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
}

// mariadb starts a MariaDB and returns the command that runs statements in it.
func mariadb(t *testing.T, a *agent.Agent, at netip.Addr) []string {
	t.Helper()
	dir := t.TempDir()
	small := []string{"--no-defaults", "--user=root", "--datadir=" + filepath.Join(dir, "data"), "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M"}
	begin := filepath.Join(dir, "init.sql")
	require.NoError(t, os.WriteFile(begin, []byte("create database bench;\ncreate user bench identified by '"+secret+"';\ngrant all on bench.* to bench;\n"), 0o600))
	if out, err := exec.Command(require.Tool(t, "mariadb-install-db"), append(small, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	socket := "--socket=" + filepath.Join(dir, "socket")
	inside(t, a, syscall.SIGTERM, append(append([]string{require.Tool(t, "mariadbd")}, small...), socket, "--bind-address="+at.String(), "--skip-name-resolve", "--innodb-flush-log-at-trx-commit=0", "--init-file="+begin)...)
	return []string{require.Tool(t, "mariadb"), "--no-defaults", socket, "--user=root", "--batch", "--skip-column-names", "bench", "--execute"}
}

// postgres starts a PostgreSQL, which does not run as root, and returns the command that runs statements in it.
func postgres(t *testing.T, a *agent.Agent, at netip.Addr) []string {
	t.Helper()
	server := require.Tool(t, "postgres")
	server, err := filepath.EvalSymlinks(server)
	require.NoError(t, err)
	require.Tool(t, "psql")
	if os.Geteuid() != 0 {
		require.Need(t, "root, to start PostgreSQL as another user", false)
	}
	const user = 65534
	as := []string{require.Tool(t, "setpriv"), fmt.Sprintf("--reuid=%d", user), fmt.Sprintf("--regid=%d", user), "--clear-groups"}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(dir), 0o711)) // that user has to get there
	require.NoError(t, os.Chown(dir, user, user))
	data := filepath.Join(dir, "data")
	create := slices.Concat(as, []string{filepath.Join(filepath.Dir(server), "initdb"), "--pgdata=" + data, "--username=admin", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"})
	if out, err := exec.Command(create[0], create[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	access, err := os.OpenFile(filepath.Join(data, "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = access.WriteString("host bench bench all scram-sha-256\n")
	require.NoError(t, err)
	require.NoError(t, access.Close())
	inside(t, a, syscall.SIGINT, append(as, server, "-D", data, "-k", dir, "-h", at.String(), "-c", "fsync=off", "-c", "shared_buffers=16MB")...)
	client := []string{"psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--host=" + dir, "--username=admin"}
	for _, statement := range []string{"create role bench login password '" + secret + "'", "create database bench owner bench"} {
		require.NoError(t, require.Await(time.Minute, "the database answers", func() error {
			out, err := exec.Command(client[0], append(client[1:], "--dbname=postgres", "--command="+statement)...).CombinedOutput()
			if err != nil && !strings.Contains(string(out), "already exists") {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		}))
	}
	return append(client, "--dbname=bench", "--command")
}

// TestTablesOfTargets: tables are dropped with the run that has made them, kept for later runs, or taken as they are, as the study says; and
// transactions run on them.
func TestTablesOfTargets(t *testing.T) {
	require.Long(t)
	for _, scheme := range []string{workload.SchemeMySQL, workload.SchemePostgres} {
		t.Run(scheme, func(t *testing.T) { testTables(t, own(t, scheme)) })
	}
}

func testTables(t *testing.T, d database) {
	with := func(pairs ...any) result.Params {
		return result.Params{Connections: 2, Own: result.OwnOf(append([]any{"tables", 2, "rows", 1000}, pairs...)...)}
	}
	hold := func(says string, p result.Params) (session int) {
		t.Helper()
		held, err := d.agent.Hold(t.Context(), "oltp", p, d.target, patience)
		switch {
		case err != nil:
			t.Fatal(err)
		case !strings.Contains(held.Found.Says, says) || strings.Contains(held.Found.Says, "unknown host"):
			t.Errorf("it says %q, want %q", held.Found.Says, says)
		}
		return held.Session
	}
	refused := func(says string, p result.Params) {
		t.Helper()
		if _, err := d.agent.Hold(t.Context(), "oltp", p, d.target, patience); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("held: %v, want %q", err, says)
		}
	}
	release := func(session int) {
		t.Helper()
		require.NoError(t, d.agent.Release(t.Context(), session))
	}
	tables := func(want string) {
		t.Helper()
		if got := d.query("select count(*) from information_schema.tables where table_name like 'sbtest%' or table_name = 'netdelta_marker'"); got != want {
			t.Errorf("there are %s tables, want %s", got, want)
		}
	}
	fresh := hold("dropped at the end", with())
	client, err := d.agent.DialTarget(t.Context(), "oltp", with(), d.target, -1, patience)
	require.NoError(t, err)
	b, err := d.agent.Burst(t.Context(), client, engine.BurstSpec{Duration: time.Second, Deadline: patience})
	if err != nil || b.Transactions == 0 || b.P50 <= 0 {
		t.Errorf("a burst: %+v, %v", b, err)
	}
	if _, err := d.agent.Collect(t.Context(), client, false); err != nil {
		t.Error(err)
	}
	require.NoError(t, d.agent.Drop(t.Context(), client))
	release(fresh)
	tables("0")

	kept := hold("stay there for later runs", with("data", "kept"))
	refused("another run of netdelta uses this database", with("data", "kept"))
	release(kept)
	tables("3")
	if mark := d.query("select mark from netdelta_marker"); mark != "kept-2-1000" {
		t.Errorf("they are marked %q", mark)
	}
	d.query("update sbtest1 set pad = 'as it was' where id = 1")
	kept = hold("that an earlier run has left", with("data", "kept"))
	if pad := d.query("select pad from sbtest1 where id = 1"); strings.TrimSpace(pad) != "as it was" {
		t.Errorf("the tables were made anew: %q", pad)
	}
	// What uses them is lost: another agent frees them by the mark.
	mark := d.query("select mark from netdelta_marker")
	require.NoError(t, d.agent.Clear(t.Context(), "oltp", d.target, mark))
	if mark := d.query("select mark from netdelta_marker"); mark != "kept-2-1000" {
		t.Errorf("they are marked %q", mark)
	}
	release(kept)
	refused("say data: kept", with())
	refused("rows: 1000", with("data", "kept", "rows", 2000))

	d.query("drop table netdelta_marker")
	refused("data: prepared", with())
	refused("number 1000", with("data", "prepared", "rows", 2000))
	refused("2 of them are there", with("data", "prepared", "tables", 3))
	release(hold("that were there", with("data", "prepared")))
	tables("2")
}
