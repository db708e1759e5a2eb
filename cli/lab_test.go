package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/leak"
	"netdelta/internal/owner"
	"netdelta/internal/procfile"
	"netdelta/internal/require"
	"netdelta/testbed/lab/keep"
)

// labsOf asks the program for the labs that are up.
func labsOf(t *testing.T, u *user) []keep.Status {
	t.Helper()
	var all []keep.Status
	if err := json.Unmarshal([]byte(u.call(t, statusDone, "lab", "list", "--json").stdout), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// A lab from its beginning to its end, with what one does in between.
func TestLab(t *testing.T) {
	eachUser(t, func(t *testing.T, u *user) {
		before := host(t)
		u.call(t, statusDone, "lab").shows(t, "no lab is up")
		u.call(t, statusDone, "lab", "up", "vxlan").shows(t, "lab default is up: network vxlan, 4 pods on node0, node1",
			"pod0 node0 198.19.0.10", "pod3 node1 198.19.1.11", "path from pod0 to pod3: pod0/eth0>", "node0/eth0(encapsulated)>",
			"netdelta lab exec pod0 -- ping -c 3 198.19.1.11", "netdelta lab exec pod3 -- iperf3 -s -1 -p 21000 &")
		all := labsOf(t, u)
		if len(all) != 1 || all[0].Network != "vxlan" || all[0].Rootless != u.rootless || len(all[0].Pods) != 4 {
			t.Fatalf("the labs are %+v", all)
		}
		u.call(t, statusDone, "lab").shows(t, "LAB NETWORK", "default vxlan 2 4", fmt.Sprint(all[0].PID))
		untouched(t, before)

		t.Run("streams", func(t *testing.T) {
			cmd := u.command(t, "lab", "exec", "pod0", "--", "cat")
			cmd.Stdin = strings.NewReader("through a pipe\n")
			if e := finish(t, cmd).want(t, statusDone); e.stdout != "through a pipe\n" || e.stderr != "" {
				t.Errorf("out came %q, and %q", e.stdout, e.stderr)
			}
		})
		t.Run("statuses", func(t *testing.T) {
			for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -TERM $$": 128 + 15, "kill -KILL $$": 128 + 9} {
				u.call(t, want, "lab", "exec", "pod1", "--", "sh", "-c", script)
			}
			u.call(t, 127, "lab", "exec", "pod0", "--", "no-such-program").says(t, "no-such-program")
			u.call(t, 126, "lab", "exec", "pod0", "--", "/dev/null").says(t, "/dev/null", "permission denied")
			u.call(t, statusUsage, "lab", "exec", "pud0", "--", "true").says(t, `"pod0"`)
			u.call(t, statusUsage, "lab", "exec", "--name", "defaul", "pod0", "--", "true").says(t, `"default"`)
			u.call(t, statusUsage, "lab", "exec").says(t, "--help")
		})
		t.Run("places", func(t *testing.T) {
			require.Tool(t, "ip")
			u.call(t, statusDone, "lab", "exec", "pod2", "ip", "-br", "address").shows(t, "198.19.1.10/16")
			u.call(t, statusDone, "lab", "exec", "node1", "--", "ip", "-br", "link").shows(t, "vxlan0")
			u.call(t, statusDone, "lab", "exec", "switch", "--", "ip", "-br", "link").shows(t, "node0")
		})
		t.Run("surroundings", func(t *testing.T) {
			// The program is where it was called, as who called, and marked as the lab's.
			e := u.call(t, statusDone, "lab", "exec", "pod0", "--", "sh", "-c", "pwd; echo $HOME; echo $"+owner.Variable+"; touch made")
			lines := strings.Split(e.stdout, "\n")
			if lines[0] != u.dir || lines[1] != u.dir || !strings.Contains(lines[2], fmt.Sprintf("-%d-", all[0].PID)) {
				t.Errorf("the program says %q", lines)
			}
			info, err := os.Stat(filepath.Join(u.dir, "made"))
			if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != u.id() {
				t.Errorf("the file it made: %v, %v", info, err)
			}
		})
		t.Run("traffic", func(t *testing.T) { exchange(t, u, "198.19.1.11") })
		t.Run("swap", func(t *testing.T) {
			if strings.Contains(u.call(t, statusDone, "lab", "swap", "routed").shows(t, "network routed").stdout, "encapsulated") {
				t.Error("the path after the swap is still the previous network's")
			}
			exchange(t, u, "198.19.1.11")
			u.call(t, statusUsage, "lab", "swap", "routd").says(t, `"routed"`)
		})
		t.Run("two of a name", func(t *testing.T) {
			u.call(t, statusUsage, "lab", "up", "bridge").says(t, "default", "--name")
		})

		sleeper := u.start(t, "lab", "exec", "pod1", "--", "sh", "-c", "trap '' TERM HUP; echo ready; sleep 600; sleep 600")
		if !eventually(func() bool { return marked(t, all[0].PID) == 2 }) {
			t.Fatalf("%d processes of the lab run, want 2", marked(t, all[0].PID))
		}
		u.call(t, statusDone, "lab", "down").shows(t, "lab default is down")
		await(t, sleeper).want(t, 128+int(syscall.SIGKILL))
		u.call(t, statusDone, "lab", "down").shows(t, "no lab is up")
		u.call(t, statusDone, "lab", "down", "--name", "default").shows(t, "no lab is up")
		u.nothingKept(t)
		nothingRuns(t)
		untouched(t, before)
	})
}

// marked counts the processes that a keeper will end with its lab.
func marked(t *testing.T, keeper int) int {
	t.Helper()
	all, err := owner.Processes()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range all {
		if p.Owner.PID == keeper {
			n++
		}
	}
	return n
}

// exchange carries a megabyte from the first pod to the last, by a program of others, each end called on its own.
func exchange(t *testing.T, u *user, address string) {
	t.Helper()
	require.Tool(t, "iperf3")
	server := u.start(t, "lab", "exec", "pod3", "--", "iperf3", "-s", "-1", "-p", "21000", "--forceflush")
	listens := regexp.MustCompile(`:5208 0+:0000 0A`) // a connection of the previous server may wait for its end at that port
	if !eventually(func() bool {
		return listens.MatchString(finish(t, u.command(t, "lab", "exec", "pod3", "--", "cat", "/proc/net/tcp", "/proc/net/tcp6")).stdout)
	}) {
		t.Fatal("the server does not listen")
	}
	e := u.call(t, statusDone, "lab", "exec", "pod0", "--", "iperf3", "-c", address, "-p", "21000", "-n", "1M", "-J")
	var answer struct {
		End struct {
			Sent     struct{ Bytes int } `json:"sum_sent"`
			Received struct{ Bytes int } `json:"sum_received"` // less what was under way at the end
		}
	}
	if err := json.Unmarshal([]byte(e.stdout), &answer); err != nil || answer.End.Sent.Bytes < 1<<20 || answer.End.Received.Bytes == 0 {
		t.Errorf("sent and received was %+v, %v", answer.End, err)
	}
	await(t, server).want(t, statusDone)
}

// At a terminal a shell in a pod does what shells do: jobs, interrupts, the end.
func TestLabShell(t *testing.T) {
	bash := require.Tool(t, "bash")
	eachUser(t, func(t *testing.T, u *user) {
		u.call(t, statusDone, "lab", "up", "bridge", "--nodes", "1")
		term := openTerminal(t)
		cmd := u.command(t, "lab", "exec", "pod0", "--", bash, "--norc", "--noprofile", "--noediting", "-i")
		cmd.Env = append(cmd.Env, "PS1=prompt: ")
		term.start(cmd)
		term.expect("prompt: ")
		term.write("echo product $((6*7)); tty; stty size\n")
		term.expect("product 42")
		term.expect("/dev/pts/")
		term.write("sleep 600\n")
		term.foreground("sleep")
		term.write("\x03")
		term.expect("prompt: ")
		term.write("echo status $?\n")
		term.expect("status 130")
		term.write("sleep 601\n")
		term.foreground("sleep")
		term.write("\x1a")
		term.expect("Stopped                 sleep 601")
		term.expect("prompt: ")
		term.write("fg\n")
		term.expect("sleep 601")
		term.foreground("sleep") // which the shell makes it after it has said so
		term.write("\x03")
		term.expect("prompt: ")
		term.write("echo again $?\n")
		term.expect("again 130")
		term.write("exit 3\n")
		if status := term.wait(); status != 3 {
			t.Errorf("the shell ended with status %d, want 3", status)
		}
		u.call(t, statusDone, "lab", "down")
	})
}

// awaitChild waits until a call has become a process of this name in a lab, or has one below it.
func awaitChild(t *testing.T, call *exec.Cmd, name string) {
	t.Helper()
	if !eventually(func() bool {
		below, err := procfile.Below(call.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(append(below, call.Process.Pid), func(pid int) bool {
			p, ok := owner.ProcessOf(pid)
			return ok && p.Name == name
		})
	}) {
		t.Fatalf("no %s runs in a lab", name)
	}
}

// A keeper that was killed takes its lab with it. What is recorded of it, and what ran in its pods, goes with the next call.
func TestLabKilled(t *testing.T) {
	for _, verb := range [][]string{{"lab", "list"}, {"lab", "down", "--name", "x"}, {"cleanup"}} {
		t.Run(strings.Join(verb, " "), func(t *testing.T) {
			eachUser(t, func(t *testing.T, u *user) {
				before := host(t)
				u.call(t, statusDone, "lab", "up", "routed", "--name", "x")
				keeper := labsOf(t, u)[0].PID
				var wire *leak.Tripwire
				if os.Geteuid() == 0 {
					wire = tripwire(t, u)
				}
				sleeper := u.start(t, "lab", "exec", "pod1", "--", "sleep", "600")
				awaitChild(t, sleeper, "sleep")
				if err := syscall.Kill(keeper, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				nothingRuns(t)
				if wire != nil {
					if err := wire.Wait(patience); err != nil {
						t.Error(err)
					}
				}
				u.call(t, statusDone, verb...)
				u.nothingKept(t)
				u.call(t, statusDone, "cleanup")
				await(t, sleeper).want(t, 128+int(syscall.SIGKILL))
				u.call(t, statusDone, "lab", "list").shows(t, "no lab is up")
				untouched(t, before)
			})
		})
	}
}

// tripwire watches the namespace of a pod in which nothing runs afterwards.
func tripwire(t *testing.T, u *user) *leak.Tripwire {
	t.Helper()
	cmd := u.command(t, "lab", "exec", "pod0", "--", "cat")
	hold, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	awaitChild(t, cmd, "cat")
	wire, err := leak.NewTripwire(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { wire.Close() })
	hold.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return wire
}

// A keeper that hangs is named, and goes by force.
func TestLabHangs(t *testing.T) {
	u := rootUser(t)
	u.call(t, statusDone, "lab", "up", "bridge")
	keeper := labsOf(t, u)[0].PID
	halt(t, keeper)
	u.call(t, statusDone, "lab").shows(t, "default", "does not answer")
	u.call(t, statusDone, "lab", "down").shows(t, "lab default is down")
	u.nothingKept(t)
}

// Signals to the keeper end the lab in good order, and so does the loss of what is recorded of it.
func TestLabEnds(t *testing.T) {
	for name, end := range map[string]func(u *user, keeper int) error{
		"SIGTERM": func(_ *user, keeper int) error { return syscall.Kill(keeper, syscall.SIGTERM) },
		"SIGINT":  func(_ *user, keeper int) error { return syscall.Kill(keeper, syscall.SIGINT) },
		"record":  func(u *user, _ int) error { return os.RemoveAll(u.labs) },
	} {
		t.Run(name, func(t *testing.T) {
			u := rootUser(t)
			u.call(t, statusDone, "lab", "up", "bridge")
			if err := end(u, labsOf(t, u)[0].PID); err != nil {
				t.Fatal(err)
			}
			nothingRuns(t)
			u.nothingKept(t)
		})
	}
}

// Two labs know nothing of each other, nor do two users.
func TestLabsSideBySide(t *testing.T) {
	u, other := rootUser(t), ordinaryUser(t)
	for _, name := range []string{"one", "two"} {
		u.call(t, statusDone, "lab", "up", "bridge", "--name", name, "--pods", "1").shows(t, "netdelta lab exec --name "+name+" pod0")
	}
	other.call(t, statusDone, "lab", "up", "bridge", "--name", "one")
	u.call(t, statusUsage, "lab", "exec", "pod0", "--", "true").says(t, "--name: one, two")
	u.call(t, statusUsage, "lab", "down").says(t, "--name: one, two")
	u.call(t, statusUsage, "lab", "down", "--all", "--name", "one").says(t, "--all")
	namespace := func(u *user, lab string) string {
		return u.call(t, statusDone, "lab", "exec", "--name", lab, "pod0", "--", "readlink", "/proc/self/ns/net").stdout
	}
	seen := map[string]bool{namespace(u, "one"): true, namespace(u, "two"): true, namespace(other, "one"): true}
	if len(seen) != 3 {
		t.Errorf("pods of three labs are in the namespaces %v", seen)
	}
	u.call(t, statusDone, "lab", "down", "--name", "one").shows(t, "lab one is down")
	if left := labsOf(t, u); len(left) != 1 || left[0].Name != "two" {
		t.Errorf("left are %+v, want lab two", left)
	}
	u.call(t, statusDone, "lab", "down", "--all").shows(t, "lab two is down")
	if left := labsOf(t, other); len(left) != 1 {
		t.Errorf("another user's labs are %+v, want one", left)
	}
	other.call(t, statusDone, "lab", "down")
}

// Of two that want the same name at once, one gets it.
func TestLabRace(t *testing.T) {
	u := rootUser(t)
	one, two := u.start(t, "lab", "up", "bridge"), u.start(t, "lab", "up", "bridge")
	a, b := await(t, one), await(t, two)
	if a.status+b.status != statusUsage || !strings.Contains(a.stderr+b.stderr, "default") {
		t.Errorf("they ended with %d and %d: %s%s", a.status, b.status, a.stderr, b.stderr)
	}
	u.call(t, statusDone, "lab", "exec", "pod0", "--", "true")
	u.call(t, statusDone, "lab", "down")
}

// What can't be built is refused before anything is made.
func TestLabRefuses(t *testing.T) {
	u := rootUser(t)
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"vxlam"}, `"vxlan"`},
		{[]string{"vxlan", "--mtu", "600"}, "encapsulation"},
		{[]string{"bridge", "--mtu", "banana"}, "--mtu"},
		{[]string{"bridge", "--rate", "9MB/s"}, "--rate"},
		{[]string{"bridge", "--nodes", "0"}, "nodes"},
		{[]string{"bridge", "--pods", "999"}, "pods"},
		{[]string{"bridge", "--family", "ipx"}, "--family"},
		{[]string{"bridge", "--name", "../x"}, "name"},
		{[]string{"bridge", "--name", ""}, "name"},
		{[]string{"bridge", "--name", "a\x1b[2Jb"}, "name"},
		{[]string{"bridge", "--name", strings.Repeat("n", 33)}, "name"},
		{[]string{}, "arg"},
	} {
		e := u.call(t, statusUsage, append([]string{"lab", "up"}, c.args...)...).says(t, c.says)
		if obeyed(e.stderr) {
			t.Errorf("%q: the error has bytes that a terminal obeys: %q", c.args, e.stderr)
		}
	}
	u.nothingKept(t)
	nothingRuns(t)
}

