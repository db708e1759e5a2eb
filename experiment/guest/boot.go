package guest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/testbed/vm/wire"
)

// Verb is the verb of the command line that does a job inside a guest, JobFile where it finds the job, and Line the serial line
// that its words go over.
const (
	Verb    = "guest-exact"
	JobFile = "/job.json"
	Line    = wire.ScriptDevice
)

const (
	// shift is QEMU's: the guest's clock goes on by 2 to its power nanoseconds with each instruction.
	shift = 1
	// PerInstruction is how many nanoseconds that are.
	PerInstruction = 1 << shift
	// Clock is the clock source of the guest's kernel: the processor's counter, which counts what the clock counts.
	Clock = "tsc"
	// Processor is what QEMU emulates.
	Processor = "max"
	// memory is a guest's.
	memory = 768 << 20
	// silence is how long a guest may say nothing, on a busy machine too: the slowest network takes seconds of a processor.
	silence = 20 * time.Minute
	// longest is how long a job may take in all.
	longest = 6 * time.Hour
)

// errSilent is the cause of a guest's end that has said nothing for too long.
var errSilent = fmt.Errorf("it has said nothing for %v", silence)

// Boot does a job in a guest of its own, whose clock counts instructions, and calls line with each line of messages. An error of
// line ends the guest.
func Boot(ctx context.Context, i image.Image, with Brought, job Job, line func([]byte) error) (err error) {
	dir, err := os.MkdirTemp("", "netdelta-job-")
	if err != nil {
		return fmt.Errorf("make a folder for a guest's job: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text, err := json.Marshal(job)
	if err != nil {
		return fmt.Errorf("encode a job: %w", err)
	}
	file := filepath.Join(dir, "job.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("write a guest's job: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer watch.Stop()
	said := &saying{line: line, cancel: cancel, watch: watch}
	exits, err := vm.RunScript(ctx, i, guestOf(with, job, file), said.hear)
	return said.outcome(ctx, exits, err, job)
}

// Brought is what a guest has of this machine.
type Brought struct {
	// Program is the path of a static netdelta, "" for this program.
	Program string
	// Files are those that networks are made of: lists of CNI plugins. The plugins themselves come with the image.
	Files []vm.File
}

// guestOf is the guest of a job.
func guestOf(with Brought, job Job, file string) vm.Machine {
	archives := []image.Archive{image.Tools}
	if len(with.Files) > 0 {
		archives = append(archives, image.CNI)
	}
	return vm.Machine{
		Program: with.Program, Memory: memory, Exact: &vm.Exact{Shift: shift, Seed: job.Seed}, Archives: archives,
		Files: append([]vm.File{{Host: file, Guest: JobFile}}, with.Files...), Patience: longest, KernelArgs: []string{"clocksource=" + Clock},
		Script: []wire.Command{{
			Path: "/netdelta", Args: []string{Verb, JobFile},
			// Nothing may run in the program but what it is told: no second thread of Go's, no collection of garbage beside what is
			// measured, no signals between threads.
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
	complaints []byte
	err        error
}

// hear takes a message of the guest's program.
func (s *saying) hear(_ int, kind wire.Kind, content []byte) {
	s.watch.Reset(silence)
	const kept = 8 << 10
	switch {
	case kind == wire.Stderr:
		s.complaints = append(s.complaints, content...)
		s.complaints = s.complaints[max(0, len(s.complaints)-kept):]
	case kind == wire.Stdout && s.err == nil:
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
func (s *saying) outcome(ctx context.Context, exits []wire.Exit, err error, job Job) error {
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
		if e != (wire.Exit{}) {
			return fmt.Errorf("count in a guest of seed %d: the program ended with status %d, signal %d: %s%s", job.Seed, e.Status, e.Signal, e.Error, s.complaint())
		}
	}
	return nil
}

func (s *saying) complaint() string {
	if text := strings.TrimSpace(string(s.complaints)); text != "" {
		return "\nthe program said: " + text
	}
	return ""
}
