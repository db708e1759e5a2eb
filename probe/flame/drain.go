package flame

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"netdelta/internal/gather"
)

// depth is how many functions of a stack the kernel keeps, as in profile.bpf.c.
const depth = 127

// idleName is the name of the task that runs when no other does.
const idleName = "idle"

// softIRQs are the functions below which the kernel does the work of soft interrupts: their names since Linux 6.7 and before.
func softIRQs() []string {
	return []string{"handle_softirqs", "__do_softirq", "__softirqentry_text_start"}
}

// drain empties the maps into samples.
func (p *Profiler) drain(ctx context.Context, names map[uint32]string) (samples []Sample, lost int64, err error) {
	r := reader{stacks: p.objects.Stacks, kernel: p.kernel, programs: p.programs, names: names}
	var at tickPlace
	var ticks uint64
	var seen []tickPlace
	for all := p.objects.Ticks.Iterate(); all.Next(&at, &ticks); {
		seen = append(seen, at)
		s, err := r.sample(at)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, 0, err
		}
		s.Ticks = int64(ticks)
		samples = append(samples, s)
	}
	if err := p.empty(seen); err != nil {
		return nil, 0, err
	}
	lost, err = p.lost()
	return samples, lost, err
}

// empty makes room for the next profile.
func (p *Profiler) empty(seen []tickPlace) error {
	for _, at := range seen {
		if err := p.objects.Ticks.Delete(at); err != nil {
			return fmt.Errorf("empty the map of ticks: %w", err)
		}
		for _, stack := range []int32{at.Kernel, at.User} {
			if stack < 0 {
				continue
			}
			// Several places share a stack, which then is gone already.
			if err := p.objects.Stacks.Delete(uint32(stack)); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
				return fmt.Errorf("empty the map of stacks: %w", err)
			}
		}
	}
	return nil
}

// lost reads how many ticks there was no room for, and begins to count anew.
func (p *Profiler) lost() (int64, error) {
	var each []uint64
	if err := p.objects.Lost.Lookup(uint32(0), &each); err != nil {
		return 0, fmt.Errorf("read the number of lost ticks: %w", err)
	}
	sum := int64(0)
	for i, n := range each {
		sum += int64(n)
		each[i] = 0
	}
	if err := p.objects.Lost.Put(uint32(0), each); err != nil {
		return 0, fmt.Errorf("reset the number of lost ticks: %w", err)
	}
	return sum, nil
}

// reader turns what the eBPF program noted into samples.
type reader struct {
	stacks   *ebpf.Map
	kernel   symbols
	programs map[uint32]*program
	names    map[uint32]string
}

// sample is one place, without its ticks.
func (r *reader) sample(at tickPlace) (Sample, error) {
	s := Sample{Space: r.names[at.Space], Process: string(bytes.TrimRight(int8s(at.Name[:]), "\x00"))}
	switch {
	case at.Own != 0:
		s.Space = Kernel
	case s.Space == "":
		s.Space = Elsewhere
	}
	user, err := r.stack(at.User)
	if err != nil {
		return s, err
	}
	kernel, err := r.stack(at.Kernel)
	if err != nil {
		return s, err
	}
	for _, a := range user {
		s.Stack = append(s.Stack, Frame{Function: r.program(at.Process).name(a)})
	}
	if at.User == noRoom {
		s.Stack = append(s.Stack, Frame{Function: unknown})
	}
	for _, a := range kernel {
		s.Stack = append(s.Stack, Frame{Function: r.kernel.name(a), Kernel: true})
	}
	if at.Kernel == noRoom {
		s.Stack = append(s.Stack, Frame{Function: unknown, Kernel: true})
	}
	s.SoftIRQ = slices.ContainsFunc(s.Stack, func(f Frame) bool { return f.Kernel && slices.Contains(softIRQs(), f.Function) })
	if s.Idle = at.Process == 0 && !s.SoftIRQ; at.Process == 0 {
		s.Process, s.Space = idleName, Elsewhere
	}
	return s, nil
}

// noRoom is in place of a stack that fell on the place of another: EEXIST.
const noRoom = -17

// unknown is the function of a stack that was not kept.
const unknown = "[stack not kept]"

// stack reads a stack, the outermost function first. There is none for a negative number: a thread of the kernel has no
// program, and a program that computes is not in the kernel.
func (r *reader) stack(id int32) ([]uint64, error) {
	if id < 0 {
		return nil, nil
	}
	var raw [depth]uint64
	if err := r.stacks.Lookup(uint32(id), &raw); err != nil {
		return nil, fmt.Errorf("read stack %d: %w", id, err)
	}
	end := slices.Index(raw[:], 0)
	if end < 0 {
		end = depth
	}
	addresses := slices.Clone(raw[:end])
	slices.Reverse(addresses)
	return addresses, nil
}

func (r *reader) program(process uint32) *program {
	p := r.programs[process]
	if p == nil {
		p = readProgram(int(process))
		r.programs[process] = p
	}
	return p
}

func int8s(name []int8) []byte {
	return gather.Each(name, func(c int8) byte { return byte(c) })
}
