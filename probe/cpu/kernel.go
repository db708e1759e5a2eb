// Package cpu tells what a burst cost in processor time: at the client, at the server, and in the kernel for no thread in particular.
//
// The client's measuring thread reads its own clock at both ends of a burst, and says so in engine.Burst.CPU. The server
// runs on in another process: its clock (clock_getcpuclockid(3)) is read around the burst. Both have nanoseconds. An agent
// does nothing else while its server is measured, so its whole process is the server's loop (to 0.3%, as a test shows); the
// clock of a single thread can't be read from another process. What else runs on the same processor, and takes it away from a
// loop for a while, makes latencies longer but is in neither figure: a thread's clock stands still while the thread does not
// run.
//
// A server on another machine tells its own time (Meter.Told): its caller asks before and after a round, or a burst, and records it.
//
// Where programs of others serve, the clocks of all processes that the server's agent has started are read with it, and what the
// kernel has summed up of their children that have ended, in ticks of 10 ms. A client whose program makes the load says itself
// what it used; one that does not has none on record, and insight then has no figure of it.
//
// The kernel does the work of the network as soft interrupts, most of them in the name of the thread that sends. Whether that
// thread's clock counts them depends on the kernel, which package softirq tries:
//
//   - "threads": it does. The work in no thread's name is what the kernel hands to its threads ksoftirqd, whose clocks are read too.
//   - "apart": soft interrupts stop the clock of the thread that they interrupt (CONFIG_IRQ_TIME_ACCOUNTING). Then they are
//     taken from /proc/stat, where ksoftirqd is among them. It counts in ticks of 10 ms: a single burst has 0 or one tick, and
//     only the sum over a trial, in which the ticks fall to either side equally often, says something.
//
// In neither case is it known for which connection the kernel worked. It counts on the processors that the burst was pinned
// to, and what other programs have the kernel do there is in it; so is, in the client's and the server's figures, a soft
// interrupt of another's packet that happened to come in their time. Both are noise to a difference between two networks that
// are measured in turn. What a soft interrupt does on an idle processor, in the "threads" kernels, is in no figure.
package cpu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"netdelta/internal/gather"
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

// delays are open files of threads in which the kernel counts how long they waited for a processor.
type delays struct {
	files []*procfile.File
	// asked is how long each thread ran or waited to run when it was read last, and waited the latter part of it.
	asked, waited []time.Duration
	of            []int               // the end that each is of, in the order of Follow
	most          [ends]time.Duration // by how much the asked of one of an end's threads has grown
}

// open opens the schedstat of threads of a process, and of daemons that it has started. It is an error if the kernel does not
// count (CONFIG_SCHED_INFO), as a thread shows that has run and yet has no figures.
func (d *delays) open(root string, pid int, threads []int, end int) error {
	for _, id := range threads {
		folder := filepath.Join(root, strconv.Itoa(pid), "task", strconv.Itoa(id))
		if daemon := filepath.Join(root, strconv.Itoa(id)); !exists(folder) && exists(daemon) {
			folder = daemon
		}
		f, err := procfile.Open(filepath.Join(folder, "schedstat"), 128)
		if err != nil {
			return err
		}
		d.files, d.asked, d.waited, d.of = append(d.files, f), append(d.asked, 0), append(d.waited, 0), append(d.of, min(end, ends-1))
		if used, _, err := figures(f); err != nil || used == 0 {
			return errors.Join(fmt.Errorf("%s has no figures", f.Name()), err)
		}
	}
	return nil
}

// exists says whether there is a file.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (d *delays) close() error {
	errs := gather.Each(d.files, func(f *procfile.File) error { return f.Close() })
	d.files, d.asked, d.waited, d.of = nil, nil, nil, nil
	return errors.Join(errs...)
}

// read is the sum of what the threads of each end have waited since they began. It notes how long each of them has asked for a processor.
func (d *delays) read() (sum [ends]time.Duration, err error) {
	d.most = [ends]time.Duration{}
	for i, f := range d.files {
		used, waited, err := figures(f)
		if errors.Is(err, syscall.ESRCH) {
			sum[d.of[i]] += d.waited[i] // a daemon that has died waits no more
			continue
		}
		if err != nil {
			return sum, err
		}
		d.waited[i] = waited
		sum[d.of[i]] += waited
		d.most[d.of[i]] = max(d.most[d.of[i]], used+waited-d.asked[i])
		d.asked[i] = used + waited
	}
	return sum, nil
}

func figures(f *procfile.File) (used, waited time.Duration, err error) {
	text, err := f.Read()
	if err != nil {
		return 0, 0, err
	}
	return parseDelay(string(text))
}

// parseDelay reads a thread's schedstat: nanoseconds that it ran, and that it waited to run, and how often it ran. See the
// kernel's Documentation/scheduler/sched-stats.rst.
func parseDelay(text string) (used, waited time.Duration, err error) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return 0, 0, fmt.Errorf("schedstat is %q: not three figures", text)
	}
	var figures [2]int64
	for i := range figures {
		if figures[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil || figures[i] < 0 {
			return 0, 0, fmt.Errorf("schedstat is %q: figure %d is no time", text, i+1)
		}
	}
	return time.Duration(figures[0]), time.Duration(figures[1]), nil
}
