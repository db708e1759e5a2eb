package ssh_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/testbed/lab"
	"netdelta/testbed/nsmonitor"
	"netdelta/testbed/testbedtest"
)

func TestMain(m *testing.M) {
	status := testbedtest.Main(m, map[string]func() int{"sshd": beServer, "hold": hold, "slow": slow})
	_ = os.RemoveAll(programs())
	os.Exit(status)
}

// hold keeps a network namespace until its input ends.
func hold() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// beServer makes this process an SSH server with a /tmp and a /run of its own. Its arguments are in a file of the folder that it starts in.
func beServer() int {
	err := func() error {
		files := map[string][]byte{}
		for _, name := range []string{"sshd_config", "host_key", "authorized_keys"} {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			files[name] = text
		}
		here, err := os.Getwd()
		if err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		exe, err := os.Open(self)
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(os.Stdin, make([]byte, 1)); err != nil { // its network is there
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		for _, dir := range []string{"/tmp", "/run"} {
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=1777"); err != nil {
				return fmt.Errorf("mount %s: %w", dir, err)
			}
		}
		bind := fmt.Sprintf("/proc/self/fd/%d", exe.Fd())
		if err := errors.Join(os.MkdirAll(filepath.Dir(self), 0o755), os.WriteFile(self, nil, 0o755)); err != nil {
			return err
		}
		if err := unix.Mount(bind, self, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("bind %s: %w", self, err)
		}
		if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
		if filepath.Base(here) == "server1" { // the doctor finds fault with its clock, and a processor isolated
			for path, text := range map[string]string{"clocksource/clocksource0/current_clocksource": "hpet\n", "cpu/isolated": "1\n"} {
				own := filepath.Join("/run", filepath.Base(path))
				if err := errors.Join(os.WriteFile(own, []byte(text), 0o644), unix.Mount(own, filepath.Join("/sys/devices/system", path), "", unix.MS_BIND, "")); err != nil {
					return fmt.Errorf("give it another %s: %w", path, err)
				}
			}
		}
		if err := unix.Sethostname([]byte(filepath.Base(here))); err != nil {
			return err
		}
		if err := errors.Join(os.MkdirAll("/run/sshd", 0o755), os.Mkdir("/run/server", 0o700), os.Chdir("/run/server")); err != nil {
			return err
		}
		for name, text := range files {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				return err
			}
		}
		return syscall.Exec("/usr/sbin/sshd", []string{"/usr/sbin/sshd", "-D", "-e", "-f", "/run/server/sshd_config"}, []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"})
	}()
	fmt.Fprintln(os.Stderr, "the server of the test:", err)
	return 1
}

// slow starts ssh, and has everything that is said on the way there and back take a fifth of a second in all.
func slow() int {
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		late(in, os.Stdin)
		_ = in.Close()
	}()
	late(os.Stdout, out)
	if cmd.Wait() != nil {
		return 1
	}
	return 0
}

// late copies with a delay, as a long line does: what follows is not held up by what came before.
func late(to io.Writer, from io.Reader) {
	type chunk struct {
		due  time.Time
		text []byte
	}
	way := make(chan chunk, 1<<16)
	go func() {
		defer close(way)
		for {
			b := make([]byte, 64<<10)
			n, err := from.Read(b)
			way <- chunk{time.Now().Add(100 * time.Millisecond), b[:n]}
			if err != nil {
				return
			}
		}
	}()
	for c := range way {
		time.Sleep(time.Until(c.due))
		_, _ = to.Write(c.text) // its reader may have gone
	}
}

// farm are SSH servers in network namespaces.
type farm struct {
	*lan
	servers []*exec.Cmd
	inside  []*netns.Namespace
}

// programs is the folder of the programs that the tests of this process share.
func programs() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("netdelta-ssh-test-%d", os.Getpid()))
}

