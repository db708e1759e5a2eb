package keep

import (
	"time"

	"netdelta/result"
	"netdelta/testbed"
)

// order is what a keeper is started with, on its standard input. Its first answer, on its standard output, is the lab's status.
type order struct {
	Name   string       `json:"name"`
	Folder string       `json:"folder"`
	Spec   testbed.Spec `json:"spec"`
}

// The operations of a keeper. A client has a connection for each request, and greets the keeper first.
const (
	opStatus = "status"
	opEnter  = "enter" // takes the name of a pod or node
	opSwap   = "swap"  // takes the name of a network
	opDown   = "down"  // removes the lab and ends the keeper
)

// entrance is the answer to opEnter: files of the keeper, which stay open as long as the connection, and the lab's mark.
type entrance struct {
	User    string `json:"user"`
	Network string `json:"network"`
	Mark    string `json:"mark"`
}

// Status is what a keeper tells of its lab.
type Status struct {
	Name    string        `json:"name"`
	Network string        `json:"network"`
	Family  result.Family `json:"family,omitempty"`
	Nodes   int           `json:"nodes"`
	Started time.Time     `json:"started"`
	PID     int           `json:"pid"` // of the keeper
	// Rootless tells a lab in a user namespace from one of root.
	Rootless bool  `json:"rootless"`
	Pods     []Pod `json:"pods"`
	// Path lists the devices from the first pod to the last, "" where there is only one pod.
	Path string `json:"path,omitempty"`
	// Trouble says why the keeper does not answer; only the name is known then.
	Trouble string `json:"trouble,omitempty"`
}

// Pod is an endpoint of a lab that is up.
type Pod struct {
	Name    string `json:"name"`
	Node    string `json:"node"`
	Address string `json:"address"`
	// Reached is where the first pod reaches a server of this one that listens on Port, the first port that is open to all.
	Reached string `json:"reached"`
	Port    uint16 `json:"port"`
}

// UnknownError says that there is no lab, pod, node or network of a name.
type UnknownError struct{ msg string }

// Error implements error.
func (e *UnknownError) Error() string { return e.msg }

const kindUnknown = "unknown"

// Kind implements rpc.Kinder.
func (e *UnknownError) Kind() (string, any) { return kindUnknown, nil }
