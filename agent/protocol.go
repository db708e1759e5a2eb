package agent

import (
	"net/netip"
	"time"

	"netdelta/engine"
	"netdelta/result"
	"netdelta/testbed/rpc"
	"netdelta/workload"
)

// Subcommand is the verb of the command line that serves the protocol.
const Subcommand = "agent"

// The operations.
const (
	opServe        = "serve"
	opDial         = "dial"
	opServeCluster = "serve-cluster"
	opDialCluster  = "dial-cluster"
	opDialTarget   = "dial-target"
	opHold         = "hold"
	opClear        = "clear-target"

	opBurst   = "burst"
	opBurstAt = "burst-at"
	opCollect = "collect"
	opTotals  = "totals"
	opThreads = "threads"
	opHealth  = "health"
	opRestart = "restart"
	opClose   = "close"

	opBurn     = "burn"
	opRest     = "rest"
	opClock    = "clock"
	opCounters = "counters"
	opMachine  = "machine"
)

// Hello is how an agent introduces itself.
type Hello struct {
	rpc.Greeting
	PID int `json:"pid"`
	// Place is the machine, and what processes it shows, as in place.
	Place string `json:"place"`
}

// openArgs say which end of a workload is to be opened, and with what. Operations leave zero what they don't need.
type openArgs struct {
	Workload string          `json:"workload"`
	Params   result.Params   `json:"params"`
	Local    netip.AddrPort  `json:"local,omitzero"` // of a server, where it listens
	Server   netip.AddrPort  `json:"server,omitzero"`
	Place    workload.Member `json:"place,omitzero"` // in a cluster
	Target   targetArgs      `json:"target,omitzero"`
	CPU      int             `json:"cpu"`
	Within   time.Duration   `json:"within,omitempty"` // the start must be over; 0 for no limit but the controller's
}

// targetArgs are an endpoint of the user's own. It crosses to the agent on its standard input, the password with it, and nowhere else.
type targetArgs struct {
	URL      string        `json:"url"`
	Password string        `json:"password,omitempty"`
	Family   result.Family `json:"family,omitempty"`
	Address  netip.Addr    `json:"address,omitzero"`
	Length   int64         `json:"length,omitempty"`
	Mark     string        `json:"mark,omitempty"`
}

// targetOf are the arguments of an endpoint.
func targetOf(t workload.Target) targetArgs {
	return targetArgs{URL: t.String(), Password: t.Password.Reveal(), Address: t.Address, Length: t.Length}
}

// target is the endpoint of the arguments.
func (a targetArgs) target() (workload.Target, error) {
	t, err := workload.ParseTarget(a.URL)
	t.Password, t.Address, t.Length = workload.NewSecret(a.Password), a.Address, a.Length
	return t, err
}

// sessionArgs name a session that is open, and say what is done with it.
type sessionArgs struct {
	Session  int              `json:"session"`
	Spec     engine.BurstSpec `json:"spec,omitzero"`
	At       time.Duration    `json:"at_ns,omitempty"`
	DropLast bool             `json:"drop_last,omitempty"`
	Within   time.Duration    `json:"within,omitempty"`
}
