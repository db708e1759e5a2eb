package ssh_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/ssh"
)

// callers are the addresses that asked a web server which runs on a server already.
type callers struct {
	mu   sync.Mutex
	seen map[string]int
}

// serveWeb runs a web server on one of the farm's.
func (f *farm) serveWeb(t *testing.T, on int) (at string, c *callers) {
	t.Helper()
	c = &callers{seen: map[string]int{}}
	var l net.Listener
	must(t, f.inside[on].Do(func() (err error) {
		l, err = net.Listen("tcp", f.names[on]+":0")
		return err
	}))
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		c.mu.Lock()
		c.seen[host]++
		c.mu.Unlock()
		_, _ = w.Write(make([]byte, 300))
	})}
	ended := make(chan struct{})
	go func() {
		_ = web.Serve(l)
		close(ended)
	}()
	t.Cleanup(func() {
		_ = web.Close()
		<-ended
	})
	return fmt.Sprintf("http://%s/file", l.Addr()), c
}

// TestTarget: a web server that runs on one of the servers already is measured from another one, at its own address and from a namespace
// over its card; clients on the endpoint's own node are on its server. Nothing else of a lab reaches it.
func TestTarget(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	before := f.before(t)
	target, asked := f.serveWeb(t, 0)
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 1, rounds: 2").Replace(study)
	run, said := p.run(t, text, "--builds", "1", "--nodes", f.nodes(), "--nic", "macvlan:eth0,10.99.0.100/24", "--networks", "metal,host", "--target", target)
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	networks := map[string]bool{}
	for _, one := range contents.Trials {
		name, _, _ := strings.Cut(strings.Replace(one.Cell, "+twin", "", 1), "/")
		networks[name] = true
		if one.Failed != "" || one.Bursts.Transactions == nil {
			t.Errorf("%s: %s", one.Cell, one.Failed)
		}
	}
	if notes := strings.Join(run.Notes, "\n"); len(networks) != 2 || !strings.Contains(notes, target) {
		t.Errorf("there are trials of %v, and the notes are %s\n%s", networks, notes, said)
	}
	asked.mu.Lock()
	seen := asked.seen
	asked.seen = map[string]int{}
	asked.mu.Unlock()
	given := 0
	for host, n := range seen {
		at := netip.MustParseAddr(host)
		if own := at.Compare(netip.MustParseAddr("10.99.0.100")) >= 0; own && n > 1 {
			given++
		} else if host != f.names[1] && host != f.names[0] || n < 2 {
			t.Errorf("%s asked %d times", host, n)
		}
	}
	// Once it is looked at from its own server, before anything is measured.
	if given == 0 || seen[f.names[1]] <= seen[f.names[0]] {
		t.Errorf("clients asked from %v: want most from %s and addresses that were given", seen, f.names[1])
	}
	s, err := ssh.Open(t.Context(), f.options())
	must(t, err)
	for _, host := range []string{"server1", f.names[1], "10.98.0.2"} { // its own name, the user's, and an address of another card
		if site, err := s.Locate(t.Context(), host); err != nil || !slices.Equal(site.Nodes, f.names[1:]) {
			t.Errorf("an endpoint at %s stands on %v: %v", host, site.Nodes, err)
		}
	}
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: network.Metal, Target: f.names[1], Link: testbed.Link{MTU: serverMTU}})
	must(t, err)
	if pods := bed.Pods(); pods[0].Address().String() != f.names[1] || pods[1].Address().String() != f.names[0] {
		t.Errorf("the clients' addresses are %s on the endpoint's own server and %s on the other", pods[0].Address(), pods[1].Address())
	}
	if err := s.Supports(t.Context(), testbed.Spec{Network: "vxlan", Target: f.names[1]}); !errors.Is(err, testbed.ErrUnsupported) {
		t.Errorf("a tunnel to an endpoint: %v", err)
	}
	must(t, errors.Join(bed.Close(), s.Close()))
	f.unchanged(t, before, 5*time.Second)
}

