package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/servers"
	"netdelta/testbed/ssh"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
)

// guests are SSH servers that are machines with kernels of their own. Each has the card mgmt, by which it is reached, and the cards data and
// more, each on a switch of its own. Of two guests the card data has virtual functions.
type guests struct {
	*lan
	image    image.Image
	machines []vm.Machine
	booted   []*vm.Guest
}

// serverFiles are the SSH server's program with its libraries, and who its users are.
func serverFiles(t *testing.T, folder string) []vm.File {
	t.Helper()
	users := filepath.Join(folder, "passwd")
	must(t, os.WriteFile(users, []byte("root:x:0:0:root:/:/bin/sh\nsshd:x:100:65534::/run/sshd:/bin/false\n"), 0o644))
	files := []vm.File{{Host: "/usr/sbin/sshd", Guest: "/usr/sbin/sshd"}, {Host: users, Guest: "/etc/passwd"}}
	out, err := exec.Command("ldd", "/usr/sbin/sshd").Output()
	must(t, err)
	for _, found := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllStringSubmatch(string(out), -1) {
		files = append(files, vm.File{Host: found[1], Guest: found[1]})
	}
	return files
}

func newGuests(t *testing.T, count int) *guests {
	t.Helper()
	require.Guests(t)
	i, err := image.Build(t.Context(), image.Options{})
	var lacks *testbed.UnsupportedError
	if errors.As(err, &lacks) {
		require.Need(t, lacks.Need, false)
	}
	must(t, err)
	g := &guests{lan: newLAN(t), image: i, booted: make([]*vm.Guest, count)}
	files := serverFiles(t, g.folder)
	for n := range g.booted {
		dir, _ := g.add(t)
		m := vm.Machine{Program: g.program, Archives: []image.Archive{image.Base}, Memory: 512 << 20, Files: append([]vm.File{{Host: dir, Guest: "/server"}}, files...)}
		for c, to := range []string{"lan", "spare", "other"} {
			m.Links = append(m.Links, vm.Link{MAC: guestMAC(n, c), End: g.tap(t, fmt.Sprintf("tap%d-%d", n, c), to), Tap: true, Functions: to == "spare" && count == 2})
		}
		g.machines = append(g.machines, m)
	}
	g.reach(t)
	var both errgroup.Group
	for n := range g.booted {
		both.Go(func() error { return g.boot(t, n) })
	}
	must(t, both.Wait())
	t.Cleanup(func() {
		for _, b := range g.booted {
			_ = b.Close() // it ends with the test in any case
		}
	})
	for n := range g.booted {
		g.await(t, n)
	}
	return g
}

func guestMAC(guest, card int) string { return fmt.Sprintf("52:54:00:09:%02x:%02x", guest, card) }

// tap makes a tap device at a switch of the controller's.
func (l *lan) tap(t *testing.T, name, at string) (end *os.File) {
	t.Helper()
	must(t, l.between.Do(func() error {
		bridge, err := netlink.LinkByName(at)
		if err != nil {
			return err
		}
		tap := &netlink.Tuntap{
			LinkAttrs: netlink.LinkAttrs{Name: name}, Mode: unix.IFF_TAP, Flags: unix.IFF_NO_PI | unix.IFF_VNET_HDR, Queues: 1, NonPersist: true,
		}
		if err := netlink.LinkAdd(tap); err != nil {
			return err
		}
		end = tap.Fds[0]
		return errors.Join(netlink.LinkSetMTU(tap, 9000), netlink.LinkSetMaster(tap, bridge), netlink.LinkSetUp(tap))
	}))
	t.Cleanup(func() { _ = end.Close() })
	return end
}

// startServer names the cards of a guest, gives them addresses and becomes the SSH server.
const startServer = `exec 2>&1; set -e
name() { until card=$(grep -l "^$1$" /sys/class/net/*/address); do sleep 0.1; done; card=${card%%/address}; ip link set "${card##*/}" name $2; }
name %[1]s mgmt; name %[2]s data; name %[5]s more
ip addr add %[3]s/24 dev mgmt; ip link set mgmt up
ip addr add %[4]s/24 dev data; ip link set data up
for card in mgmt data; do until [ "$(cat /sys/class/net/$card/operstate)" = up ]; do sleep 0.1; done; done
mkdir -p /run/sshd /run/server; cp /server/* /run/server/
exec /usr/sbin/sshd -D -e -f /run/server/sshd_config`

