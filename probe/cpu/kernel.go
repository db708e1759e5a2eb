package cpu

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"netdelta/internal/procfile"
	"netdelta/internal/softirq"
	"netdelta/probe/procstat"
)

// Kernel is where the kernel books the network work that it does in no thread's name on this machine. It is for one goroutine, as its
// meters are.
type Kernel struct {
	root    string // of the proc file system
	clock   func(pid int) (time.Duration, error)
	threads map[int]int      // ksoftirqd's process, by processor
	stat    *procstat.Reader // where soft interrupts are apart
	lacks   string
}

// OpenKernel finds what has to be read, in the proc file system at root ("/proc"), where soft interrupts are accounted for as
// softirq.Find says. What can't be found there is no error: Lacks says it.
func OpenKernel(root string, a softirq.Accounting) (*Kernel, error) {
	k := &Kernel{root: root, clock: procfile.ProcessCPU}
	if a == softirq.Separate {
		var err error
		k.stat, err = procstat.Open(root)
		return k, err
	}
	var err error
	if k.threads, err = ksoftirqd(root); err != nil {
		return nil, err
	}
	if len(k.threads) == 0 {
		k.lacks = "processor time of the kernel in no thread's name: its threads ksoftirqd can't be seen from here; run in the machine's own PID namespace"
	}
	return k, nil
}

// Elsewhere is a kernel of whose work nothing can be read here, because it is on machines which this program does not run on.
func Elsewhere() *Kernel {
	return &Kernel{root: "/proc", clock: procfile.ProcessCPU, lacks: "processor time of the kernel in no thread's name: it is counted on other machines"}
}

// Lacks says why the kernel's own part is not to be had, "" if it is.
func (k *Kernel) Lacks() string { return k.lacks }

// Close closes what is open. The kernel's meters can then not be used any more.
func (k *Kernel) Close() error {
	if k.stat == nil {
		return nil
	}
	return k.stat.Close()
}

// ksoftirqd finds the kernel's threads for deferred soft interrupts. A program may give itself the same name.
func ksoftirqd(root string) (map[int]int, error) {
	pids, err := procfile.Processes(root)
	if err != nil {
		return nil, fmt.Errorf("looking for the kernel's threads: %w", err)
	}
	found := map[int]int{}
	for _, pid := range pids {
		// One that can't be read has ended, or may not be seen.
		if name, fields, err := procfile.Stat(root, pid); err == nil {
			if cpu, ok := softirqThread(name, fields); ok {
				found[cpu] = pid
			}
		}
	}
	return found, nil
}

// softirqThread tells by a process's stat whether it is a ksoftirqd, and of which processor.
func softirqThread(name string, fields []string) (cpu int, ok bool) {
	number, found := strings.CutPrefix(name, "ksoftirqd/")
	flags, err := strconv.ParseUint(fields[procfile.StatFlags], 10, 64)
	if !found || err != nil || flags&procfile.KernelThread == 0 {
		return 0, false
	}
	cpu, err = strconv.Atoi(number)
	return cpu, err == nil
}
