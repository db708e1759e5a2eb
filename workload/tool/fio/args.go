// Package fio knows how fio is asked to read and write blocks, and reads what it reports.
package fio

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
	"netdelta/workload/tool"
)

// Program is its name, and the name of its package.
const Program = "fio"

// Operations are what is done with blocks, as fio names it: at random places or one after another.
func Operations() []string { return []string{"randread", "randwrite", "randrw", "read", "write", "rw"} }

// Mixed says whether an operation reads and writes.
func Mixed(operation string) bool { return operation == "randrw" || operation == "rw" }

// Writes says whether an operation writes.
func Writes(operation string) bool { return Mixed(operation) || strings.HasSuffix(operation, "write") }

// Target is what fio reads and writes: an engine, and what it must know to find the blocks.
type Target struct {
	Engine  string   // as fio names it: nbd, rbd, psync
	Options []string // KEY=VALUE: pool=rbd
	// Places are the options by which it finds the blocks of each of several places, uri=nbd://192.0.2.1/disk; each has as many clients as
	// the job says. None is one place, which the options name.
	Places []string
	// Env is what the engine looks for in the environment, KEY=value: CEPH_CONF=/run/ceph/ceph.conf.
	Env []string
}

// Job is one run of fio.
type Job struct {
	Target
	Operation string     // one of Operations
	Reads     float64    // share of reads among mixed operations
	Block     unit.Bytes // of one operation
	Depth     int        // operations that each client has under way at once
	Clients   int        // of each place, that do the same at once, each on a connection of its own
	// Sync is after how many writes each client has the store make all that it wrote lasting; 0 for never.
	Sync int
	// Counts says that the kernel trusts the processors' counter. So does fio then, which else has all processors compare theirs at each start.
	Counts bool
	// Warmup is not measured; Duration is. Both are counted in whole milliseconds, and Duration is at least one.
	Warmup, Duration time.Duration
	// Operations ends the run when each client has done so many, or Duration is over; 0 leaves it to Duration. Operations of a
	// warm-up count too.
	Operations int64
}

// Args is the command line of a job. It reports in JSON, on standard output, latencies from the submission of an operation
// to its end, all clients together.
func Args(j Job) []string {
	args := []string{
		"--rw=" + j.Operation, "--bs=" + strconv.FormatInt(int64(j.Block), 10),
		"--iodepth=" + strconv.Itoa(j.Depth), "--numjobs=" + strconv.Itoa(j.Clients),
		"--runtime=" + milliseconds(j.Duration), "--ramp_time=" + milliseconds(j.Warmup),
		// A map of the blocks that were visited costs time, and says nothing of blocks that lie in memory.
		"--norandommap",
		// Engines that can go on after an operation failed do, and count it.
		"--continue_on_error=io",
		// One process, which is killed as one.
		"--thread",
		"--group_reporting", "--lat_percentiles=1", "--clat_percentiles=0", "--slat_percentiles=0",
		"--eta=never", "--output-format=json+",
	}
	if j.Counts {
		args = append(args, "--clocksource=cpu")
	}
	if Mixed(j.Operation) {
		args = append(args, fmt.Sprintf("--rwmixread=%.0f", j.Reads*100))
	}
	if j.Sync > 0 {
		args = append(args, fmt.Sprintf("--fsync=%d", j.Sync))
	}
	if j.Operations > 0 {
		args = append(args, fmt.Sprintf("--io_size=%d", j.Operations*int64(j.Block)))
	} else {
		args = append(args, "--time_based")
	}
	// What stands before the first name holds for all.
	for i := range max(len(j.Places), 1) {
		args = append(args, "--name=netdelta", "--ioengine="+j.Engine)
		for _, o := range j.Options {
			args = append(args, "--"+o)
		}
		if len(j.Places) > 0 {
			args = append(args, "--"+j.Places[i])
		}
	}
	return slices.Clip(args)
}

// milliseconds is a duration as fio takes it.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()) }

// oldest is the oldest version that is taken, Debian 11's: older ones report latencies in other forms.
const oldest = "3.25"

// CheckVersion returns an error if a version, as fio --version says it ("fio-3.33"), is too old, or is none.
func CheckVersion(said string) error {
	said = strings.TrimSpace(said)
	version, found := strings.CutPrefix(said, "fio-")
	switch {
	case !found:
		return fmt.Errorf("fio says that its version is %.40q, which is none; is it another program?", said)
	case tool.Older(version, oldest):
		return fmt.Errorf("%s is too old: install fio %s or newer", said, oldest)
	}
	return nil
}
