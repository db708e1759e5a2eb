// Package flame samples what the processors do while a workload runs: on which function, for which pod, in the kernel's name
// or idle. It needs no program but its own: perf_event_open gives the ticks, and an eBPF program notes the stacks.
package flame

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"
)

// Event is what the profiler's ticks are taken from.
type Event string

// The events, the better first.
const (
	// Cycles are hardware cycles: a tick each so many of them, and none while the processor sleeps.
	Cycles Event = "cycles"
	// Clock is the processors' time, asleep or not. A tick that falls into a part where interrupts are off is taken where they
	// are let in again: such time piles up on the function that does that.
	Clock Event = "cpu-clock"
)

// Frame is a function on a stack.
type Frame struct {
	Function string `json:"function"`
	// Kernel says that the function is the kernel's, not a program's.
	Kernel bool `json:"kernel,omitempty"`
}

// Sample is where the processors were found, and how often.
type Sample struct {
	// Space names the network namespace in whose name it ran: a pod, a node, the switch; Kernel for the kernel's own threads
	// and Elsewhere for all others.
	Space string `json:"space"`
	// Process is the name of the thread, as the kernel has it.
	Process string `json:"process"`
	// SoftIRQ says that the network's own work was under way, which the kernel does in the name of the running thread.
	SoftIRQ bool `json:"softirq,omitempty"`
	// Idle says that there was nothing to do.
	Idle bool `json:"idle,omitempty"`
	// Stack is the functions, the outermost first.
	Stack []Frame `json:"stack"`
	// Ticks is how often: each stands for the profile's Period.
	Ticks int64 `json:"ticks"`
}

// Spaces that are no part of the testbed.
const (
	// Kernel is the space of the kernel's own threads, which work for all.
	Kernel = "kernel threads"
	// Elsewhere is the space of all other programs, netdelta itself among them.
	Elsewhere = "rest of the machine"
)

// Testbed tells whether a sample is of work that the testbed may have caused.
func (s Sample) Testbed() bool { return !s.Idle && s.Space != Elsewhere }

// Profile is what the processors did for a while.
type Profile struct {
	Event Event `json:"event"`
	// Period is the time of one processor that a tick stands for.
	Period time.Duration `json:"period_ns"`
	// Duration is how long was looked at, of Processors processors at once.
	Duration   time.Duration `json:"duration_ns"`
	Processors int           `json:"processors"`
	// Lost is how many ticks there was no room for.
	Lost int64 `json:"lost,omitempty"`
	// Samples are sorted: by space, process and stack.
	Samples []Sample `json:"samples"`
}

// Total is the time of all processors that the samples stand for, idle time included.
func (p Profile) Total() time.Duration { return p.time(func(Sample) bool { return true }) }

// Idle is the time of all processors in which there was nothing to do.
func (p Profile) Idle() time.Duration { return p.time(func(s Sample) bool { return s.Idle }) }

func (p Profile) time(of func(Sample) bool) time.Duration {
	ticks := int64(0)
	for _, s := range p.Samples {
		if of(s) {
			ticks += s.Ticks
		}
	}
	return time.Duration(ticks) * p.Period
}

// Busy is the time of all processors that went into the testbed and into the kernel's own threads.
func (p Profile) Busy() time.Duration { return p.time(Sample.Testbed) }

// Add joins profiles of the same event: what the processors did in all of them. Samples of the same place become one.
func Add(profiles ...Profile) Profile {
	var sum Profile
	var all []Sample
	for _, p := range profiles {
		if sum.Event == "" {
			sum.Event, sum.Period, sum.Processors = p.Event, p.Period, p.Processors
		}
		sum.Duration += p.Duration
		sum.Lost += p.Lost
		all = append(all, p.Samples...)
	}
	sum.Samples = join(all)
	return sum
}

