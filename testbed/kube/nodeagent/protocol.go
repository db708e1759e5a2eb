package nodeagent

import (
	"net/netip"

	"netdelta/testbed"
)

// Verb is the argument with which the program serves.
const Verb = "look"

// The operations.
const (
	opDescribe = "describe"
	opCount    = "count"
	opStanding = "standing"
	opBegin    = "begin"
	opEnd      = "end"
	opDrop     = "drop"
)

// request is what an operation is about. What it does not need is zero.
type request struct {
	Watch int `json:"watch,omitempty"`
	// Addresses: each sampled packet must have two of them.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// To are addresses whose routes are asked for, and Port is the server's whose peers are asked for.
	To   []netip.Addr `json:"to,omitempty"`
	Port uint16       `json:"port,omitempty"`
}

// answer is what comes of it.
type answer struct {
	Watch      int                         `json:"watch,omitempty"`
	Interfaces []testbed.Interface         `json:"interfaces,omitempty"`
	Counters   map[string]testbed.Counters `json:"counters,omitempty"`
	Stack      testbed.Stack               `json:"stack"`
	Standing   []string                    `json:"standing,omitempty"`
	Packets    []testbed.Packet            `json:"packets,omitempty"`
	Missed     int                         `json:"missed,omitempty"`
	Lacks      string                      `json:"lacks,omitempty"`
	Routes     []testbed.Route             `json:"routes,omitempty"`
	Peers      []netip.AddrPort            `json:"peers,omitempty"`
}
