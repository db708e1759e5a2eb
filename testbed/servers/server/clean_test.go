package server

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/machine"
	"netdelta/internal/netns"
	"netdelta/internal/owner"
	"netdelta/internal/require"
	"netdelta/result"
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

// folder makes one as a supervisor has it, with such a mark of its owner, and a note of a card.
func folder(t *testing.T, mark, note string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), Prefix+"0123456789abcdef")
	err := os.Mkdir(dir, 0o700)
	for name, text := range map[string]string{ownerFile: mark, cardFile: note} {
		if text != "" {
			err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// marks are of this process, and of one that has certainly ended.
func marks(t *testing.T) (mine, dead string) {
	t.Helper()
	o, err := owner.Self()
	if err != nil {
		t.Fatal(err)
	}
	mine = o.String()
	o.Start++
	return mine, o.String()
}

// TestLeft: only folders of supervisors that have certainly died are left ones.
func TestLeft(t *testing.T) {
	mine, dead := marks(t)
	for mark, want := range map[string]bool{mine: false, dead: true, "nonsense": false, "": false} {
		f, err := result.OpenPrivateFiles(folder(t, mark, ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := left(f); got != want {
			t.Errorf("a folder of %q is left: %v, want %v", mark, got, want)
		}
		_ = f.Close()
	}
}

// TestLeftProgram: a folder with a program alone is left when it is old, and nothing runs of it.
func TestLeftProgram(t *testing.T) {
	dir := folder(t, "", "")
	program := filepath.Join(dir, machine.AgentName)
	if err := os.WriteFile(program, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := result.OpenPrivateFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	before := time.Now().Add(-2 * abandoned)
	for _, path := range []string{dir, program} {
		if left(f) {
			t.Errorf("the folder is left, and %s is new", path)
		}
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
	}
	running, err := os.Open(program)
	if err == nil {
		err = unix.Flock(int(running.Fd()), unix.LOCK_SH)
	}
	if err != nil {
		t.Fatal(err)
	}
	if left(f) {
		t.Error("the folder is left while its program runs")
	}
	_ = running.Close()
	if !left(f) {
		t.Error("an old folder that nothing uses is not left")
	}
}

// TestPlanted: what another user can have put somewhere is neither read nor followed nor removed, and nothing outside of /sys is written.
func TestPlanted(t *testing.T) {
	require.Need(t, "root, to give files away", os.Geteuid() == 0)
	_, dead := marks(t)
	const stranger = 65534
	for name, plant := range map[string]func(dir string) error{
		"a folder of another user":       func(dir string) error { return os.Chown(dir, stranger, stranger) },
		"a folder that others may write": func(dir string) error { return os.Chmod(dir, 0o777) },
		"a link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".true"), os.Symlink(dir+".true", dir))
		},
		"a mark of another user": func(dir string) error { return os.Chown(filepath.Join(dir, ownerFile), stranger, stranger) },
		"a mark that is a pipe": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, ownerFile)), unix.Mkfifo(filepath.Join(dir, ownerFile), 0o600))
		},
		"a note of another user":                   func(dir string) error { return os.Chown(filepath.Join(dir, cardFile), stranger, stranger) },
		"a note that names a file outside of /sys": func(string) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			victim := filepath.Join(t.TempDir(), functionsFile)
			note, err := json.Marshal([]taken{{Name: "eth0/0", Made: victim}})
			if err == nil {
				err = os.WriteFile(victim, []byte("precious"), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			dir := folder(t, dead, string(note))
			if err := plant(dir); err != nil {
				t.Fatal(err)
			}
			done, err := cleanFolder(dir)
			if len(done) > 0 {
				t.Errorf("done: %q, %v", done, err)
			}
			if text, err := os.ReadFile(victim); string(text) != "precious" {
				t.Errorf("the file is %q: %v", text, err)
			}
			if _, err := os.Stat(filepath.Join(dir, cardFile)); err != nil {
				t.Errorf("what was planted is not there any more: %v", err)
			}
		})
	}
}

// TestFunctionsFile: by a path that leads out of /sys no virtual functions are made.
func TestFunctionsFile(t *testing.T) {
	victim := filepath.Join(t.TempDir(), functionsFile)
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{victim, "/sys/.." + victim, "/sys/class/net/../../.." + victim, "sys" + victim, "/sys", "/sys/power/state", ""} {
		if err := makeFunctions(path, 0); err == nil || !strings.Contains(err.Error(), "is no file of a card") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, err := os.ReadFile(victim); string(text) != "precious" {
		t.Errorf("the file is %q: %v", text, err)
	}
}

// FuzzParseNote: a note that can't be read is of no cards, and one that can be is the same when it is written again.
func FuzzParseNote(f *testing.F) {
	f.Add([]byte(`[{"name":"eth1","mac":"52:54:00:09:00:01","mtu":1500,"up":true,"addresses":[{"address":"10.98.0.1/24"}],"routes":[{"to":"10.97.0.0/16","table":254,"scope":0,"protocol":4,"priority":0}]}]`))
	f.Add([]byte(`[{"name":"eth2/0","made":"/sys/devices/pci0000:00/0000:00:02.0/sriov_numvfs"}]`))
	f.Add([]byte(`[{"made":"/etc/passwd"},{}]`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseNote(text)
		if err != nil {
			if all != nil {
				t.Fatalf("%v, and %d cards", err, len(all))
			}
			return
		}
		again, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		same, err := parseNote(again)
		if err != nil || !reflect.DeepEqual(all, same) {
			t.Fatalf("%+v, written again %+v: %v", all, same, err)
		}
	})
}
