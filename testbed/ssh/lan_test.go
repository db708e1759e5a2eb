package ssh_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/testbed/servers"
	"netdelta/testbed/ssh"
)

// lan is a controller's network namespace with three switches that servers are on, what they are told, and the ssh that reaches them.
type lan struct {
	folder  string
	holder  *exec.Cmd
	between *netns.Namespace
	public  []byte // the controller's key
	names   []string
	known   strings.Builder
	command []string // ssh in the controller's namespace
	program string
}

func keygen(t *testing.T, path string) (public []byte) {
	t.Helper()
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	public, err = os.ReadFile(path + ".pub")
	must(t, err)
	return public
}

func newLAN(t *testing.T) *lan {
	t.Helper()
	require.Namespaces(t)
	_, err := os.Stat("/usr/sbin/sshd")
	require.Need(t, "the SSH server of the package openssh-server", err == nil)
	l := &lan{folder: t.TempDir()}
	l.program = build(t, "netdelta-agent", l.folder)
	l.public = keygen(t, filepath.Join(l.folder, "key"))
	l.holder, _, l.between = start(t, "hold", l.folder, 0)
	must(t, l.between.Do(func() error {
		for _, name := range []string{"lan", "spare", "other"} {
			if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}); err != nil {
				return err
			}
			if err := up(name, map[string]string{"lan": "10.99.0.254/24"}[name]); err != nil {
				return err
			}
		}
		return up("lo", "")
	}))
	return l
}

// add makes a folder with what a server is told, which is reached at the address that follows from its number.
func (l *lan) add(t *testing.T) (folder, address string) {
	t.Helper()
	folder = filepath.Join(l.folder, fmt.Sprintf("server%d", len(l.names)))
	must(t, os.Mkdir(folder, 0o755))
	host := keygen(t, filepath.Join(folder, "host_key"))
	address = fmt.Sprintf("10.99.0.%d", len(l.names)+1)
	fmt.Fprintf(&l.known, "%s %s", address, host)
	must(t, os.WriteFile(filepath.Join(folder, "authorized_keys"), l.public, 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "sshd_config"), []byte(`ListenAddress `+address+`
HostKey /run/server/host_key
AuthorizedKeysFile /run/server/authorized_keys
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PrintMotd no
UseDNS no
`), 0o600))
	l.names = append(l.names, address)
	return folder, address
}

// reach writes what ssh has to know of the servers, by keys and ciphers that cost little: each is sent a program of ten megabytes.
func (l *lan) reach(t *testing.T) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(l.folder, "known_hosts"), []byte(l.known.String()), 0o600))
	must(t, os.WriteFile(filepath.Join(l.folder, "config"), fmt.Appendf(nil,
		"Host *\n  User root\n  IdentityFile %[1]s/key\n  IdentitiesOnly yes\n  UserKnownHostsFile %[1]s/known_hosts\n  GlobalKnownHostsFile /dev/null\n  Ciphers ^aes128-gcm@openssh.com\n  KexAlgorithms ^curve25519-sha256\n", l.folder), 0o600))
	l.command = []string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", l.holder.Process.Pid), "ssh", "-F", filepath.Join(l.folder, "config")}
}

// await waits until a server takes connections.
func (l *lan) await(t *testing.T, server int) {
	t.Helper()
	// A guest boots meanwhile.
	if err := require.Await(3*time.Minute, fmt.Sprintf("server %d takes connections", server), func() error {
		return l.between.Do(func() error {
			c, err := net.DialTimeout("tcp", l.names[server]+":22", time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
	}); err != nil {
		log, _ := os.ReadFile(filepath.Join(l.folder, fmt.Sprintf("server%d", server), "log"))
		t.Fatalf("%v\n%s", err, log)
	}
}

// options are those for all servers.
func (l *lan) options() ssh.Options {
	o := ssh.Options{Command: l.command, NIC: servers.NIC{Mode: "macvlan"}, Program: func(string) (string, error) { return l.program, nil }}
	for _, name := range l.names {
		o.Nodes = append(o.Nodes, ssh.Node{Host: name})
	}
	return o
}