// boot boots a guest, at first or again.
func (g *guests) boot(t *testing.T, n int) error {
	b, err := vm.Boot(t.Context(), g.image, g.machines[n])
	if err != nil {
		return err
	}
	g.booted[n] = b
	text := fmt.Sprintf(startServer, guestMAC(n, 0), guestMAC(n, 1), g.names[n], g.data(n), guestMAC(n, 2))
	log, err := os.Create(filepath.Join(g.folder, fmt.Sprintf("server%d", n), "log"))
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = log.Close() })
	_, err = b.Exec(context.WithoutCancel(t.Context()), vm.Command{Path: "/bin/sh", Args: []string{"-c", text}, Stdout: log})
	return err
}

// data is the address of a guest's card for data.
func (g *guests) data(n int) string { return fmt.Sprintf("10.98.0.%d", n+1) }

// on runs a shell command in a guest, without SSH, and returns what it says.
func (g *guests) on(t *testing.T, n int, command string) string {
	t.Helper()
	var said bytes.Buffer
	p, err := g.booted[n].Exec(t.Context(), vm.Command{Path: "/bin/sh", Args: []string{"-c", command}, Stdout: &said})
	must(t, err)
	if err := errors.Join(p.CloseWrite(), p.Wait()); err != nil {
		t.Fatalf("%s: %v: %s%s", command, err, said.String(), p.Stderr())
	}
	return said.String()
}

// state is what must be the same before and after.
func (g *guests) state(t *testing.T, n int) string {
	t.Helper()
	return g.on(t, n, `ip -d link | grep -v promiscuity; ip -4 addr | grep inet; ip route show table all | grep -v 'fe80\|ff00' | sort
cat /sys/class/net/data/device/sriov_numvfs; ls /tmp; ls -A /run/netdelta-servers 2>/dev/null; ps | grep -c '[n]etdelta-agent'; true`)
}

// unchanged fails where a guest is not what it was. Guests are emulated, and time passes in them as outside: how soon servers are what they
// were is asserted of those that are not.
func (g *guests) unchanged(t *testing.T, before []string) {
	t.Helper()
	for n, want := range before {
		if err := require.Await(2*time.Minute, fmt.Sprintf("server %d is what it was", n), func() error { return same(want, g.state(t, n)) }); err != nil {
			t.Error(err)
		}
	}
}

// TestServersInGuests: servers with kernels of their own have ipvlan devices over bonds and virtual functions, and one that starts again in the middle of
// a run, with a card taken, costs the builds under way.
func TestServersInGuests(t *testing.T) {
	g := newGuests(t, 2)
	before := []string{g.state(t, 0), g.state(t, 1)}
	for _, c := range []struct{ nic, carries, takes, refuses string }{
		{"ipvlan:pair,10.98.0.128/25", "vxlan", "wireguard", "routed"},
		{"vf:data/0", "host", "geneve", "ebpf-routed"},
	} {
		t.Run(c.nic, func(t *testing.T) {
			nic, err := servers.ParseNIC(c.nic)
			must(t, err)
			if nic.Card == "pair" {
				g.bond(t)
			}
			o := g.options()
			o.NIC = nic
			s, err := ssh.Open(t.Context(), o)
			must(t, err)
			testCarries(t, s, c.carries, nic)
			must(t, s.Supports(t.Context(), testbed.Spec{Network: c.takes}))
			_, impossible := errors.AsType[*network.NotPossibleError](s.Supports(t.Context(), testbed.Spec{Network: c.refuses}))
			if !impossible {
				t.Errorf("network %s is not refused", c.refuses)
			}
			if nic.Card == "pair" {
				testBonded(t, g, s)
			}
			must(t, s.Close())
			g.unchanged(t, before)
		})
	}
	t.Run("starts again", func(t *testing.T) { testStartsAgain(t, g, before) })
}

