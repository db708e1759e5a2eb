package server

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/vishvananda/netlink"

	"netdelta/internal/leak"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/internal/require"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// TestCardComesBack: a card that the kernel brought back bare, under another name, becomes what it was by what a killed supervisor noted.
func TestCardComesBack(t *testing.T) {
	require.Namespaces(t)
	ns, err := netns.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ns.Close() }()
	run := func(line string) error {
		out, err := exec.Command("sh", "-c", line).CombinedOutput()
		if err != nil {
			return errors.New(string(out))
		}
		return nil
	}
	err = ns.Do(func() error {
		if err := run("ip link add eth1 type veth peer name far && ip link set far up && ip link set eth1 mtu 1400 up && " +
			"ip addr add 10.98.0.1/24 dev eth1 && ip addr add 10.95.0.1/24 brd + dev eth1 && ip -6 addr add fd00:98::1/64 dev eth1 nodad && " +
			"ip route add 10.97.0.0/16 via 10.98.0.7 && ip route add 10.96.0.0/16 dev eth1 table 77 metric 5"); err != nil {
			return err
		}
		before, err := noted("eth1")
		if err != nil {
			return err
		}
		if len(before.Addresses) != 3 || len(before.Routes) < 2 {
			t.Errorf("noted is %+v", before)
		}
		if err := run("ip link set eth1 down && ip addr flush dev eth1 && ip link set eth1 name dev0 && ip link set dev0 mtu 1500"); err != nil {
			return err
		}
		if err := before.restore(); err != nil {
			return err
		}
		after, err := noted("eth1")
		if err == nil && !reflect.DeepEqual(before, after) {
			t.Errorf("the card was %+v and is %+v", before, after)
		}
		_, gone := netlink.LinkByName("dev0")
		if gone == nil {
			t.Error("it has its other name still")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLeft: only folders of supervisors that have certainly died are left ones.
func TestLeft(t *testing.T) {
	mine, err := owner.Self()
	if err != nil {
		t.Fatal(err)
	}
	dead := mine
	dead.Start++
	for name, want := range map[string]bool{mine.String(): false, dead.String(): true, "nonsense": false, "": false} {
		dir := filepath.Join(t.TempDir(), "netdelta-1")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name != "" {
			if err := os.WriteFile(filepath.Join(dir, ownerFile), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := left(dir); got != want {
			t.Errorf("a folder of %q is left: %v, want %v", name, got, want)
		}
		if err := os.Chown(dir, 54321, 54321); err == nil && left(dir) { // root alone may give it away
			t.Errorf("another user's folder of %q is left", name)
		}
	}
}