// A keeper that can't build its lab says why, and nothing is left. Namespaces run out in a user namespace of the test's own.
func TestLabFails(t *testing.T) {
	u := rootUser(t)
	cmd := u.command(t, "lab", "up", "bridge")
	cmd.Args = append([]string{"sh", "-c", `echo 3 > /proc/sys/user/max_net_namespaces && exec "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = require.Tool(t, "sh")
	all := []syscall.SysProcIDMap{{Size: 65536}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET, UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true}
	finish(t, cmd).want(t, statusFailed).says(t, "make the namespace of", "no space left on device")
	u.nothingKept(t)
	nothingRuns(t)
}

// IPv6, MTU and rate reach the lab.
func TestLabSpec(t *testing.T) {
	require.Tool(t, "ip")
	u := rootUser(t)
	u.call(t, statusDone, "lab", "up", "routed", "--family", "ipv6", "--mtu", "4000", "--rate", "1Gbit/s", "--pods", "1").shows(t, "pod1 node1 2001:2:")
	u.call(t, statusDone, "lab", "exec", "pod0", "--", "ip", "link", "show", "eth0").shows(t, "mtu 4000")
	u.call(t, statusDone, "lab", "down")
	// Under host networking pods are in their nodes' namespaces, as in a run, and stay there.
	u.call(t, statusDone, "lab", "up", "host")
	u.call(t, statusFailed, "lab", "swap", "bridge").says(t, "outlive")
	u.call(t, statusDone, "lab", "down")
}

// Nothing that a client writes to a keeper's socket ends the keeper.
func TestLabSocket(t *testing.T) {
	u := rootUser(t)
	u.call(t, statusDone, "lab", "up", "bridge")
	stream := func(request string) []byte {
		return append([]byte{1, 0, 0, 0, 1, 0, 0, 0, byte(len(request))}, request...)
	}
	for _, garbage := range [][]byte{
		nil, []byte("\x00"), []byte("{"), stream("{"), stream(`{"op":"dance"}`), stream(`{"op":"enter","args":"\u001b[2J"}`), stream(`{"op":"enter","args":{}}`),
		bytes.Repeat([]byte("x"), 20<<20),
	} {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(u.labs, "default.sock")}); err != nil {
			t.Fatal(err)
		}
		_, _ = unix.SendmsgN(fd, garbage, nil, nil, unix.MSG_NOSIGNAL) // as much as it takes
		unix.Close(fd)
	}
	if all := labsOf(t, u); len(all) != 1 || all[0].Trouble != "" {
		t.Errorf("the labs are %+v", all)
	}
	u.call(t, statusDone, "lab", "down")
}
