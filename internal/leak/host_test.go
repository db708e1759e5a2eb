package leak

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/require"
)

// A snapshot that can't see a change proves nothing. The host may not be changed, so the test takes snapshots of a
// namespace of its own, from inside.
func TestSnapshotSeesChanges(t *testing.T) {
	require.Namespaces(t)
	n, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for _, c := range []struct{ name, script, sees string }{
		{"link", "ip link add probe0 type veth peer name probe1", "link probe0"},
		{"state", "ip link set lo up", "link lo"},
		{"address", "ip address add 198.18.9.1/24 dev lo", "address 198.18.9.1/24"},
		{"route", "ip route add 198.19.9.0/24 dev lo", "route 198.19.9.0/24"},
		{"rule", "ip rule add from 198.18.9.0/24 table 9", "rule"},
		{"firewall", "nft add table ip probe", "table 2 probe"},
		{"setting", "echo 1 > /proc/sys/net/ipv4/ip_forward", "setting /proc/sys/net/ipv4/ip_forward"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Tool(t, "ip")
			require.Tool(t, "nft")
			err := n.Do(func() error {
				before, err := Host()
				if err != nil {
					return err
				}
				if out, err := exec.Command("sh", "-c", c.script).CombinedOutput(); err != nil {
					t.Fatalf("%s: %v: %s", c.script, err, out)
				}
				after, err := Host()
				if err != nil {
					return err
				}
				diff := Diff(before, after)
				for _, line := range diff {
					if strings.HasPrefix(line, c.sees) {
						return nil
					}
				}
				t.Errorf("%s: the snapshots differ in %q, want something about %s", c.script, diff, c.sees)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestOwnSeesLeaks(t *testing.T) {
	require.Namespaces(t)
	if found := Own(); len(found) > 0 {
		t.Fatalf("before anything was leaked: %q", found)
	}
	n, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	found := strings.Join(Own(), "\n")
	for _, want := range []string{"file descriptor", "child process"} {
		if !strings.Contains(found, want) {
			t.Errorf("found %q, want a %s", found, want)
		}
	}
	if err := n.Do(func() error {
		if inside := strings.Join(Own(), "\n"); !strings.Contains(inside, "thread") {
			t.Errorf("a thread is in another namespace, but only %q was found", inside)
		}
		return unix.Access("/proc", unix.R_OK)
	}); err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) { os.Exit(Main(m)) }
