package node

import "io/fs"

// Spec is what a node is. It is the first thing that its process 1 is told.
type Spec struct {
	// Name is the node's host name.
	Name string
	// Root is an empty folder of the machine. The node's root is mounted on it, where only the node sees it.
	Root string
	// Binds are folders of the machine that the node sees at other places.
	Binds []Bind
	// Memory are folders whose contents live in memory and begin empty.
	Memory []string
	// Links are symbolic links: their targets, by their paths.
	Links map[string]string
	// Files are written before anything is started.
	Files []File
}

// Bind is a folder of the machine that a node sees at To.
type Bind struct {
	From, To string
	ReadOnly bool
}

// File is a file of the node.
type File struct {
	Path    string
	Mode    fs.FileMode
	Content []byte
}

// Service is a program that runs until it is stopped, and is started again when it ends by itself.
type Service struct {
	// Name is unique in its node. It is the name of its log, too.
	Name string
	// Args are the program and its arguments.
	Args []string
	// Env are further variables of the environment, as NAME=VALUE.
	Env []string
}

// What process 1 of a node is asked for.
const (
	opPrepare = "prepare" // what a Spec says
	opWrite   = "write"   // a list of File
	opStart   = "start"   // a Service
	opStop    = "stop"    // a service, by its name
	opKill    = "kill"    // likewise, at once
	opEnd     = "end"     // those services of a list of names that run, at once
	opRun     = "run"     // a command; answers what it printed
)

// LogFolder is where services of a node write, a file each.
const LogFolder = "/var/log/netdelta"
