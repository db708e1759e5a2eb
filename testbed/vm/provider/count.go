package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netdelta/internal/tail"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
)

const (
	// shift is QEMU's: the guest's clock goes on by 2 to its power nanoseconds with each instruction.
	shift = 1
	// perInstruction is how many nanoseconds that are.
	perInstruction = 1 << shift
	// clock is the clock source of the guest's kernel: the processor's counter, which counts what the clock counts.
	clock = "tsc"
	// memory is a guest's.
	memory = 768 << 20
	// silence is how long a guest may say nothing, on a busy machine too: the slowest network takes seconds of a processor.
	silence = 20 * time.Minute
	// longest is how long a job may take in all.
	longest = 6 * time.Hour
)

// errSilent is the cause of a guest's end that has said nothing for too long.
var errSilent = fmt.Errorf("it has said nothing for %v", silence)

// counter is the counter of a built image.
func (p Lab) counter(ctx context.Context) (*testbed.Counter, error) {
	img, err := p.Image(ctx)
	if err != nil {
		return nil, err
	}
	return NewCounter(img, ""), nil
}

// NewCounter counts in guests of an image, with the static netdelta at a path in place of this program unless that is "".
func NewCounter(img image.Image, program string) *testbed.Counter {
	return &testbed.Counter{
		PerInstruction: perInstruction, Clock: clock, Emulator: img.QEMU, Processor: vm.ExactCPU, Image: img.ID(),
		Environment: result.Environment{
			Virtual:  "QEMU " + img.QEMU + ", counting instructions",
			Versions: map[string]string{"qemu": img.QEMU, "accelerator": "tcg, icount", "image": img.ID()},
		},
		Count: func(ctx context.Context, job testbed.CountJob, line func([]byte) error) error {
			return count(ctx, img, program, job, line)
		},
	}
}

// count does a job in a guest of its own.
func count(ctx context.Context, i image.Image, program string, job testbed.CountJob, line func([]byte) error) (err error) {
	dir, err := os.MkdirTemp("", "netdelta-job-")
	if err != nil {
		return fmt.Errorf("make a folder for a guest's job: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "job.json")
	if err := os.WriteFile(file, job.Content, 0o600); err != nil {
		return fmt.Errorf("write a guest's job: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watch.Stop()
	said := &saying{line: line, cancel: cancel, watch: watch, complaints: tail.New(8 << 10)}
	exits, err := vm.RunScript(ctx, i, guestOf(program, job, file), said.hear)
	return said.outcome(ctx, exits, err, job)
}

// guestOf is the guest of a job.
func guestOf(own string, job testbed.CountJob, file string) vm.Machine {
	archives := []image.Archive{image.Tools}
	brought := files(job.GuestSpec)
	if len(brought) > 0 {
		archives = append(archives, image.CNI)
	}
	return vm.Machine{
		Program: own, Memory: memory, Exact: &vm.Exact{Shift: shift, Seed: job.Seed}, Archives: archives,
		Files: append([]vm.File{{Host: file, Guest: job.File}}, brought...), Patience: longest, KernelArgs: []string{"clocksource=" + clock},
		Script: []wire.Command{{
			Path: program, Args: job.Args,
			// Nothing may run in the program but the measured code: no second Go thread, no garbage collection, no signals between threads.
			Env: []string{"GOMAXPROCS=1", "GOGC=off", "GODEBUG=asyncpreemptoff=1", "GOTRACEBACK=single"},
		}},
	}
}

// saying is what a guest says.
type saying struct {
	line       func([]byte) error
	cancel     context.CancelCauseFunc
	watch      *time.Timer
	part       []byte // of a line that is not whole yet
	complaints *tail.Tail
	err        error
}

// hear takes a message of the guest's program.
func (s *saying) hear(_ int, kind rpc.MessageKind, content []byte) {
	s.watch.Reset(silence)
	switch {
	case kind == rpc.Stderr:
		_, _ = s.complaints.Write(content) // it never fails
	case kind == rpc.Stdout && s.err == nil:
		s.part = append(s.part, content...)
		for s.err == nil {
			whole, rest, found := bytes.Cut(s.part, []byte{'\n'})
			if !found {
				break
			}
			s.part = rest
			if s.err = s.line(whole); s.err != nil {
				s.cancel(s.err)
			}
		}
	}
}

// outcome is how a guest ended.
func (s *saying) outcome(ctx context.Context, exits []rpc.Exit, err error, job testbed.CountJob) error {
	switch {
	case s.err != nil:
		return s.err
	case err != nil:
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = cause
		}
		return fmt.Errorf("count in a guest of seed %d: %w%s", job.Seed, err, s.complaint())
	}
	for _, e := range exits {
		if e != (rpc.Exit{}) {
			return fmt.Errorf("count in a guest of seed %d: the program ended with status %d, signal %d: %s%s", job.Seed, e.Status, e.Signal, e.Error, s.complaint())
		}
	}
	return nil
}

func (s *saying) complaint() string {
	if text := strings.TrimSpace(s.complaints.String()); text != "" {
		return "\nthe program said: " + text
	}
	return ""
}
