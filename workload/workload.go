package workload

import (
	"context"
	"net/netip"

	"netdelta/engine"
	"netdelta/network"
	"netdelta/result"
)

// Metric is a figure that a workload yields.
type Metric struct {
	Name   string // p50, p90, p99, p99.9, mean, min, throughput, loss
	Unit   string // "ns", "bit/s", "1/s", "ratio"
	Better string // "lower" or "higher"
}

// Workload is what runs across the network. A catalogue entry: pure data and two constructors.
type Workload struct {
	Name    string
	Summary string // one line
	UsedBy  string // who meets such traffic
	// Protocol is what carries the payload: TCP or UDP.
	Protocol network.Protocol
	// Connects says that each transaction opens and closes a connection of its own.
	Connects bool
	// Headline is the metric that verdicts are about; it is one of Metrics.
	Headline string
	Metrics  []Metric
	// Defaults are the parameters of a study that names none.
	Defaults result.Params
	// Parameters are those that it declares itself; Check names one that is set though it has none of that name.
	Parameters []result.Parameter
	// Check returns an error that names the parameter and the allowed range when p is not usable.
	Check func(p result.Params) error
	// SourcePorts is how many consecutive source ports a client uses, from the one that Dial is given.
	SourcePorts func(p result.Params) int
	// Demand is what the workload needs in addition to netdelta, with these parameters; nil for one that needs nothing. See Demands.
	Demand func(p result.Params) Demand
	// Serve starts the server's side in this process, on listen (port 0 is not allowed: ports are pinned). Its loop is pinned
	// to cpu; a negative one leaves it free. ctx bounds the start alone.
	Serve func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error)
	// Dial opens the client's side, armed: connections are open and warm when it returns. Local port 0 takes any source
	// port. ctx bounds the start alone.
	Dial func(ctx context.Context, p result.Params, local netip.AddrPort, server netip.AddrPort, cpu int) (engine.Client, error)
	// Sweeps says whether clients can be visited in turn by one thread (engine.Sweep), and Connect then opens the connections that such
	// a client takes over; both are nil for a workload of which none can.
	Sweeps  func(p result.Params) bool
	Connect func(ctx context.Context, p result.Params, local netip.AddrPort, server netip.AddrPort) ([]int, error)
	// Target is how it speaks to an endpoint of the user's own; nil where it can't.
	Target *Targeted
	// Exact opens both ends in this process, pinned to cpu, for a guest whose clock counts instructions. It is nil where a
	// count of instructions has no meaning, as for streams, whose ends run in parallel.
	Exact func(ctx context.Context, spec engine.ExactSpec, cpu int) (engine.ExactPair, error)
}
