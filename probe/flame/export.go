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
