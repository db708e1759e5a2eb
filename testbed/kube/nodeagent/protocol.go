package nodeagent

import (
	"net/netip"

	"netdelta/testbed"
)

// Verb is the argument with which the program serves.
const Verb = "look"

// version is the protocol's: both ends must agree on it.
const version = 1

// operation says what is asked.
type operation string

const (
	opHello    operation = "hello"
	opDescribe operation = "describe"
	opCount    operation = "count"
	opBegin    operation = "begin"
	opEnd      operation = "end"
	opDrop     operation = "drop"
)

// request is one line to the agent. What an operation does not need is zero.
type request struct {
	Operation operation `json:"operation"`
	Watch     int       `json:"watch,omitempty"`
	// Addresses are those of which each sampled packet must have two.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// To are those whose routes are asked for, and Port is that of the server whose peers are.
	To   []netip.Addr `json:"to,omitempty"`
	Port uint16       `json:"port,omitempty"`
}

// answer is one line from the agent, in the order of the requests.
type answer struct {
	Error      string                      `json:"error,omitempty"`
	Version    int                         `json:"version,omitempty"`
	Watch      int                         `json:"watch,omitempty"`
	Interfaces []testbed.Interface         `json:"interfaces,omitempty"`
	Counters   map[string]testbed.Counters `json:"counters,omitempty"`
	Stack      testbed.Stack               `json:"stack"`
	Packets    []testbed.Packet            `json:"packets,omitempty"`
	Missed     int                         `json:"missed,omitempty"`
	Lacks      string                      `json:"lacks,omitempty"`
	Routes     []testbed.Route             `json:"routes,omitempty"`
	Peers      []netip.AddrPort            `json:"peers,omitempty"`
}
