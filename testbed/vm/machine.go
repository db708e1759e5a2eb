package vm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"netdelta/internal/clock"
	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
	"netdelta/unit"
)

// Accel is what carries out the guest's instructions.
type Accel string

// KVM is the processor itself; TCG is QEMU's translator, some ten times slower, which works everywhere.
const (
	KVM Accel = "kvm"
	TCG Accel = "tcg"
)

// Sizes of guests where nothing else is asked for, and bounds.
const (
	defaultCPUs     = 2
	defaultMemory   = 1 << 30
	leastMemory     = 384 << 20
	mostCPUs        = 64
	defaultPatience = 3 * time.Minute
)

// MostMemoryWithCards is the most memory of a guest with cards: above it virtual functions never reach their card.
const MostMemoryWithCards unit.Bytes = 2815 << 20

// MaxLinks is the most cards without virtual functions that a guest may have: its bus has 32 places.
const MaxLinks = 20

// hz is the tick rate that Debian builds its kernels with (CONFIG_HZ).
const hz = 250

// Machine is what a guest is made of. The zero value is a machine of usual size.
type Machine struct {
	CPUs   int        // 1 to 64; 0 is 2, and 1 in exact mode
	Memory unit.Bytes // at least 384 MiB; 0 is 1 GiB
	// Accel is what to run on; "" finds out what works.
	Accel Accel
	// Exact has virtual time count instructions, so that a guest does the same at the same time whenever it runs.
	Exact *Exact
	// Cards is how many emulated network cards with virtual functions (Intel's igb) the guest has, all on one hub.
	Cards int
	// Links are network cards without virtual functions.
	Links []Link
	// Program is a statically linked netdelta, the guest's first process; "" is this program.
	Program string
	// Archives are unpacked into the guest's root folder in addition to the base; nil means the tools and the CNI plugins.
	Archives []image.Archive
	// Files are brought along.
	Files []File
	// Script is run in place of waiting for requests. Exact machines have to have one.
	Script []wire.Command
	// KernelArgs are added to the kernel's command line.
	KernelArgs []string
	// Patience is how long the guest may take to get ready; 0 is 3 minutes.
	Patience time.Duration
}

// Exact is how virtual time passes.
type Exact struct {
	// Shift says that an instruction takes 2^Shift nanoseconds, 0 to 10.
	Shift int
	// Seed feeds what the guest takes for random numbers.
	Seed uint64
}

// File is a file or a folder of this machine, and the absolute path that it gets in the guest.
type File struct{ Host, Guest string }

// Link is a virtio network card, and End what it is joined to: one end of a pair of connected stream sockets, the other end of which
// another guest has (Wire makes such pairs), or a tap device.
type Link struct {
	MAC string
	End *os.File
	Tap bool // End is one
	MTU int  // what the card tells its driver; 0 is 1500
	// Functions has the card be an emulated one with virtual functions (igb).
	Functions bool
}

// InvalidError says that a machine can't be made.
type InvalidError struct{ Why string }

// Error implements error.
func (e *InvalidError) Error() string { return "no such guest can be made: " + e.Why }

// complete fills in what is left open, and refuses what can't be.
func (m Machine) complete() (Machine, error) {
	cpus := defaultCPUs
	if m.Exact != nil {
		cpus = 1
	}
	m.CPUs, m.Memory, m.Patience = cmp.Or(m.CPUs, cpus), cmp.Or(m.Memory, defaultMemory), cmp.Or(m.Patience, defaultPatience)
	if m.Archives == nil {
		m.Archives = []image.Archive{image.Tools, image.CNI}
	}
	if err := m.check(); err != nil {
		return Machine{}, err
	}
	if m.Exact != nil {
		if err := m.checkExact(); err != nil {
			return Machine{}, err
		}
		m.Accel = TCG
	}
	if m.Program == "" {
		self, err := os.Executable()
		if err != nil {
			return Machine{}, fmt.Errorf("find this program's file: %w", err)
		}
		m.Program = self
	}
	return m, static(m.Program)
}

func refuse(format string, a ...any) error { return &InvalidError{fmt.Sprintf(format, a...)} }

