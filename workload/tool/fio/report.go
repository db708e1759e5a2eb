package fio

import (
	"time"

	"netdelta/unit"
)

// Report is what a run of fio measured.
type Report struct {
	Version string // "fio-3.33"
	// Written is when the report was, after the run; the zero time where it doesn't say.
	Written time.Time
	// Jobs are those of the run; one for all that are reported as a group.
	Jobs []Result
}

// Result is what a job measured.
type Result struct {
	Name string
	// Options are the job's, by their names (rw, bs, iodepth), with the global ones that it doesn't override.
	Options map[string]string
	// Error is the first error's number, 0 for none; Errors how many operations failed where the job went on after errors.
	Error       int
	Errors      int64
	Read, Write Direction
	// User and System are processor time in the measured part: in fio itself and in the kernel on its behalf.
	User, System time.Duration
}

// Direction is what a job measured of reads, or of writes.
type Direction struct {
	Operations int64 // that were done
	Bytes      int64
	Duration   time.Duration // of the measured part, in whole milliseconds
	Rate       float64       // operations per second, by fio's own account
	Throughput unit.BitsPerSecond
	Latency    Latency
}

// Done is the direction that the job was about: reads, or writes where nothing was read.
func (r Result) Done() Direction {
	if r.Read.Operations == 0 && r.Write.Operations > 0 {
		return r.Write
	}
	return r.Read
}

// Latency is the distribution of the time that operations took, in nanoseconds.
type Latency struct {
	// Whole says that it is the time from the submission of an operation; else it is that from the end of its submission
	// (fio's "completion latency").
	Whole               bool
	Count               int64
	Min, Max, Mean, Dev float64
	// Percentiles are those that fio gives, ascending.
	Percentiles []Percentile
	// Bins are all latencies, ascending; none in reports of the plain format.
	Bins []Bin
}

// Percentile is a latency that so many percent of the operations did not exceed.
type Percentile struct{ Percent, Nanoseconds float64 }

// Bin is how many latencies lie from Low to below High.
type Bin struct{ Low, High, Count int64 }
