package ssh_test

import (
	"context"
	"errors"
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

	"github.com/vishvananda/netlink"

	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed/servers"
	"netdelta/testbed/ssh"
)

// program is the whole of netdelta in the controller's namespace, with the ssh of the servers as its own.
type program struct {
	*lan
	dir  string
	path string
}

func newProgram(t *testing.T, f *lan) *program {
	t.Helper()
	dir := filepath.Join(f.folder, "bin")
	must(t, os.Mkdir(dir, 0o755))
	p := &program{f, t.TempDir(), build(t, "netdelta", dir)}
	must(t, os.Symlink(f.program, filepath.Join(dir, "netdelta-agent")))
	wrapper := "#!/bin/sh\nexec " + strings.Join(f.command[2:], " ") + " \"$@\"\n"
	original, err := exec.LookPath("ssh")
	must(t, err)
	wrapper = strings.Replace(wrapper, "exec ssh", "exec "+original, 1)
	must(t, os.WriteFile(filepath.Join(dir, "ssh"), []byte(wrapper), 0o755))
	return p
}

// nodes are the servers as --nodes names them.
func (l *lan) nodes() string {
	return ssh.Prefix + strings.Join(l.names, ","+ssh.Prefix)
}

func (p *program) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.lan.command[0], append([]string{p.lan.command[1], filepath.Join(filepath.Dir(p.path), "netdelta")}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(p.path)+":"+os.Getenv("PATH"))
	return cmd
}

const study = `study: small
baseline: metal
networks: [metal, host, routed, vxlan]
placement: [cross-node]
workloads: [tcp-rr]
testbed: {kind: ssh}
design: {burst: 2ms, builds: 6, rounds: 3, time_budget: 90s}
`

// run runs a study and returns its record, and what was printed.
func (p *program) run(t *testing.T, study string, args ...string) (result.Run, string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(study), 0o600))
	out, err := p.command(t.Context(), append([]string{"run", "small.yaml", "--quiet", "--out", "out"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run, err := result.Load(filepath.Join(p.dir, "out"))
	must(t, err)
	return run, string(out)
}

// TestRun: a study runs on servers. Each trial is proven to have gone its way, the baseline is held against itself, both ends' processor
// time is there, what the doctor finds on a server is in the record and on the page, and the servers are as they were.
func TestRun(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	before := f.before(t)
	run, said := p.run(t, study, "--builds", "6", "--nodes", f.nodes())
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	trials := contents.Trials
	if len(trials) < 30 { // the baseline is there twice
		t.Errorf("there are %d trials, want 6 builds of 4 networks, the baseline twice", len(trials))
	}
	for _, one := range trials {
		if one.Failed != "" {
			t.Errorf("%s failed: %s", one.Cell, one.Failed)
		}
		// Both ends of a round trip do about the same: each times itself.
		if spent := insight.Spent(one); spent.Server < spent.Client/2 || spent.Server > 2*spent.Client || spent.Transactions == 0 {
			t.Errorf("%s used processor time of %+v", one.Cell, spent)
		}
	}
	told := slices.DeleteFunc(slices.Clone(run.Deltas), func(d result.Delta) bool { return d.Metric != "cpu" || d.RatioLow == nil })
	if len(told) != 3 {
		t.Errorf("%d networks have an interval for their processor time, want 3", len(told))
	}
	if len(run.Deltas) == 0 || len(run.Environment.Servers) != 2 {
		t.Errorf("there are %d deltas, and the servers are %+v", len(run.Deltas), run.Environment.Servers)
	}
	if w := run.Environment.Ways; len(w) != 1 || w[0] != (result.Way{Between: f.names[0], And: f.names[1], MTU: serverMTU, Device: serverMTU}) {
		t.Errorf("the ways between the servers are %+v", w)
	}
	if c := run.Environment.Servers[1].CPU; c.Isolated != "1" || !strings.Contains(strings.Join(run.Notes, "\n"), "(CPU 1 isolated)") {
		t.Errorf("the processors of %s are %+v, and the notes %q", f.names[1], c, run.Notes)
	}
	clock := "clock on " + f.names[1]
	if found := run.Environment.Findings; !slices.ContainsFunc(found, func(f result.Finding) bool { return f.Topic == clock }) {
		t.Errorf("the doctor's findings are %+v", found)
	}
	shown, err := os.ReadFile(filepath.Join(p.dir, "out", "report.html"))
	for _, says := range []string{clock, "between the servers packets of 1500 bytes arrive"} {
		if err != nil || !strings.Contains(string(shown), says) {
			t.Errorf("the page does not show %q: %v", says, err)
		}
	}
	if !strings.Contains(said, "null check") || !strings.Contains(said, "path proved in") || strings.Contains(said, "no card") {
		t.Errorf("the run says %s", said)
	}
	f.unchanged(t, before, 5*time.Second)
}

// TestKilled: a controller that is killed leaves nothing on the servers.
func TestKilled(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(strings.NewReplacer("builds: 6, rounds: 3", "builds: 500, rounds: 5, margin: 0%", "baseline: metal", "baseline: host", "[metal, ", "[").Replace(study)), 0o600))
	before := f.before(t)
	cmd := p.command(t.Context(), "run", "small.yaml", "--quiet", "--out", "out", "--nodes", f.nodes(), "--nic", "take:eth1+eth2")
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	if err := require.Await(time.Minute, "there is a trial", func() error {
		contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
		if err == nil && len(contents.Trials) == 0 {
			err = errors.New("there is none")
		}
		return err
	}); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, said.String())
	}
	must(t, cmd.Process.Signal(syscall.SIGKILL))
	_ = cmd.Wait()
	f.unchanged(t, before, time.Minute)
}