// join sorts samples and adds up samples of the same place.
func join(all []Sample) []Sample {
	all = slices.Clone(all)
	slices.SortStableFunc(all, compare)
	var joined []Sample
	for _, s := range all {
		if last := len(joined) - 1; last >= 0 && compare(joined[last], s) == 0 {
			joined[last].Ticks += s.Ticks
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// compare orders samples by where they were taken, not by how many there are.
func compare(a, b Sample) int {
	return cmp.Or(
		strings.Compare(a.Space, b.Space), order(a.Idle, b.Idle), strings.Compare(a.Process, b.Process), order(a.SoftIRQ, b.SoftIRQ),
		slices.CompareFunc(a.Stack, b.Stack, func(a, b Frame) int {
			return cmp.Or(order(a.Kernel, b.Kernel), strings.Compare(a.Function, b.Function))
		}),
	)
}

func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// kernelMark is what folded stacks carry at the kernel's functions, as other tools write it.
const kernelMark = "_[k]"

// Path is the sample's place as one list of names, the outermost first: the network namespace, the thread, and the stack.
// Kernel functions carry a mark.
func (s Sample) Path() []string {
	path := []string{s.Space, s.Process}
	if s.Idle {
		path = []string{idleName}
	}
	for _, f := range s.Stack {
		name := f.Function
		if f.Kernel {
			name += kernelMark
		}
		path = append(path, name)
	}
	return path
}

// WriteFolded writes a line for each place: names joined by semicolons, and the number of ticks. It is what the tools that
// draw flame graphs read.
func (p Profile) WriteFolded(w io.Writer) error {
	out := bufio.NewWriter(w)
	clean := strings.NewReplacer(";", ":", "\n", " ")
	for _, s := range p.Samples {
		path := s.Path()
		for i := range path {
			path[i] = clean.Replace(path[i])
		}
		fmt.Fprintf(out, "%s %d\n", strings.Join(path, ";"), s.Ticks)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write folded stacks: %w", err)
	}
	return nil
}

// The labels of samples in pprof.
const (
	labelSpace   = "space"
	labelProcess = "process"
	labelContext = "context" // softirq or idle
)

// WritePprof writes the profile as `go tool pprof` reads it, compressed. Samples are labelled with space, process and
// context: `-tagfocus=space=pod0` shows one pod.
func (p Profile) WritePprof(w io.Writer) error {
	e := exporter{functions: map[Frame]*profile.Location{}, to: &profile.Profile{
		SampleType:    []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		PeriodType:    &profile.ValueType{Type: "cpu", Unit: "nanoseconds"},
		Period:        p.Period.Nanoseconds(),
		DurationNanos: p.Duration.Nanoseconds(),
		Comments:      []string{fmt.Sprintf("taken from %s on %d processors; %d ticks lost", p.Event, p.Processors, p.Lost)},
	}}
	for _, s := range p.Samples {
		e.add(s, p.Period)
	}
	if err := e.to.Write(w); err != nil {
		return fmt.Errorf("write the profile for pprof: %w", err)
	}
	return nil
}

// exporter gives each function its number.
type exporter struct {
	to        *profile.Profile
	functions map[Frame]*profile.Location
}

func (e *exporter) add(s Sample, period time.Duration) {
	out := &profile.Sample{
		Value: []int64{s.Ticks, s.Ticks * period.Nanoseconds()},
		Label: map[string][]string{labelSpace: {s.Space}, labelProcess: {s.Process}},
	}
	switch {
	case s.Idle:
		out.Label[labelContext] = []string{idleName}
	case s.SoftIRQ:
		out.Label[labelContext] = []string{"softirq"}
	}
	for _, f := range slices.Backward(s.Stack) {
		out.Location = append(out.Location, e.location(f))
	}
	if len(s.Stack) == 0 {
		out.Location = append(out.Location, e.location(Frame{Function: "[" + s.Process + "]"}))
	}
	e.to.Sample = append(e.to.Sample, out)
}

func (e *exporter) location(f Frame) *profile.Location {
	if l := e.functions[f]; l != nil {
		return l
	}
	id := uint64(len(e.functions) + 1)
	function := &profile.Function{ID: id, Name: f.Function}
	if f.Kernel {
		function.Filename = "[kernel]"
	}
	l := &profile.Location{ID: id, Line: []profile.Line{{Function: function}}}
	e.to.Function = append(e.to.Function, function)
	e.to.Location = append(e.to.Location, l)
	e.functions[f] = l
	return l
}

// Use is how much time of processors went into a function.
type Use struct {
	Frame
	// Own is the time in the function itself, All with what it called.
	Own, All time.Duration
}

// Functions lists the functions that were busy for the testbed, by their own time: what a table shows of a profile.
func (p Profile) Functions() []Use {
	uses := map[Frame]*Use{}
	of := func(f Frame) *Use {
		if uses[f] == nil {
			uses[f] = &Use{Frame: f}
		}
		return uses[f]
	}
	for _, s := range p.Samples {
		if !s.Testbed() || len(s.Stack) == 0 {
			continue
		}
		spent := time.Duration(s.Ticks) * p.Period
		of(s.Stack[len(s.Stack)-1]).Own += spent
		for i, f := range s.Stack {
			if !slices.Contains(s.Stack[:i], f) { // one that calls itself counts once
				of(f).All += spent
			}
		}
	}
	var list []Use
	for _, u := range uses {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.Own, a.Own), cmp.Compare(b.All, a.All), strings.Compare(a.Function, b.Function))
	})
	return list
}

//go:generate go tool -modfile=../../tools/go.mod bpf2go -target bpfel -cc clang-14 -strip llvm-strip-14 tick bpf/profile.bpf.c -- -O2 -Wall -Wextra -Werror -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu
