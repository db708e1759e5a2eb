package ssh_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/servers"
	"netdelta/testbed/ssh"
	"netdelta/testbed/testbedtest"
)

// TestFaults: what keeps a server from being a node is named with its fix, and nothing is left on any server. Where it is one of more servers
// than it takes, the rest goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 3)
	before := f.before(t)
	with := func(change func(*ssh.Options)) ssh.Options {
		o := f.options()
		o.Nodes, o.Command = slices.Clone(o.Nodes), slices.Clone(o.Command)
		change(&o)
		return o
	}
	other := filepath.Join(f.folder, "other_hosts")
	wrong, err := os.ReadFile(filepath.Join(f.folder, "server0", "host_key.pub"))
	must(t, err)
	must(t, os.WriteFile(other, fmt.Appendf(nil, "%s\n%s %s", strings.Replace(f.known.String(), f.names[1], "elsewhere", 1), f.names[1], wrong), 0o600))
	old := filepath.Join(f.folder, "old")
	must(t, os.WriteFile(old, []byte("#!/bin/sh\necho 'netdelta-agent: netdelta starts this program where it measures; on its own it only tells its --version' >&2\nexit 2\n"), 0o700))
	full := func(on bool) {
		if on {
			f.on(t, 1, "dd if=/dev/zero of=/tmp/ballast bs=1M 2>/dev/null; true")
		} else {
			f.on(t, 1, "rm /tmp/ballast")
		}
	}
	user := func(on bool) { // one who may log in, and no more
		if on {
			f.on(t, 1, "chmod 755 /run/server; sed 's#^daemon:.*#daemon:x:1:1::/tmp:/bin/sh#' /etc/passwd >/run/passwd; mount --bind /run/passwd /etc/passwd; chmod 644 /run/server/authorized_keys")
		} else {
			f.on(t, 1, "umount /etc/passwd; rm /run/passwd; chmod 600 /run/server/authorized_keys; chmod 700 /run/server")
		}
	}
	damaging := func(on bool) { // what is written there is not what came
		if on {
			f.on(t, 1, `printf '#!/bin/sh\necho 0123456789abcdef\n' >/run/sum; chmod 755 /run/sum; mount --bind /run/sum "$(readlink -f "$(command -v sha256sum)")"`)
		} else {
			f.on(t, 1, `umount "$(readlink -f "$(command -v sha256sum)")"; rm /run/sum`)
		}
	}
	chatty := func(on bool) { // its shell talks before anything else, and does not stop
		if on {
			f.on(t, 1, `printf '#!/bin/sh\necho welcome; exec yes\n' >/run/chatty; chmod 755 /run/chatty; sed 's#^root:.*#root:x:0:0::/root:/run/chatty#' /etc/passwd >/run/passwd; mount --bind /run/passwd /etc/passwd`)
		} else {
			f.on(t, 1, "umount /etc/passwd; rm /run/passwd /run/chatty")
		}
	}
	for _, c := range []struct {
		name   string
		change func(*ssh.Options)
		around func(on bool)
		least  int // how many servers it takes: with 2 the fault is the second one's alone
		says   []string
	}{
		{"refused", func(o *ssh.Options) { o.Nodes[1].Port = 23 }, nil, 2, []string{f.names[1] + ":23", "Connection refused", "name its port"}},
		{"too few", func(o *ssh.Options) { o.Nodes[1].Port = 23 }, nil, 3, []string{f.names[1] + ":23", "Connection refused"}},
		{"host key", func(o *ssh.Options) { o.Command = append(o.Command, "-o", "UserKnownHostsFile="+other) }, nil, 2, []string{f.names[1], "Host key verification failed", "ssh-keygen -R"}},
		{"no login", func(o *ssh.Options) { o.Command = append(o.Command, "-o", "PubkeyAuthentication=no") }, nil, 0, []string{"Permission denied", "ssh-copy-id"}},
		{"no sudo", func(o *ssh.Options) { o.Nodes[1].Host, o.Sudo = "daemon@"+f.names[1], true }, user, 2, []string{"daemon@" + f.names[1], "sudo -n is refused", "name a user who is root"}},
		{"damaged", func(*ssh.Options) {}, damaging, 0, []string{f.names[1], "arrived damaged"}},
		{"endless login", func(*ssh.Options) {}, chatty, 2, []string{f.names[1], "no end to what it says at a login", `begin with "welcome`}},
		{"full disk", func(*ssh.Options) {}, full, 2, []string{f.names[1], "No space left on device", "free 20 MB"}},
		{"other version", func(o *ssh.Options) { o.Program = func(string) (string, error) { return old, nil } }, nil, 0, []string{f.names[0], f.names[1], "another version"}},
		{"no such card", func(o *ssh.Options) { o.NIC = servers.NIC{Mode: "take", Card: "eth7"} }, nil, 0, []string{"no card eth7", "eth0, eth1, eth2"}},
		{"its only card", func(o *ssh.Options) { o.NIC = servers.NIC{Mode: "take", Card: "eth0"} }, nil, 0, []string{"eth0", "SSH connection goes over it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "no sudo" {
				require.Tool(t, "sudo")
			}
			if c.around != nil {
				c.around(true)
				defer c.around(false)
			}
			o := with(c.change)
			o.Least = c.least
			s, err := ssh.Open(t.Context(), o)
			said := fmt.Sprint(err)
			if rest := c.least == 2; rest != (err == nil) {
				t.Fatalf("with %d servers at least it ends in: %v", c.least, err)
			} else if rest {
				said = f.goesOn(t, s)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not said in: %s", want, said)
				}
			}
		})
	}
	f.unchanged(t, before, 10*time.Second)
}

// goesOn holds that nodes on all servers but the second reach each other, and returns the notes.
func (f *farm) goesOn(t *testing.T, s *servers.Servers) string {
	t.Helper()
	e, notes, err := s.Capabilities().Describe(t.Context(), result.Environment{})
	must(t, err)
	must(t, s.Close())
	if w := e.Ways; len(e.Servers) != 2 || len(w) != 1 || w[0] != (result.Way{Between: f.names[0], And: f.names[2], MTU: serverMTU, Device: serverMTU}) {
		t.Errorf("the servers are %+v, and the ways between them %+v", e.Servers, w)
	}
	said := strings.Join(notes, "\n")
	if !strings.Contains(said, "is left out: ") {
		t.Errorf("that a server is left out is not said in: %s", said)
	}
	return said
}

// TestJump: a server behind another one is reached through it, as the user's configuration says, and one connection carries everything.
func TestJump(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	before := f.before(t)
	o := f.options()
	o.Nodes = o.Nodes[1:]
	config := filepath.Join(f.folder, "config")
	text, err := os.ReadFile(config)
	must(t, err)
	must(t, os.WriteFile(config, fmt.Appendf(nil, "Host behind\n  HostName %s\n  ProxyJump %s\n%s", f.names[1], f.names[0], text), 0o600))
	o.Nodes[0].Host = "behind"
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	from := strings.Fields(f.on(t, 1, "ss -Htn state established '( sport = :22 )' | awk '{print $4}'"))
	if len(from) != 1 || !strings.HasPrefix(from[0], f.names[0]+":") {
		t.Errorf("the server behind has connections from %v, want one from %s", from, f.names[0])
	}
	must(t, errors.Join(bed.Close(), s.Close()))
	f.unchanged(t, before, 10*time.Second)
}

// TestLost: a server that is lost fails what is asked of it; a node and a supervisor that are killed leave nothing that cleanup does not
// find, and the other servers are as they were.
func TestLost(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 3)
	before := f.before(t)
	o := f.options()
	o.Silence = 8 * time.Second
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 3, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	// Its node ends with it; the folder is removed by the shell that started both.
	f.on(t, 0, "pkill -9 -f '[n]etdelta-agent server ..do'")
	// The connection of the second one is cut without a word, as by a firewall.
	f.on(t, 1, "ip link set eth0 down")
	_, err = bed.Links(t.Context())
	if err == nil {
		t.Error("a server that is lost still answers")
	}
	done := make(chan error, 1)
	go func() { done <- errors.Join(bed.Close(), s.Close()) }()
	select {
	case err = <-done:
		if err == nil || !strings.Contains(err.Error(), f.names[1]) {
			t.Errorf("a server that was cut off is left without an error that names it: %v", err)
		}
	case <-time.After(90 * time.Second):
		t.Fatal("closing hangs")
	}
	f.on(t, 1, "ip link set eth0 up")
	for _, c := range servers.Clean(t.Context(), f.options().Machines()) {
		if c.Err != nil {
			t.Errorf("clean %s: %v", c.Name, c.Err)
		}
	}
	f.unchanged(t, before, time.Minute)
}

// TestSlowControl: a control path of 200 ms works, and the provider says what it costs.
func TestSlowControl(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	before := f.before(t)
	exe, err := os.Executable()
	must(t, err)
	o := f.options()
	o.Command = append([]string{"env", testbedtest.Role("slow"), exe}, f.command...)
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	if trip := s.Capabilities().Costs.Exchange; trip < 200*time.Millisecond || trip > 5*time.Second {
		t.Errorf("a question takes %s, over a path of 200 ms", trip)
	}
	bed, err := s.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "routed"})
	must(t, err)
	must(t, errors.Join(bed.Close(), s.Close()))
	f.unchanged(t, before, 10*time.Second)
}

// TestDoctor: the doctor names cards, what can be done with them, how large packets may be between them, and networks, and changes nothing.
func TestDoctor(t *testing.T) {
	t.Parallel()
	f := newFarm(t, 2)
	p := newProgram(t, f.lan)
	f.on(t, 1, "ip link set eth0 mtu 1400") // it takes no packet that is larger, but for a VLAN tag
	before := f.before(t)
	out, err := p.command(t.Context(), "doctor", "--testbed", "ssh", "--nodes", f.nodes()+",ssh:10.99.0.99:22").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	said := strings.Join(strings.Fields(string(out)), " ") // lines are filled
	for _, want := range []string{
		f.names[0] + " system", f.names[1] + " card eth1", "take:eth1 works", "macvlan:eth0 works", "take: this SSH connection goes over it", "network vxlan", "10.99.0.99:22 reached",
		f.names[0] + " to " + f.names[1] + " packets above 1404 bytes vanish, though the MTU there is 1500", f.names[1] + " to " + f.names[0] + " packets of 1400 bytes arrive",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	f.unchanged(t, before, 5*time.Second)
}

// TestSudo: the program runs by sudo -n where that is asked for, and leaves nothing either.
func TestSudo(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("sudo")
	require.Need(t, "the program sudo", err == nil)
	f := newFarm(t, 1)
	before := f.before(t)
	o := f.options()
	o.Sudo = true
	s, err := ssh.Open(t.Context(), o)
	must(t, err)
	if seen := f.on(t, 0, "ps -e -o args | grep '[s]udo -n'"); !strings.Contains(seen, "netdelta-agent") {
		t.Errorf("it runs as %s", seen)
	}
	must(t, s.Close())
	f.unchanged(t, before, 10*time.Second)
}