// check refuses what no guest can be.
func (m Machine) check() error {
	switch {
	case m.CPUs < 1 || m.CPUs > mostCPUs:
		return refuse("it would have %d processors: 1 to %d will do", m.CPUs, mostCPUs)
	case m.Memory < leastMemory:
		return refuse("%d MiB of memory are not enough: it takes %d", m.Memory>>20, leastMemory>>20)
	case (m.Cards > 0 || slices.ContainsFunc(m.Links, func(l Link) bool { return l.Functions })) && m.Memory > MostMemoryWithCards:
		return refuse("with more than %d MiB of memory virtual functions don't reach their card", MostMemoryWithCards>>20)
	case m.Cards < 0 || m.Cards > 4:
		return refuse("it would have %d cards: 0 to 4 will do", m.Cards)
	case len(m.Links) > MaxLinks:
		return refuse("it would have %d links: 0 to %d will do", len(m.Links), MaxLinks)
	case m.Exact == nil && m.Accel != "" && m.Accel != KVM && m.Accel != TCG:
		return refuse("%q is no accelerator: %s and %s are", m.Accel, KVM, TCG)
	}
	for _, f := range m.Files {
		if !filepath.IsAbs(f.Guest) {
			return refuse("%s has no absolute path for the guest: %q", f.Host, f.Guest)
		}
	}
	return nil
}

// checkExact refuses what an exact guest can't be.
func (m Machine) checkExact() error {
	switch {
	case m.CPUs != 1:
		return refuse("exact mode takes one processor and it would have %d", m.CPUs)
	case m.Accel != "" && m.Accel != TCG:
		return refuse("exact mode takes %s", TCG)
	case len(m.Script) == 0 || len(m.Links) > 0 || m.Cards > 0:
		return refuse("exact mode takes a script, and no network cards: what comes from outside comes at no exact time")
	case m.Exact.Shift < 0 || m.Exact.Shift > 10:
		return refuse("an instruction of 2^%d ns: 0 to 10 will do", m.Exact.Shift)
	}
	return nil
}

// Numbers of the descriptors that QEMU inherits.
const (
	consoleFD = 3 + iota
	channelFD
	initrdFD
	linkFD // and those after it
)

// arguments are QEMU's, without those that lead it to its files.
func (m Machine) arguments(kernel string) []string {
	args := []string{
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none", "-M", "q35", "-cpu", m.cpu(),
		"-smp", strconv.Itoa(m.CPUs), "-m", strconv.FormatInt(int64(m.Memory>>20), 10) + "M",
		"-kernel", kernel, "-initrd", "/proc/self/fd/" + strconv.Itoa(initrdFD), "-append", m.commandLine(),
		"-chardev", m.way("console", consoleFD), "-serial", "chardev:console", "-chardev", m.way("channel", channelFD),
	}
	if len(m.Script) > 0 {
		args = append(args, "-serial", "chardev:channel")
	} else {
		args = append(args, "-device", "virtio-serial-pci", "-device", "virtserialport,chardev=channel,name="+wire.Port)
	}
	switch {
	case m.Exact != nil:
		args = append(args, "-accel", "tcg,thread=single", "-icount", fmt.Sprintf("shift=%d,sleep=off", m.Exact.Shift),
			"-seed", strconv.FormatUint(m.Exact.Seed, 10), "-rtc", "base=2026-01-01T00:00:00,clock=vm")
	case m.Accel == KVM:
		args = append(args, "-accel", "kvm")
	default:
		args = append(args, "-accel", "tcg,thread=multi")
	}
	return append(append(args, m.cards()...), m.links()...)
}

// way is where QEMU writes the console or the channel.
func (m Machine) way(id string, fd int) string {
	if m.Exact != nil {
		return onto(id, fd)
	}
	return fmt.Sprintf("socket,id=%s,fd=%d", id, fd)
}

// ExactCPU is QEMU's model of the processor of a guest that counts instructions, with all that QEMU has.
const ExactCPU = "max"

// cpu is the model of the guest's processors. A kernel that is told of fast copies of strings makes all its copies by them, which QEMU
// translates into a loop over single bytes: without them a guest boots in three quarters of the time.
func (m Machine) cpu() string {
	switch {
	case m.Accel == KVM:
		return "host"
	case m.Exact != nil:
		return ExactCPU
	default:
		return "max,-erms,-fsrm"
	}
}

// cards are cards with virtual functions, each behind a port of its own, as virtual functions need it, and all on one hub.
func (m Machine) cards() []string {
	var args []string
	for i := range m.Cards {
		args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=port%d,slot=%d,chassis=%d", i, i+1, i+1),
			"-netdev", fmt.Sprintf("hubport,hubid=0,id=hub%d", i),
			"-device", fmt.Sprintf("igb,bus=port%d,netdev=hub%d,id=card%d,mac=52:54:00:de:17:%02x,romfile=", i, i, i, i+1))
	}
	return args
}