// TestVia: the study names the card and the processors, and what a server sends over another one than that is misrouted.
func TestVia(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	for i := range 2 { // both answer for all their addresses on every card, as Linux does
		f.on(t, i, fmt.Sprintf("ip route add 10.98.0.%d/32 dev eth0 src 10.98.0.%d", 2-i, i+1))
	}
	before := f.before(t)
	text := strings.NewReplacer("{kind: ssh}", "{kind: ssh, nic: \"macvlan:eth1\", cpu: {client: 1, server: 0}}", "[metal, host, routed, vxlan]", "[metal, host]").Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	said, _ := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "1", "--out", "out", "--nodes", f.nodes()).CombinedOutput()
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	seen := map[string]bool{}
	for _, one := range contents.Trials {
		if one.ClientCPU != 1 || one.ServerCPU != 0 {
			t.Errorf("%s: the ends ran on processors %d and %d", one.Cell, one.ClientCPU, one.ServerCPU)
		}
		if one.Path == nil {
			t.Fatalf("%s: no path, %s", one.Cell, one.Failed)
		}
		network, _, _ := strings.Cut(strings.Replace(one.Cell, "+twin", "", 1), "/")
		seen[network] = true
		if findings := strings.Join(one.Path.Findings, "; "); one.Path.OK != (network == "host") || network == "metal" && !strings.Contains(findings, "eth1") {
			t.Errorf("%s: %v, %s", one.Cell, one.Path.OK, findings)
		}
	}
	if len(seen) != 2 {
		t.Errorf("there are trials of %v\n%s", seen, said)
	}
	f.unchanged(t, before, 5*time.Second)
}

// TestStreamsOfMetal: the baseline and its A/A control send datagrams at the same time from one namespace, each from a port of its own.
func TestStreamsOfMetal(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	text := strings.NewReplacer("[metal, host, routed, vxlan]", "[metal]", "[tcp-rr]", "[{udp-stream: {rate: 20Mbit/s}}]").Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	said, _ := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "2", "--out", "out", "--nodes", f.nodes()).CombinedOutput()
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	if err != nil || len(contents.Trials) != 4 {
		t.Fatalf("there are %d trials, %v\n%s", len(contents.Trials), err, said)
	}
	for _, one := range contents.Trials {
		if one.Failed != "" {
			t.Errorf("%s: %s", one.Cell, one.Failed)
		}
	}
}

