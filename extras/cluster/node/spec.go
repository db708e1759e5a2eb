package node

import (
	"encoding/json"
	"io/fs"
)

// Spec is what a node is. It is the first thing that an init reads.
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
	// Env are variables beside those that each service has, as NAME=VALUE.
	Env []string
}

// operation is what a request asks for.
type operation string

const (
	opSpec  operation = "spec"
	opWrite operation = "write"
	opStart operation = "start"
	opStop  operation = "stop"
	opKill  operation = "kill"
	opRun   operation = "run"
)

// request is what an init is asked, a line of JSON each. What is filled in depends on the operation.
type request struct {
	Operation operation
	Spec      *Spec    `json:",omitempty"`
	Files     []File   `json:",omitempty"`
	Service   *Service `json:",omitempty"`
	Name      string   `json:",omitempty"` // of a service
	Args      []string `json:",omitempty"` // of a command
}

// answer is what an init says to a request, a line of JSON each.
type answer struct {
	Error  string `json:",omitempty"`
	Output string `json:",omitempty"` // of a command
}

// LogFolder is where services of a node write, a file each.
const LogFolder = "/var/log/netdelta"

// decode reads one request.
func decode(d *json.Decoder) (request, error) {
	var r request
	err := d.Decode(&r)
	return r, err
}
