// Package wire is what a guest is asked for over its channel, by package rpc.
package wire

import (
	"io"
	"os"

	"netdelta/testbed/rpc"
)

// Port is the name of the virtio-serial port that the channel goes over.
const Port = "netdelta"

// Verb is the argument with which the program runs as a guest's first process.
const Verb = "vm-guest"

// ScriptFile is where a guest that takes no requests finds what it is to run, a JSON list of Command, and ScriptDevice is where the
// messages of these programs go.
const (
	ScriptFile   = "/netdelta-script.json"
	ScriptDevice = "/dev/ttyS1"
)

// The operations of a guest.
const (
	// OpExec starts the program of a Command. What the host writes to the stream is its standard input; messages come back. It is killed, with
	// all of its session, when the host closes the stream.
	OpExec = "exec"
	// OpSignal sends a Signal to the session of a program.
	OpSignal = "signal"
	// OpPut writes what the host sends into a File, OpGet sends a File as output. All but OpExec end with an Exited message alone.
	OpPut = "put"
	OpGet = "get"
)

// Command is a program to run.
type Command struct {
	Path string   `json:"path"` // absolute, or a name to be found on the guest's PATH
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"` // in addition to PATH and HOME
	Dir  string   `json:"dir,omitempty"` // "" is /
	// Stdout and Stderr get what it writes, on the host, as it comes. A nil Stdout leaves it to Process.Read; the end of standard error
	// is kept in any case.
	Stdout io.Writer `json:"-"`
	Stderr io.Writer `json:"-"`
}

// Signal is a signal to a process group.
type Signal struct {
	PID    int `json:"pid"`
	Number int `json:"number"`
}

// File is a file in the guest.
type File struct {
	Path string      `json:"path"`
	Mode os.FileMode `json:"mode,omitempty"`
}

// Hello is the header of the one stream that the guest opens, when it is ready.
type Hello struct {
	rpc.Greeting
	Kernel string `json:"kernel"`
	// Uptime is how long the kernel had run, in seconds.
	Uptime float64 `json:"uptime"`
}
