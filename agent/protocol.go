package agent

import (
	"net/netip"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed/rpc"
)

// Subcommand is the verb of the command line that serves the protocol.
const Subcommand = "agent"

// The operations.
const (
	opServe   = "serve"
	opDial    = "dial"
	opBurst   = "burst"
	opCollect = "collect"
	opTotals  = "totals"
	opThreads = "threads"
	opClose   = "close"
	opBurn    = "burn"
	opRest    = "rest"

	opCounters = "counters"
	opMachine  = "machine"

	opServeCluster = "serve-cluster"
	opDialCluster  = "dial-cluster"
	opHealth       = "health"
	opRestart      = "restart"

	opHold       = "hold"
	opDialTarget = "dial-target"
	opClear      = "clear-target"

	opClock  = "clock"
	opVolley = "volley"
)

// Hello is how an agent introduces itself.
type Hello struct {
	rpc.Greeting
	PID int `json:"pid"`
	// Place is the machine, and what processes it shows, as in place.
	Place string `json:"place"`
}

type serveArgs struct {
	Workload string         `json:"workload"`
	Params   result.Params  `json:"params"`
	Listen   netip.AddrPort `json:"listen"`
	CPU      int            `json:"cpu"`
	Within   time.Duration  `json:"within,omitempty"` // the start must be over; 0 for no limit but the controller's
}

type dialArgs struct {
	Workload string         `json:"workload"`
	Params   result.Params  `json:"params"`
	Local    netip.AddrPort `json:"local"`
	Server   netip.AddrPort `json:"server"`
	CPU      int            `json:"cpu"`
	Within   time.Duration  `json:"within,omitempty"` // the start must be over; 0 for no limit but the controller's
}

type burstArgs struct {
	Session int              `json:"session"`
	Spec    engine.BurstSpec `json:"spec"`
}

type collectArgs struct {
	Session  int  `json:"session"`
	DropLast bool `json:"drop_last"`
}

type sessionArgs struct {
	Session int `json:"session"`
}