func (m Machine) links() []string {
	var args []string
	for i, l := range m.Links {
		end := fmt.Sprintf("stream,id=link%d,server=off,addr.type=fd,addr.str=%d", i, linkFD+i)
		if l.Tap {
			end = fmt.Sprintf("tap,id=link%d,fd=%d", i, linkFD+i)
		}
		args = append(args, "-netdev", end)
		device := fmt.Sprintf("netdev=link%d,mac=%s,romfile=", i, l.MAC)
		switch {
		case l.Functions:
			slot := m.Cards + i + 1
			args = append(args, "-device", fmt.Sprintf("pcie-root-port,id=linkport%d,slot=%d,chassis=%d", i, slot, slot))
			device = fmt.Sprintf("igb,bus=linkport%d,", i) + device
		case l.MTU > 0:
			device = "virtio-net-pci," + device + ",host_mtu=" + strconv.Itoa(l.MTU)
		default:
			device = "virtio-net-pci," + device
		}
		args = append(args, "-device", device)
	}
	return args
}

// commandLine is the kernel's command line. It switches off mitigations, which guard programs from one another: they would be
// measured, and no other user shares the machine.
func (m Machine) commandLine() string {
	words := []string{"console=ttyS0", "quiet", "loglevel=4", "panic=-1", "reboot=t", "mitigations=off", "nokaslr", "audit=0", "random.trust_cpu=on"}
	if m.Accel != KVM {
		words = append(words, "tsc=reliable")
		// Under translation the kernel's own measurement of its counter, and of how long its delays are, goes wrong by a factor.
		if rate := m.counterRate(); rate > 0 {
			words = append(words, fmt.Sprintf("lpj=%d", rate/hz), fmt.Sprintf("tsc_early_khz=%d", rate/1000))
		}
	}
	words = append(append(words, m.KernelArgs...), "rdinit=/netdelta", "--", wire.Verb)
	return strings.Join(words, " ")
}

// counterRate is how often in a second the guest's time stamp counter ticks: under translation like this machine's own, in exact
// mode once in a virtual nanosecond. It is 0 where that is not known.
func (m Machine) counterRate() int64 {
	if m.Exact != nil {
		return int64(time.Second)
	}
	if c := clock.System(); c.Counter() {
		return c.Span(time.Second)
	}
	return 0
}

var errDynamic = errors.New("it is linked dynamically, and a guest has not its libraries: build it with CGO_ENABLED=0 (make build does)")

// kvmPatience is how long a kernel may take under KVM to find that it has nothing to run: a second where KVM works.
const kvmPatience = 10 * time.Second

// Accelerator finds out by trial what guests can run on here. The answer is kept in the folder of the images until this machine reboots.
func Accelerator(ctx context.Context, i image.Image) (Accel, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the kernel's boot id: %w", err)
	}
	key := strings.TrimSpace(string(boot)) + " " + i.ID()
	kept := filepath.Join(filepath.Dir(i.Dir), "accelerator")
	if text, err := os.ReadFile(kept); err == nil {
		if of, answer, ok := strings.Cut(strings.TrimSpace(string(text)), ": "); ok && of == key && (Accel(answer) == KVM || Accel(answer) == TCG) {
			return Accel(answer), nil
		}
	}
	answer := TCG
	switch works, err := tryKVM(ctx, i); {
	case err != nil:
		return "", err
	case works:
		answer = KVM
	}
	// Where it can't be kept it is found out again.
	_ = os.WriteFile(kept, []byte(key+": "+string(answer)+"\n"), 0o644)
	return answer, nil
}

// tryKVM boots a kernel that has nothing to run, so that it ends at once. Where KVM exists but does not work it hangs.
func tryKVM(ctx context.Context, i image.Image) (bool, error) {
	f, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return false, nil // there is none, or it is not for this user: then it is not for us
	}
	if err := f.Close(); err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, kvmPatience)
	defer cancel()
	path, args, env := i.Emulator()
	cmd := exec.CommandContext(limited, path, append(args, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-nic", "none",
		"-M", "q35", "-accel", "kvm", "-cpu", "host", "-m", "256M", "-kernel", i.KernelFile(), "-append", "panic=-1 reboot=t")...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL}
	err = cmd.Run()
	if ctx.Err() != nil {
		return false, fmt.Errorf("try KVM: %w", ctx.Err())
	}
	var refused *exec.ExitError
	if err != nil && !errors.As(err, &refused) && limited.Err() == nil {
		return false, fmt.Errorf("try KVM: %w", err)
	}
	return err == nil, nil
}