// serveDatabase runs a MariaDB on one of the farm's servers, for a user with the password that password is the file of. Statements are run
// by its administrator.
func (f *farm) serveDatabase(t *testing.T, on int) (target, password string, query func(statements string) string) {
	t.Helper()
	server, client, install := require.Tool(t, "mariadbd"), require.Tool(t, "mariadb"), require.Tool(t, "mariadb-install-db")
	require.Tool(t, "sysbench")
	dir := t.TempDir()
	password, socket, data := filepath.Join(dir, "password"), "--socket="+filepath.Join(dir, "socket"), "--datadir="+filepath.Join(dir, "data")
	must(t, os.WriteFile(password, []byte(secret), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "init.sql"), []byte("create database bench;\ncreate user bench identified by '"+secret+"';\ngrant all on bench.* to bench;\n"), 0o600))
	small := []string{"--no-defaults", "--user=root", data, "--innodb-log-file-size=4M", "--innodb-buffer-pool-size=32M"}
	if out, err := exec.Command(install, append(small, "--auth-root-authentication-method=normal", "--skip-test-db")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := append([]string{fmt.Sprintf("--net=/proc/%d/ns/net", f.servers[on].Process.Pid), server}, small...)
	cmd := exec.Command("nsenter", append(args, socket, "--bind-address="+f.names[on], "--skip-name-resolve", "--userstat", "--innodb-flush-log-at-trx-commit=0",
		"--init-file="+filepath.Join(dir, "init.sql"))...)
	var said strings.Builder
	cmd.Stderr = &said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ask := func(statements string) (string, error) {
		out, err := exec.Command(client, "--no-defaults", socket, "--user=root", "--batch", "--skip-column-names", "--execute="+statements).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if err := require.Await(time.Minute, "the database answers", func() error {
		_, err := ask("use bench")
		return err
	}); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	return fmt.Sprintf("mysql://bench@%s/bench", f.names[on]), password, func(statements string) string {
		out, err := ask(statements)
		if err != nil {
			t.Fatalf("%s: %v: %s", statements, err, out)
		}
		return out
	}
}

// secret is a password that is nowhere else.
const secret = "S3cret,word"

// TestDatabaseTarget: a database that runs on one of the servers already is measured from the other one, at its own address and from a
// namespace over its card. Its password is not kept, and netdelta's tables are gone afterwards.
func TestDatabaseTarget(t *testing.T) {
	require.Long(t)
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	before := f.before(t)
	target, password, query := f.serveDatabase(t, 0)
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 1, rounds: 1", "[tcp-rr]", "[oltp]").Replace(study)
	run, said := p.run(t, text, "--builds", "1", "--nodes", f.nodes(), "--nic", "macvlan:eth0,10.99.0.100/24", "--networks", "metal,host", "--target", target,
		"--target-password-file", password)
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	for _, one := range contents.Trials {
		if one.Failed != "" || one.Errors > 0 || one.Transactions == 0 {
			t.Errorf("%s: %d transactions, %d errors, %s", one.Cell, one.Transactions, one.Errors, one.Failed)
		}
	}
	if notes := strings.Join(run.Notes, "\n"); len(contents.Trials) != 3 || !strings.Contains(notes, "MariaDB") || strings.Contains(notes, standsBefore) {
		t.Errorf("there are %d trials, want two of the baseline and one over the card, and the notes are %s\n%s", len(contents.Trials), notes, said)
	}
	// The tables are filled from the database's own server.
	asked := strings.Fields(query("select client from information_schema.client_statistics where client <> 'localhost' order by commit_transactions desc"))
	given := slices.ContainsFunc(asked, func(at string) bool { return netip.MustParseAddr(at).Compare(netip.MustParseAddr("10.99.0.100")) >= 0 })
	if len(asked) != 3 || asked[2] != f.names[0] || !slices.Contains(asked, f.names[1]) || !given {
		t.Errorf("transactions came from %q: want most from %s and addresses that were given", asked, f.names[1])
	}
	if left := query("select count(*) from information_schema.tables where table_schema = 'bench'"); left != "0" {
		t.Errorf("netdelta has left %s tables", left)
	}
	if out, err := exec.Command("grep", "-r", secret, filepath.Join(p.dir, "out")).CombinedOutput(); err == nil || strings.Contains(said, secret) {
		t.Errorf("the password is in %s%s", out, said)
	}
	f.unchanged(t, before, 5*time.Second)
}

// standsBefore is how it is said that connections do not reach a database as clients make them.
const standsBefore = "a proxy or a translation of addresses stands before it"

// serveProxy runs haproxy on one of the farm's servers, before the database of another one.
func (f *farm) serveProxy(t *testing.T, on int, target string) (before string) {
	t.Helper()
	program, config := require.Tool(t, "haproxy"), filepath.Join(t.TempDir(), "haproxy.cfg")
	server, err := url.Parse(target)
	must(t, err)
	at := f.names[on] + ":3307"
	must(t, os.WriteFile(config, fmt.Appendf(nil, "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\nlisten database\n  bind %s\n  server one %s:3306\n", at, server.Host), 0o600))
	cmd := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", f.servers[on].Process.Pid), program, "-db", "-f", config)
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if err := require.Await(30*time.Second, "haproxy answers", func() error {
		return f.inside[on].Do(func() error {
			c, err := net.Dial("tcp", at)
			if err == nil {
				err = c.Close()
			}
			return err
		})
	}); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	server.Host = at
	return server.String()
}

// TestDatabaseBehindProxy: a database that is reached through a proxy on another server is measured through it, and it is said that
// something stands before it.
func TestDatabaseBehindProxy(t *testing.T) {
	require.Long(t)
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	database, password, query := f.serveDatabase(t, 1)
	target := f.serveProxy(t, 0, database)
	text := strings.NewReplacer("builds: 6, rounds: 3", "builds: 1, rounds: 1", "[tcp-rr]", "[oltp]").Replace(study)
	run, said := p.run(t, text, "--builds", "1", "--nodes", f.nodes(), "--networks", "metal", "--target", target, "--target-password-file", password)
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	for _, one := range contents.Trials {
		if one.Failed != "" || one.Errors > 0 || one.Transactions == 0 {
			t.Errorf("%s: %d transactions, %d errors, %s", one.Cell, one.Transactions, one.Errors, one.Failed)
		}
	}
	notes := strings.Join(run.Notes, "\n")
	if len(contents.Trials) == 0 || !strings.Contains(notes, "sees a connection from "+f.names[0]) || !strings.Contains(notes, standsBefore) {
		t.Errorf("of %d trials the notes are %s\n%s", len(contents.Trials), notes, said)
	}
	if asked := query("select client from information_schema.client_statistics where client <> 'localhost'"); asked != f.names[0] {
		t.Errorf("transactions came from %q: want them from the proxy's %s", asked, f.names[0])
	}
}
