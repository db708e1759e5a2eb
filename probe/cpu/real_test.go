package cpu

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/leak"
	"netdelta/internal/machine"
	"netdelta/internal/native"
	"netdelta/internal/netns"
	"netdelta/internal/require"
	"netdelta/internal/softirq"
	"netdelta/stats"
	"netdelta/workload/catalogue"
)

// The test binary is also an agent, a server of known cost, and a neighbour that takes processor time away.
const (
	spinVariable = "CPU_TEST_SPIN" // microseconds of work for each request; "forever" answers none
	cpuVariable  = "CPU_TEST_CPU"
)

func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	if spin := os.Getenv(spinVariable); spin != "" {
		beServer(spin)
		return
	}
	os.Exit(leak.Main(m))
}

// beServer answers requests of one byte on standard input, each after the given microseconds of its own processor time.
func beServer(spin string) {
	runtime.LockOSThread()
	if err := pin(os.Getenv(cpuVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if spin == "forever" {
		for {
			burn(time.Second)
		}
	}
	us, err := strconv.Atoi(spin)
	if err != nil {
		os.Exit(1)
	}
	var request [1]byte
	for {
		if n, err := unix.Read(0, request[:]); n != 1 || err != nil {
			return
		}
		burn(time.Duration(us) * time.Microsecond)
		if _, err := unix.Write(1, request[:]); err != nil {
			return
		}
	}
}

func pin(cpu string) error {
	id, err := strconv.Atoi(cpu)
	if err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(id)
	return unix.SchedSetaffinity(0, &set)
}

func burn(d time.Duration) {
	for end := native.ThreadCPU() + int64(d); native.ThreadCPU() < end; {
		continue
	}
}

// child is a running role of the test binary.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func (c child) PID() int    { return c.Process.Pid }
func (c child) Local() bool { return true }

func start(t *testing.T, spin string, cpu int) child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := child{Cmd: exec.Command(exe)}
	c.Env = append(os.Environ(), spinVariable+"="+spin, cpuVariable+"="+strconv.Itoa(cpu), "GOMAXPROCS=1")
	c.Stderr = os.Stderr
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if c.out, err = c.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c
}

// burst has the server answer n requests.
func (c child) burst(t *testing.T, n int) engine.Burst {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began, before := time.Now(), native.ThreadCPU()
	var message [1]byte
	for range n {
		if _, err := c.in.Write(message[:]); err != nil {
			t.Fatal(err)
		}
		if _, err := c.out.Read(message[:]); err != nil {
			t.Fatal(err)
		}
	}
	return engine.Burst{Duration: time.Since(began), Work: int64(n), CPU: time.Duration(native.ThreadCPU() - before)}
}

// allowed is a processor that this test may use, and the kernel's accounting on it.
func allowed(t *testing.T) (int, *Kernel) {
	t.Helper()
	cpus, err := machine.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	how, err := softirq.Find(cpu)
	if err != nil {
		t.Fatal(err)
	}
	k, err := OpenKernel("/proc", how)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return cpu, k
}

// each is what a transaction takes of the server's processor time and of the wall's, in the middle of several bursts.
func each(t *testing.T, m *Meter, c child, bursts, n int) (cpu, wall float64) {
	t.Helper()
	var cpus, walls []float64
	for range bursts {
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		b := c.burst(t, n)
		spent, err := m.Stop(b)
		if err != nil {
			t.Fatal(err)
		}
		cpus = append(cpus, float64(spent.Server)/float64(n))
		walls = append(walls, float64(b.Duration)/float64(n))
	}
	slices.Sort(cpus)
	slices.Sort(walls)
	return cpus[len(cpus)/2] / 1e3, walls[len(walls)/2] / 1e3
}

// TestServerOfKnownCost: the figure of a server that works for a known time on each request is that time, beside what it takes
// to receive and send. A server without any work shows how much that is, in turn with it; work between requests makes it more.
func TestServerOfKnownCost(t *testing.T) {
	cpu, k := allowed(t)
	none := start(t, "0", cpu)
	empty := k.Meter(none, []int{cpu})
	each(t, empty, none, 1, 10) // it has begun
	for _, want := range []float64{100, 400} {
		c := start(t, strconv.Itoa(int(want)), cpu)
		m := k.Meter(c, []int{cpu})
		each(t, m, c, 1, 10)
		var got, least, most float64
		for range 5 { // caches that others have emptied cost a server time of its own
			got, _ = each(t, m, c, 9, 50)
			least, _ = each(t, empty, none, 9, 50)
			if most = 1.1*want + 3*least; got <= most {
				break
			}
		}
		t.Logf("a server without work used %.1f us, one that works %.0f us %.1f us", least, want, got)
		if got < want || got > most {
			t.Errorf("a server that works %.0f us on each request used %.1f us, want at most %.1f us", want, got, most)
		}
		if idle, _ := each(t, empty, c, 3, 10); idle > want/10 {
			t.Errorf("a server that was not asked used %.1f us", idle)
		}
	}
}

// TestNeighbour: others on the same processor make transactions take longer, but not more of the server's time.
func TestNeighbour(t *testing.T) {
	cpu, k := allowed(t)
	c := start(t, "200", cpu)
	m := k.Meter(c, []int{cpu})
	each(t, m, c, 1, 10)
	var neighbours []child
	for range 3 {
		neighbours = append(neighbours, start(t, "forever", cpu))
	}
	tell := func(signal unix.Signal) {
		for _, n := range neighbours {
			if err := unix.Kill(n.PID(), signal); err != nil {
				t.Fatal(err)
			}
		}
	}
	// In turn, so that what else this machine does meanwhile is the same with them and without. What it does may still favour one of
	// the two: then once more. Neighbours that were counted as work would make it three times as much, however often.
	var wrong error
	for range 4 {
		var cpus, walls [2][]float64
		for i := range 22 {
			with := i % 2
			tell([]unix.Signal{unix.SIGSTOP, unix.SIGCONT}[with])
			used, took := each(t, m, c, 1, 50)
			cpus[with], walls[with] = append(cpus[with], used), append(walls[with], took)
		}
		alone, beside := stats.Median(cpus[0]), stats.Median(cpus[1])
		wrong = nil
		if quick, slow := stats.Median(walls[0]), stats.Median(walls[1]); slow < 1.15*quick {
			wrong = fmt.Errorf("three busy neighbours took nothing away: %.0f us, %.0f us alone", slow, quick)
		} else if beside > 1.25*alone || beside < 0.8*alone {
			wrong = fmt.Errorf("a transaction takes %.1f us of processor time with neighbours, %.1f us alone", beside, alone)
		}
		if wrong == nil {
			break
		}
		t.Log(wrong)
	}
	tell(unix.SIGCONT)
	if wrong != nil {
		t.Error(wrong)
	}
}

// TestKernelForNobody has packets run in a circle between two bridges, which no process asks the kernel for.
func TestKernelForNobody(t *testing.T) {
	require.Namespaces(t)
	_, k := allowed(t)
	require.Need(t, "a view of the kernel's threads", k.Lacks() == "")
	m := k.Meter(process{local: false}, nil)
	const enoughWork = 5 * time.Millisecond
	n, err := netns.New(circle)
	if err != nil {
		t.Fatal(err)
	}
	var used time.Duration
	for deadline := time.Now().Add(20 * time.Second); used < enoughWork && time.Now().Before(deadline); {
		began := time.Now()
		if err := m.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		spent, err := m.Stop(engine.Burst{})
		if err != nil {
			t.Fatal(err)
		}
		if most := time.Since(began) * time.Duration(runtime.NumCPU()); spent.Kernel > most+time.Duration(runtime.NumCPU())*10*time.Millisecond {
			t.Errorf("%v of processor time in %v", spent.Kernel, time.Since(began))
		}
		used += spent.Kernel
	}
	if used < enoughWork {
		t.Errorf("packets in a circle took %v of the kernel's time", used)
	}
	if err := n.Do(breakUp); err != nil {
		t.Error(err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
}

// circle joins two bridges by two cables; the kernel's own greetings on new links are then passed on for ever.
func circle() error {
	var links []netlink.Link
	for _, name := range []string{"br0", "br1"} {
		bridge := &netlink.Bridge{LinkAttrs: netlink.NewLinkAttrs()}
		bridge.Name = name
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		links = append(links, bridge)
	}
	for _, name := range []string{"a", "b"} {
		cable := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: name + "1"}
		cable.Name = name + "0"
		if err := netlink.LinkAdd(cable); err != nil {
			return err
		}
		for i, end := range []string{"0", "1"} {
			link, err := netlink.LinkByName(name + end)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(link, links[i].(*netlink.Bridge)); err != nil {
				return err
			}
			links = append(links, link)
		}
	}
	for _, l := range links {
		if err := netlink.LinkSetUp(l); err != nil {
			return err
		}
	}
	return shout()
}

// shout sends a few broadcasts out of the first bridge.
func shout() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	br0, err := netlink.LinkByName("br0")
	if err != nil {
		return err
	}
	frame := append(bytes.Repeat([]byte{0xff}, 6), 2, 0, 0, 0, 0, 1, 0x88, 0xb5)
	frame = append(frame, make([]byte, 50)...)
	for range 64 {
		if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: br0.Attrs().Index}); err != nil {
			return err
		}
	}
	return nil
}

// breakUp takes one of the cables away.
func breakUp() error {
	cable, err := netlink.LinkByName("b0")
	if err != nil {
		return err
	}
	return netlink.LinkDel(cable)
}

func BenchmarkMeter(b *testing.B) {
	k, err := OpenKernel("/proc", softirq.Threads)
	if err != nil {
		b.Fatal(err)
	}
	defer k.Close()
	m := k.Meter(process{os.Getpid(), true}, []int{0})
	b.ReportAllocs()
	for b.Loop() {
		if err := m.Start(); err != nil {
			b.Fatal(err)
		}
		if _, err := m.Stop(engine.Burst{}); err != nil {
			b.Fatal(err)
		}
	}
}
