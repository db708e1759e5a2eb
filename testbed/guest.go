package testbed

import (
	"context"
	"io"

	"netdelta/result"
)

// GuestSpec is what a guest is needed for. It is pure data.
type GuestSpec struct {
	// Networks are the names of the networks that testbeds in the guest will have. Spec is the same for all of them.
	Networks []string
	Spec     Spec
	// Programs says that the workloads need external programs.
	Programs bool
	// Args are the arguments with which this program is started in the guest.
	Args []string
}

// Guest is a machine in which this program runs.
type Guest struct {
	Program GuestProgram
	// Describe adds what only the host knows to an environment that was found inside.
	Describe func(inside result.Environment) result.Environment
	// Close ends the machine.
	Close func() error
}

// GuestProgram is a program in a guest: Write goes to its standard input, Read comes from its standard output.
type GuestProgram interface {
	io.Reader
	io.Writer
	CloseWrite() error
	// Wait returns when the program has ended, with what it said in the error when it failed.
	Wait() error
	Kill() error
}

// Counter boots guests whose clock counts instructions.
type Counter struct {
	// PerInstruction is how many nanoseconds the guests' clock advances with each instruction, and Clock the name of that clock.
	PerInstruction float64
	Clock          string
	// Emulator is the version of what runs the guests, Processor what it emulates, and Image what identifies the guests' files.
	Emulator, Processor, Image string
	// Environment is what the host knows about the guests.
	Environment result.Environment
	// Count starts this program in a guest of its own and calls line with each line of its output. An error of line ends the guest.
	Count func(ctx context.Context, job CountJob, line func([]byte) error) error
}

// CountJob is what is done in one guest that counts instructions.
type CountJob struct {
	GuestSpec
	// Seed seeds the guest's random number generator.
	Seed uint64
	// File is the path in the guest of a file with the given content.
	File    string
	Content []byte
}