// bond makes a bond of the data cards of both guests, over which they are reached at the same addresses.
func (g *guests) bond(t *testing.T) {
	t.Helper()
	for n := range g.booted {
		g.on(t, n, fmt.Sprintf(`set -e; ip addr flush dev data; ip link set data down
ip link add pair type bond mode balance-xor xmit_hash_policy layer3+4; ip link set data master pair; ip link set pair up; ip addr add %s/24 dev pair`, g.data(n)))
	}
}

// testBonded: the record says how a bond shares what it sends, and bonds are not taken. Then the bonds end.
func testBonded(t *testing.T, g *guests, s *servers.Servers) {
	t.Helper()
	e, _, err := s.Capabilities().Describe(t.Context(), result.Environment{})
	if err != nil || e.Servers[1].Card != "pair" || e.Servers[1].Bond != "balance-xor, layer3+4" {
		t.Errorf("the servers are %+v: %v", e.Servers, err)
	}
	must(t, s.Close())
	o := g.options()
	o.NIC = servers.NIC{Mode: "take", Card: "pair"}
	if _, err := ssh.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "a bond can't leave its network namespace") {
		t.Errorf("a bond that is to be taken: %v", err)
	}
	for n := range g.booted { // the module makes bond0 when it is loaded
		g.on(t, n, fmt.Sprintf("set -e; ip link del pair; ip link del bond0 || true; ip link set data up; ip addr add %s/24 dev data", g.data(n)))
	}
}

// testCarries: packets of full size get from a pod on one server to one on the other.
func testCarries(t *testing.T, s *servers.Servers, name string, nic servers.NIC) {
	t.Helper()
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: name})
	if err != nil {
		t.Errorf("network %s: %v", name, err)
		return
	}
	defer func() { must(t, bed.Close()) }()
	at := bed.Instruments().Observer
	pods := bed.Pods()
	must(t, at.Fit(t.Context(), pods[0], pods[1], at.Plan().PathMTU(0, 1)))
	if node := at.Plan().Nodes[1]; nic.Addresses.IsValid() && !nic.Addresses.Contains(node) {
		t.Errorf("the node has the address %s, given were ones of %s", node, nic.Addresses)
	}
}

// testStartsAgain: a server is switched off while a run has a card of it, and starts again; the run goes on, and says so.
func testStartsAgain(t *testing.T, g *guests, before []string) {
	p := newProgram(t, g.lan)
	text := strings.NewReplacer("{kind: ssh}", "{kind: ssh, nic: \"take:data\"}", "[metal, host, routed, vxlan]", "[host, routed]", "baseline: metal", "baseline: host",
		"builds: 6, rounds: 3, time_budget: 90s", "builds: 3, rounds: 2, time_budget: 15m").Replace(study)
	must(t, os.WriteFile(filepath.Join(p.dir, "small.yaml"), []byte(text), 0o600))
	cmd := p.command(t.Context(), "run", "small.yaml", "--quiet", "--builds", "3", "--out", "out", "--nodes", g.nodes())
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	must(t, cmd.Start())
	trials := func() []result.Trial {
		contents, err := result.LoadTrials(filepath.Join(p.dir, "out"))
		if err != nil {
			return nil // it has not begun
		}
		return contents.Trials
	}
	if err := require.Await(10*time.Minute, "there is a trial", func() error {
		if len(trials()) == 0 {
			return errors.New("there is none")
		}
		return nil
	}); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("%v: %s", err, said.String())
	}
	must(t, g.booted[1].Close())
	must(t, g.boot(t, 1))
	_ = cmd.Wait() // it says that trials have failed
	run, err := result.Load(filepath.Join(p.dir, "out"))
	must(t, err)
	failed, after := 0, 0
	for _, one := range trials() {
		switch {
		case one.Failed != "":
			failed++
		case failed > 0:
			after++
		}
	}
	for _, s := range run.Environment.Servers {
		if len(s.InterruptCounts) != 2 || s.InterruptCounts[0]+s.InterruptCounts[1] == 0 {
			t.Errorf("the processors of %s took %d interrupts of its cards", s.Name, s.InterruptCounts)
		}
	}
	if failed == 0 || after == 0 || !strings.Contains(strings.Join(run.Notes, "\n"), "node1 was lost") {
		t.Errorf("%d trials failed, and %d after them did not; the notes are %q\n%s", failed, after, run.Notes, said.String())
	}
	g.unchanged(t, before)
}
