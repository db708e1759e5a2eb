package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/reaper"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm/wire"
)

// path is where programs are looked for in a guest.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Run is the life of a guest's first process. It never returns: when it is done, or can't go on, the guest is switched off.
func Run() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "netdelta: this runs only as the first process of a guest; see 'netdelta vm exec'")
		os.Exit(2)
	}
	if err := live(); err != nil {
		// The user who waits for the guest sees the console.
		fmt.Fprintf(os.Stderr, "netdelta: the guest gives up: %v\n", err)
	}
	unix.Sync()
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	fmt.Fprintf(os.Stderr, "netdelta: switch off: %v\n", err)
	// When the first process ends the kernel panics, which ends the machine too.
	os.Exit(1)
}

// guest carries out what the host asks for.
type guest struct{ reaper *reaper.Reaper }

func live() error {
	if err := settle(); err != nil {
		return err
	}
	g := &guest{reaper.New()}
	if script, err := os.ReadFile(wire.ScriptFile); err == nil {
		return g.runScript(script)
	}
	port, err := openPort(10 * time.Second)
	if err != nil {
		return err
	}
	conn := rpc.NewConn(port, false)
	hello, err := json.Marshal(hello())
	if err != nil {
		return err
	}
	greeting, err := conn.Open(hello)
	if err != nil {
		return err
	}
	if err := greeting.CloseWrite(); err != nil {
		return err
	}
	return conn.Serve(g.serve, nil) // when the host has gone, a guest's life ends, and what runs in it
}

// hello says that the guest is ready.
func hello() wire.Hello {
	h := wire.Hello{Greeting: rpc.Greet()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if text, err := os.ReadFile("/proc/uptime"); err == nil {
		first, _, _ := strings.Cut(string(text), " ")
		h.Uptime, _ = strconv.ParseFloat(first, 64) // only shown
	}
	return h
}

// settle mounts what programs expect, names the machine, and loads the drivers of its devices.
func settle() error {
	var bad error
	for _, m := range []struct {
		kind, at, data string
		must           bool
	}{
		{"proc", "/proc", "", true},
		{"sysfs", "/sys", "", true},
		{"devtmpfs", "/dev", "", true},
		{"devpts", "/dev/pts", "ptmxmode=0666", false},
		{"tmpfs", "/dev/shm", "", false},
		{"tmpfs", "/run", "", true},
		{"tmpfs", "/tmp", "", true},
		{"cgroup2", "/sys/fs/cgroup", "", false},
		{"bpf", "/sys/fs/bpf", "", false},
		{"debugfs", "/sys/kernel/debug", "", false},
		{"tracefs", "/sys/kernel/tracing", "", false},
	} {
		if err := mount(m.kind, m.at, m.data); err != nil && m.must {
			bad = errors.Join(bad, err)
		}
	}
	if bad != nil {
		return bad
	}
	if err := os.MkdirAll("/run/netns", 0o755); err != nil {
		return err
	}
	for name, to := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	// Opening it makes the kernel load its driver.
	if err := os.MkdirAll("/dev/net", 0o755); err != nil {
		return err
	}
	if err := unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200))); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make /dev/net/tun: %w", err)
	}
	if err := unix.Sethostname([]byte("guest")); err != nil {
		return fmt.Errorf("name the guest: %w", err)
	}
	if err := os.Setenv("PATH", path); err != nil {
		return err
	}
	for key, value := range map[string]string{"HOME": "/root", "LANG": "C.UTF-8", "TMPDIR": "/tmp"} {
		if err := os.Setenv(key, value); err != nil {
			return err
		}
	}
	if err := loadDrivers(); err != nil {
		return err
	}
	return raise("lo")
}

func mount(kind, at, data string) error {
	err := os.MkdirAll(at, 0o755)
	if err == nil {
		err = unix.Mount(kind, at, kind, 0, data)
	}
	// The kernel mounts /dev by itself where it is built to.
	if err != nil && !errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("mount %s at %s: %w", kind, at, err)
	}
	return nil
}

// loadDrivers loads what drives the devices of the machine, as udev would.
func loadDrivers() error {
	var names []string
	for _, bus := range []string{"pci", "virtio"} {
		found, err := filepath.Glob("/sys/bus/" + bus + "/devices/*/modalias")
		if err != nil {
			return err
		}
		for _, f := range found {
			if text, err := os.ReadFile(f); err == nil {
				names = append(names, strings.TrimSpace(string(text)))
			}
		}
	}
	// The virtual functions of network cards are not there before they are asked for.
	if cards, err := filepath.Glob("/sys/bus/pci/devices/*/sriov_totalvfs"); err == nil && len(cards) > 0 {
		names = append(names, "igbvf")
	}
	// Without it bridges can't hand packets to the firewall, and no program that could ask for it loads it.
	names = append(names, "br_netfilter")
	slices.Sort(names)
	// A kernel in which the bus itself is a module shows no devices on it at first.
	names = append([]string{"virtio_pci", "virtio_console"}, slices.Compact(names)...)
	cmd := exec.Command("/sbin/modprobe", append([]string{"-a", "-q"}, names...)...)
	var missing *exec.ExitError
	// Not each device has a driver here, nor needs one.
	if err := cmd.Run(); err != nil && !errors.As(err, &missing) {
		return fmt.Errorf("load drivers: %w", err)
	}
	return nil
}

// raise switches a device on.
func raise(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("switch %s on: %w", name, err)
	}
	r, err := unix.NewIfreq(name)
	if err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
	}
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return fmt.Errorf("switch %s on: %w", name, err)
	}
	return nil
}

// outputLate is how long output is waited for after a program has ended, where others hold it open.
const outputLate = 500 * time.Millisecond

// runScript runs programs one after another, as a guest does that takes no requests: nothing that comes from outside can then
// change what it does when. The first that fails ends it.
func (g *guest) runScript(text []byte) error {
	var script []wire.Command
	if err := json.Unmarshal(text, &script); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	fd, err := unix.Open(wire.ScriptDevice, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open the way to the host: %w", err)
	}
	if err := rawLine(fd); err != nil {
		return err
	}
	device := os.NewFile(uintptr(fd), wire.ScriptDevice)
	w := rpc.NewWriter(device)
	if err := w.JSON(rpc.Ready, hello()); err != nil {
		return err
	}
	for _, command := range script {
		exit := g.run(command, nil, w)
		if err := w.JSON(rpc.Exited, exit); err != nil {
			return err
		}
		if exit.Status != 0 {
			break
		}
	}
	if err := drain(fd); err != nil {
		return err
	}
	return device.Close()
}

// rawLine has a serial line pass all bytes as they are.
func rawLine(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("set up the serial line: %w", err)
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	t.Ispeed, t.Ospeed = unix.B115200, unix.B115200
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return fmt.Errorf("set up the serial line: %w", err)
	}
	return nil
}

// drain waits until all is sent.
func drain(fd int) error {
	if err := unix.IoctlSetInt(fd, unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("wait for the serial line: %w", err)
	}
	return nil
}