// build gives a folder a command of this module, which the first test that needs it builds.
func build(t *testing.T, command, dir string) string {
	t.Helper()
	built, path := filepath.Join(programs(), command), filepath.Join(dir, command)
	must(t, os.MkdirAll(programs(), 0o700))
	lock, err := os.OpenFile(built+".lock", os.O_CREATE, 0o600)
	must(t, err)
	defer func() { _ = lock.Close() }()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	if _, err := os.Stat(built); err != nil {
		require.Program(t, command, built)
	}
	must(t, os.Link(built, path)) // it looks for others in its own folder
	return path
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts this test's binary in a role, in a network namespace of its own.
func start(t *testing.T, role, dir string, flags uintptr) (*exec.Cmd, io.WriteCloser, *netns.Namespace) {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	cmd := exec.Command(exe)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append(os.Environ(), testbedtest.Role(role)), os.Stderr
	if role == "sshd" {
		log, err := os.Create(filepath.Join(dir, "log"))
		must(t, err)
		defer func() { _ = log.Close() }()
		cmd.Stderr = log
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | flags}
	in, err := cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ns, err := netns.Of(cmd.Process.Pid)
	must(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	return cmd, in, ns
}

// serverMTU is the MTU of the servers' cards.
const serverMTU = 1500

// newFarm starts so many servers. Each has eth0, by which it is reached, and the spare cards eth1 and eth2, each on a switch of its own.
func newFarm(t *testing.T, count int) *farm {
	t.Helper()
	f := &farm{lan: newLAN(t)}
	for i := range count {
		dir, address := f.add(t)
		cmd, in, ns := start(t, "sshd", dir, syscall.CLONE_NEWNS|syscall.CLONE_NEWUTS|syscall.CLONE_NEWPID)
		f.servers, f.inside = append(f.servers, cmd), append(f.inside, ns)
		for c, to := range []string{"lan", "spare", "other"} {
			must(t, ns.WithFD(func(fd int) error {
				return f.between.Do(func() error {
					bridge, err := netlink.LinkByName(to)
					if err != nil {
						return err
					}
					name := fmt.Sprintf("port%d-%d", i, c)
					err = netlink.LinkAdd(&netlink.Veth{
						LinkAttrs: netlink.LinkAttrs{Name: name, MTU: 9000, MasterIndex: bridge.Attrs().Index},
						PeerName:  fmt.Sprintf("eth%d", c), PeerNamespace: netlink.NsFd(fd), PeerMTU: serverMTU,
						PeerHardwareAddr: net.HardwareAddr{0x52, 0x54, 0, 9, byte(i), byte(c)},
					})
					if err != nil {
						return err
					}
					return up(name, "")
				})
			}))
		}
		must(t, ns.Do(func() error {
			return errors.Join(up("lo", ""), up("eth0", address+"/24"), up("eth1", fmt.Sprintf("10.98.0.%d/24", i+1)), up("eth2", fmt.Sprintf("10.97.0.%d/24", i+1)))
		}))
		must(t, ns.Do(withoutTSO))
		_, err := in.Write([]byte{0})
		must(t, err)
	}
	f.reach(t)
	for i := range count {
		f.await(t, i)
	}
	return f
}

// withoutTSO switches an offload of a spare card off, as its owner may have.
func withoutTSO() error {
	e, err := nsmonitor.OpenEthtool()
	if err != nil {
		return err
	}
	defer e.Close()
	_, err = e.Value("eth1", unix.ETHTOOL_STSO, 0)
	return err
}

// up brings a device of the calling thread's namespace up.
func up(name, address string) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if address != "" {
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(link)
}

// on runs a shell command on a server, without SSH, and returns what it says.
func (f *farm) on(t *testing.T, server int, command string) string {
	t.Helper()
	pid := fmt.Sprint(f.servers[server].Process.Pid)
	out, err := exec.Command("nsenter", "-t", pid, "-n", "-m", "-p", "sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out)
}

// state is what must be the same before and after: network, files of netdelta and its processes.
func (f *farm) state(t *testing.T, server int) string {
	t.Helper()
	offloads := ""
	must(t, f.inside[server].Do(func() error {
		for c := range 3 { // one may be away
			all, _ := lab.Offloads(fmt.Sprintf("eth%d", c))
			offloads += fmt.Sprintln(all)
		}
		return nil
	}))
	return offloads + f.on(t, server, `ip -d link | sed 's/ promiscuity.*//'; ip -4 addr | grep -v valid_lft; ip route show table all | grep -v fe80 | sort; grep -rs . /proc/sys/net/ipv[46]/conf | grep -v -E 'stable_secret|use_tempaddr' | sort; ls -A /tmp /run/netdelta-servers 2>/dev/null | grep netdelta-[0-9a-f]; ps -e -o args | grep -c '[n]etdelta-agent'; true`)
}

// unchanged fails where a server is not soon what it was.
func (f *farm) unchanged(t *testing.T, before []string, within time.Duration) {
	t.Helper()
	for i, want := range before {
		if err := require.Await(within, fmt.Sprintf("server %d is what it was", i), func() error { return same(want, f.state(t, i)) }); err != nil {
			t.Error(err)
		}
	}
}

// same is an error that lists the lines that only one of two texts has.
func same(before, after string) error {
	was, is := strings.Split(before, "\n"), strings.Split(after, "\n")
	var all []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			all = append(all, "- "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			all = append(all, "+ "+line)
		}
	}
	if before != after {
		return fmt.Errorf("it differs:\n%s", strings.Join(all, "\n"))
	}
	return nil
}

func (f *farm) before(t *testing.T) (all []string) {
	for i := range f.servers {
		all = append(all, f.state(t, i))
	}
	return all
}