// TestWays: the record says how large packets can be between servers, over the cards that their nodes have, and the doctor's finding is in it where that
// is less than a card takes.
func TestWays(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 3)
	must(t, f.between.Do(func() error { return errors.Join(narrow("port2-0", 1400), narrow("port2-1", 4000)) })) // a switch that carries less than the cards
	before := f.before(t)
	for _, c := range []struct {
		nic          servers.NIC
		narrow, wide int
		found        int // the server's own card has 1500
	}{
		{servers.NIC{Mode: "macvlan", Addresses: netip.MustParsePrefix("fd00:99::10/64")}, 1400, 1500, 2}, // and so over IPv6
		{servers.NIC{Mode: "take", Card: "eth1+eth2"}, 4000, 9000, 0},
	} {
		o := f.options()
		o.NIC = c.nic
		s, err := ssh.Open(t.Context(), o)
		must(t, err)
		e, notes, err := s.Capabilities().Describe(t.Context(), result.Environment{})
		must(t, err)
		if len(e.Ways) != 3 {
			t.Fatalf("%s: the ways are %+v", c.nic.Mode, e.Ways)
		}
		usual := e.Ways[1]
		const tag = 4 // of a VLAN, for which there may be room
		if usual.MTU < c.narrow || usual.MTU > c.narrow+tag || usual.MTU != e.Ways[2].MTU || e.Ways[0].MTU != c.wide || usual.Device != c.wide || usual.Why != "" {
			t.Errorf("%s: the ways are %+v", c.nic.Mode, e.Ways)
		}
		for _, one := range e.Servers {
			if cards := append([]result.ServerCard{one.ServerCard}, one.Further...); c.nic.Mode == "take" && (len(cards) != 2 || cards[0].Card != "eth1" || cards[1].Card != "eth2" || cards[1].Driver != "veth" || cards[1].MTU == 0) {
				t.Errorf("the cards of %s are %+v", one.Name, cards)
			}
		}
		said := strings.Join(notes, "\n")
		for _, says := range []string{
			fmt.Sprintf("between the servers packets of up to %d bytes arrive, though the cards take %d", usual.MTU, c.wide),
			fmt.Sprintf("between %s and %s packets of %d bytes arrive", f.names[0], f.names[1], c.wide),
		} {
			if !strings.Contains(said, says) {
				t.Errorf("%s: %q is not in %s", c.nic.Mode, says, said)
			}
		}
		if len(e.Findings) != c.found {
			t.Errorf("%s: the findings are %+v", c.nic.Mode, e.Findings)
		}
		must(t, s.Close())
	}
	f.unchanged(t, before, 5*time.Second)
}

// narrow gives a device of the calling thread's namespace an MTU.
func narrow(name string, mtu int) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(link, mtu)
}

// TestRecipe: what the README and docs/servers.md say of servers works as it is written there, and cleanup finds what a killed supervisor left.
func TestRecipe(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	config := filepath.Join(f.folder, "config")
	text, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, fmt.Appendf(nil, "Host a\n  HostName %s\nHost b\n  HostName %s\n%s", f.names[0], f.names[1], text), 0o600))
	p := newProgram(t, f.lan)
	before := f.before(t)
	said := func(line string, more ...string) string {
		words := strings.Fields(line)
		out, err := p.command(t.Context(), append(words[1:], more...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	if out := said(recipe(t, "README.md", "netdelta run --testbed ssh"), "--quiet", "--builds", "2", "--rounds", "3", "--time-budget", "5m", "--workloads", "tcp-rr", "--factor", "message=300"); !strings.Contains(out, "null check") || !strings.Contains(out, "vxlan") {
		t.Errorf("the run says %s", out)
	}
	if out := said(recipe(t, "docs/servers.md", "netdelta doctor --testbed ssh")); !strings.Contains(out, "take:eth1 works") {
		t.Errorf("the doctor says %s", out)
	}
	const left = "/tmp/netdelta-00112233445566aa"
	f.on(t, 1, "mkdir -m 700 "+left+" && printf 00000000-1-1-1 >"+left+"/owner") // as of a boot before
	// Any user of the server may have made this one, and wants root to write a file.
	const planted = "/tmp/netdelta-00112233445566bb"
	f.on(t, 1, "echo precious >/run/precious; mkdir -m 700 "+planted+" && printf 00000000-1-1-1 >"+planted+"/owner && "+
		`printf '[{"name":"eth9/0","made":"/run/precious"}]' >`+planted+"/card.json && chown -R daemon: "+planted)
	if out := said(recipe(t, "docs/servers.md", "netdelta cleanup --nodes")); !strings.Contains(out, "removed directory "+left) || strings.Contains(out, planted) {
		t.Errorf("the cleanup says %s", out)
	}
	if got := f.on(t, 1, "cat /run/precious; rm -r "+planted); got != "precious\n" {
		t.Errorf("a file that another user named is %q", got)
	}
	f.unchanged(t, before, 10*time.Second)
}

// recipe is the first command of a page that begins so, without its comment.
func recipe(t *testing.T, page, begins string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", page))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, begins) {
			command, _, _ := strings.Cut(line, " #")
			return command
		}
	}
	t.Fatalf("%s has no command that begins with %s", page, begins)
	return ""
}

// TestWorkloads: round trips, connections, streams and HTTP run between servers.
func TestWorkloads(t *testing.T) {
	t.Parallel()
	testWorkloads(t, 2, "[tcp-rr, udp-rr, tcp-crr, tcp-stream, {udp-stream: {rate: 20Mbit/s}}, http]", 6)
}

