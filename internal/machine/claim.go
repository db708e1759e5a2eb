package machine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"netdelta/internal/gather"
)

// ProcessorsVariable names a folder whose files stand for processors, in place of the kernel's own. Programs with different folders
// don't know of each other's claims.
const ProcessorsVariable = "NETDELTA_PROCESSORS"

// Claim keeps other programs like this one from processors, until Release or the end of this program.
//
// It is a lock on the processor's folder in sysfs. All users and containers of a machine that share its sysfs see the same folder,
// reading it is enough to lock it, nothing is written, and the kernel lets go of the lock when the program dies.
type Claim struct{ files []*os.File }

// BusyError says that another program has claimed a processor.
type BusyError struct {
	CPU    int
	PID    int    // 0 where it is not seen
	Folder string // the run folder that it writes, "" where that is not seen
}

// Error implements error.
func (e *BusyError) Error() string {
	text := fmt.Sprintf("another run measures on processor %d", e.CPU)
	if e.PID != 0 {
		text += fmt.Sprintf(" (process %d", e.PID)
		if e.Folder != "" {
			text += ", run folder " + e.Folder
		}
		text += ")"
	}
	return text
}

// ClaimCPUs claims processors. Where another program has one of them, the error is a *BusyError, and none is claimed.
func ClaimCPUs(cpus []int) (*Claim, error) {
	c := &Claim{}
	for _, cpu := range slices.Sorted(slices.Values(cpus)) {
		file, err := claim(cpu)
		if err != nil {
			return nil, errors.Join(err, c.Release())
		}
		c.files = append(c.files, file)
	}
	return c, nil
}

func claim(cpu int) (*os.File, error) {
	own := os.Getenv(ProcessorsVariable)
	path := filepath.Join(cmp.Or(own, "/sys/devices/system/cpu"), "cpu"+strconv.Itoa(cpu))
	flags := os.O_RDONLY
	if own != "" {
		flags |= os.O_CREATE
	}
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, fmt.Errorf("claim processor %d: %w", cpu, err)
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil:
		return file, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		busy := &BusyError{CPU: cpu, PID: holder(file)}
		busy.Folder = folderOf(busy.PID)
		err = busy
	default:
		err = fmt.Errorf("claim processor %d: lock %s: %w", cpu, path, err)
	}
	return nil, errors.Join(err, file.Close())
}

// Release gives the processors back. It is idempotent, and does nothing for a nil claim.
func (c *Claim) Release() error {
	if c == nil {
		return nil
	}
	errs := gather.Each(c.files, func(f *os.File) error { return f.Close() })
	c.files = nil
	return errors.Join(errs...)
}

// holder is the process that has locked a file, as /proc/locks has it; 0 where it is not told.
func holder(file *os.File) int {
	var st unix.Stat_t
	locks, err := os.ReadFile("/proc/locks")
	if err != nil || unix.Fstat(int(file.Fd()), &st) != nil {
		return 0
	}
	where := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK  ADVISORY  WRITE 4711 00:16:3591 0 EOF
		if f := strings.Fields(line); len(f) > 5 && f[1] == "FLOCK" && f[5] == where {
			pid, _ := strconv.Atoi(f[4]) // what is no number is not told
			return max(pid, 0)
		}
	}
	return 0
}

// folderOf is the run folder whose journal a process has open, "" where there is none or this user may not look.
func folderOf(pid int) string {
	open, err := fs.Glob(os.DirFS("/proc"), strconv.Itoa(pid)+"/fd/*")
	if err != nil {
		return ""
	}
	for _, link := range open {
		if path, err := os.Readlink(filepath.Join("/proc", link)); err == nil && filepath.Base(path) == "trials.jsonl" {
			return filepath.Dir(path)
		}
	}
	return ""
}

// networkClass begins the class of a PCI device that is a network card, as sysfs writes it.
const networkClass = "0x02"

// Interrupts are the numbers of interrupts, as /proc/interrupts names them.
type Interrupts map[string]bool

// CardInterrupts are the interrupts of all network cards on the PCI bus, in whatever namespace these are.
func CardInterrupts() Interrupts { return cardInterrupts("/") }

func cardInterrupts(root string) Interrupts {
	all := Interrupts{}
	classes, _ := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices/*/class"))
	for _, c := range classes {
		if !strings.HasPrefix(Fact(c), networkClass) {
			continue
		}
		numbers, _ := filepath.Glob(filepath.Join(filepath.Dir(c), "msi_irqs", "*"))
		for _, n := range numbers {
			all[filepath.Base(n)] = true
		}
	}
	return all
}

// read counts the interrupts since the machine's start, by the number of the processor that took them; nil where that can't be read.
func (i Interrupts) read(path string) []uint64 {
	if len(i) == 0 {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // some containers don't see it
	}
	head, lines, _ := bytes.Cut(text, []byte{'\n'})
	var processors []int
	for _, name := range strings.Fields(string(head)) {
		n, _ := strconv.Atoi(strings.TrimPrefix(name, "CPU"))
		processors = append(processors, n)
	}
	if len(processors) == 0 {
		return nil
	}
	counts := make([]uint64, processors[len(processors)-1]+1)
	for line := range bytes.Lines(lines) {
		number, rest, _ := bytes.Cut(bytes.TrimSpace(line), []byte{':'})
		if !i[string(number)] {
			continue
		}
		for k, field := range strings.Fields(string(rest)) {
			if k == len(processors) {
				break // what follows says what it is
			}
			n, _ := strconv.ParseUint(field, 10, 64)
			counts[processors[k]] += n
		}
	}
	return counts
}