// TestClusters: daemons that are found on the servers serve blocks and a database across them, while networks are swapped beneath.
func TestClusters(t *testing.T) {
	require.Long(t)
	t.Parallel()
	testWorkloads(t, 4, "[block, {oltp: {tables: 1, rows: 1000}}]", 2)
}

// testWorkloads measures some workloads on so many servers, and finds these as they were.
func testWorkloads(t *testing.T, count int, workloads string, kinds int) {
	t.Helper()
	f := newFarm(t, count)
	p := newProgram(t, f.lan)
	before := f.before(t)
	text := strings.NewReplacer("[tcp-rr]", workloads, "[metal, host, routed, vxlan]", "[routed, vxlan]", "baseline: metal", "baseline: routed", "builds: 6, rounds: 3", "builds: 1, rounds: 1").Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	said, err := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "1", "--out", "out", "--nodes", f.nodes()).CombinedOutput()
	contents, failed := result.LoadTrials(filepath.Join(p.dir, "out"))
	if failed != nil {
		t.Fatalf("%v: %v\n%s", failed, err, said)
	}
	done := map[string]int{}
	for _, one := range contents.Trials {
		if one.Failed != "" {
			t.Errorf("%s: %s", one.Cell, one.Failed)
			continue
		}
		done[strings.Split(one.Cell, "/")[2]]++
	}
	if len(done) != kinds {
		t.Errorf("there are trials of %v\n%s", done, said)
	}
	f.unchanged(t, before, 10*time.Second)
}

// TestMetalInBlocks: the servers' own network is measured while others are swapped beside it; a condition that it can't be under is named, and the
// rest is measured. A study that was made for a lab leaves out its links' rates where that network is the baseline.
func TestMetalInBlocks(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	before := f.before(t)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(strings.NewReplacer(
		"[metal, host, routed, vxlan]", "[host, routed]", "[tcp-rr]", "[{tcp-rr: {link.rate: [100Mbit/s]}}, {tcp-rr: {policy: [none, nftables]}}]",
		"{kind: ssh}", "{kind: lab}", "baseline: metal", "baseline: host").Replace(study)), 0o600))
	said, err := p.command(t.Context(), "run", "small.yaml", "--quiet", "--out", "out", "--testbed", "ssh", "--baseline", "metal", "--blocks", "2", "--nodes", f.nodes()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	run, err := result.Load(filepath.Join(p.dir, "out"))
	must(t, err)
	for _, c := range run.Cells {
		guarded := c.Params.Conditions.Policy == "nftables"
		if c.Network != "host" && guarded != strings.Contains(c.Unsupported, "network metal is not possible with policy=nftables:10") { // host can't be swapped there
			t.Errorf("%s: %q", c.ID, c.Unsupported)
		}
	}
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	metal := 0
	for _, one := range contents.Trials {
		if one.Failed != "" || one.Path == nil || !one.Path.OK {
			t.Errorf("%s: %s, %+v", one.Cell, one.Failed, one.Path)
		}
		if strings.HasPrefix(one.Cell, "metal") {
			metal++
		}
	}
	if metal != 4 || !strings.Contains(string(said), "link.rate") {
		t.Errorf("there are %d trials of metal, want it twice in each of 2 blocks\n%s", metal, said)
	}
	f.unchanged(t, before, 5*time.Second)
}

// TestDatabaseOverMetal: a replicated database is measured over the servers' own network and over another one, by a study that was made for a lab.
func TestDatabaseOverMetal(t *testing.T) {
	require.Long(t)
	t.Parallel()
	for _, program := range []string{"mariadbd", "sysbench"} {
		require.Tool(t, program)
	}
	f := newFarm(t, 4)
	p := newProgram(t, f.lan)
	before := f.before(t)
	said, err := p.command(t.Context(), "run", "database", "--quiet", "--out", "out", "--testbed", "ssh", "--baseline", "metal", "--networks", "metal,routed",
		"--workloads", "oltp", "--factor", "mix=update_index", "--blocks", "2", "--time-budget", "3m", "--nodes", f.nodes()).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
	must(t, err)
	networks := map[string]int{}
	for _, one := range contents.Trials {
		if one.Failed != "" || one.Path == nil || !one.Path.OK || one.Transactions == 0 {
			t.Errorf("%s: %d transactions, %s, %+v", one.Cell, one.Transactions, one.Failed, one.Path)
		}
		network, _, _ := strings.Cut(one.Cell, "/")
		networks[network]++
	}
	if networks["metal"] == 0 || networks["routed"] == 0 {
		t.Errorf("there are trials of %v\n%s", networks, said)
	}
	f.unchanged(t, before, 20*time.Second)
}
