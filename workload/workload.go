// Package workload is the catalogue of what runs across a network, with the engines that load it and measure it.
package workload

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
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

// Bind gives a workload its constructors and its check, for a loop of the given kind and parameters within limits.
func Bind(w Workload, kind engine.Kind, limits engine.Limits) Workload {
	limits.Workload, limits.Own = w.Name, w.Parameters
	w.Check = limits.Check
	if len(w.Parameters) > 0 {
		w.Demand = func(p result.Params) Demand { return iterated(kind, p) }
	}
	w.SourcePorts = func(p result.Params) int {
		if kind == engine.ConnectRR {
			return engine.ConnectPorts
		}
		return max(p.Connections, 1)
	}
	config := func(p result.Params, cpu int) (engine.Config, error) {
		if err := limits.Check(p); err != nil {
			return engine.Config{}, err
		}
		return engine.Config{Workload: w.Name, Kind: kind, Params: engine.Fill(p, w.Defaults), CPU: cpu}, nil
	}
	w.Sweeps = func(p result.Params) bool {
		cfg, err := config(p, 0)
		return err == nil && cfg.Sweeps()
	}
	w.Connect = func(ctx context.Context, p result.Params, local, server netip.AddrPort) ([]int, error) {
		cfg, err := config(p, 0)
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.Remote = local, server
		return engine.Connect(ctx, cfg)
	}
	w.Serve = func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local = listen
		return engine.Serve(ctx, cfg)
	}
	w.Dial = func(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (engine.Client, error) {
		cfg, err := config(p, cpu)
		if err != nil {
			return nil, err
		}
		cfg.Local, cfg.Remote = local, server
		return engine.Dial(ctx, cfg)
	}
	if kind == engine.StreamRR || kind == engine.DatagramRR {
		w.Exact = func(ctx context.Context, spec engine.ExactSpec, cpu int) (engine.ExactPair, error) {
			cfg, err := config(spec.Params, cpu)
			if err != nil {
				return nil, err
			}
			return engine.OpenExact(ctx, cfg, spec)
		}
	}
	return w
}

// LatencyMetrics are the metrics of every request-response workload.
func LatencyMetrics(more ...Metric) []Metric {
	metrics := []Metric{
		{Name: "p50", Unit: "ns", Better: "lower"},
		{Name: "p90", Unit: "ns", Better: "lower"},
		{Name: "p99", Unit: "ns", Better: "lower"},
		{Name: "p99.9", Unit: "ns", Better: "lower"},
		{Name: "mean", Unit: "ns", Better: "lower"},
		{Name: "min", Unit: "ns", Better: "lower"},
		{Name: "throughput", Unit: "bit/s", Better: "higher"},
	}
	return append(metrics, more...)
}

// LossMetric is the share of datagrams that were lost.
func LossMetric() Metric {
	return Metric{Name: "loss", Unit: "ratio", Better: "lower"}
}

// Demand is what a workload needs in addition to netdelta.
type Demand struct {
	// Programs are those that must be installed where its ends run.
	Programs []Program
	// Burst is the shortest burst that says something, for programs that take long to start or count in seconds; 0 is any.
	Burst time.Duration
	// Transaction is how long one takes, about, where that may be longer than a burst; 0 is no matter. A burst ends with the transaction
	// under way, and the last one of such a length has warmed up for the next.
	Transaction time.Duration
	// Transactions ends each burst after so many, whatever the study says of its length; 0 leaves that to the study. Lasting is how long
	// they take, as guessed.
	Transactions int
	Lasting      time.Duration
	// Opaque says that it is not known to the byte what goes over the wire. Its path is then proved without amounts.
	Opaque bool
	// Memory is what its servers take at most, in all pods together.
	Memory unit.Bytes
	// Volume is what a volume of its client's has to hold, of the class that its parameters name; 0 for none. There is no server then.
	Volume unit.Bytes
	// Clients is how many clients use its cluster, or a volume of their own each, at the same time, each in a pod on a node of its own; 0 is
	// one. They begin each burst together.
	Clients int
	// Cluster is the daemons that serve it from several pods; nil where Serve and Dial are all there is to it.
	Cluster *Cluster
	// Put is what it puts into an endpoint of the user's own before anything is measured; the zero value is nothing.
	Put Put
}

// Put is what a workload puts into an endpoint of the user's own, once for all cells that speak to it.
type Put struct {
	Key    string        // what it is: "4 tables of 25,000 rows". Cells with another one take a run of their own
	Disk   unit.Bytes    // what it takes there, at most; 0 of what is there already
	Within time.Duration // how long it may take
	After  string        // what becomes of it: "they are dropped at the end"
}

// Program is a program that a workload needs.
type Program struct {
	Name    string // as found on PATH, or in /usr/sbin
	Package string // the package of Debian that has it
}

// Missing are the names of those programs that are not installed on this machine, and the packages that have them, sorted and each
// once.
func Missing(programs []Program) (names, packages []string, err error) {
	for _, p := range programs {
		if _, err := daemon.Look(p.Name); errors.Is(err, daemon.ErrMissing) {
			names, packages = append(names, p.Name), append(packages, p.Package)
		} else if err != nil {
			return nil, nil, fmt.Errorf("look for the program %s: %w", p.Name, err)
		}
	}
	slices.Sort(packages)
	return names, slices.Compact(packages), nil
}

// Cluster is daemons in several pods that serve as one. They are started once in a run, and networks are swapped beneath them.
type Cluster struct {
	// Key identifies a cluster: workloads and parameters with the same key share one.
	Key string
	// Pods is how many there are, on a node each.
	Pods int
	// Ports are those at which clients reach the first pod, where something may stand in front of it; none where daemons tell their
	// clients themselves where they are. At most four.
	Ports []uint16
	// Serve starts the daemons of one pod, in a process inside it, and returns when they take part. Pod 0 is started first; when
	// it is ready, all others at once. ctx bounds the start alone. The server is a DaemonServer.
	Serve func(ctx context.Context, p result.Params, at Member) (engine.Server, error)
	// Dial opens a client in a pod of its own; Member.Pod is -1. ctx bounds the start alone.
	Dial func(ctx context.Context, p result.Params, at Member) (engine.Client, error)
}

// Member is one end of a cluster.
type Member struct {
	Pod      int          // from 0; -1 is a client
	Peers    []netip.Addr // addresses of all pods of the cluster, by number
	Port     uint16       // at which a client reaches the first pod, where another than the cluster's own stands in front of it; 0 is its own
	CPU      int          // to pin to, negative for none
	Separate bool         // the pods share no file system
}

// DaemonServer is a server of daemons, which may fail while the networks beneath them are swapped.
type DaemonServer interface {
	engine.Server
	// Health says how the daemons are now. It answers within ctx, also when they don't.
	Health(ctx context.Context) Health
	// Restart starts daemons again that have ended, and returns when they take part; where none has, it makes the cluster whole
	// again if it can (a database without a quorum).
	Restart(ctx context.Context) error
}

// Health is how the daemons of one pod are.
type Health struct {
	// Unwell says what ails them, with the last lines of the log of a daemon that ended; "" if they are well.
	Unwell string
	// Ended says that a daemon has ended: nothing but Restart will fix it. Otherwise it may recover by itself.
	Ended    bool
	Services []result.Service // without Pod and Restarts, which the controller knows
}

// Parameters are those that workloads declare themselves.
func Parameters(workloads []Workload) []result.Parameter {
	var own []result.Parameter
	for _, w := range workloads {
		for _, d := range w.Parameters {
			own = gather.Once(own, d)
		}
	}
	return own
}

// Find is the workload of a name, the zero Workload where there is none.
func Find(workloads []Workload, name string) Workload {
	for _, w := range workloads {
		if w.Name == name {
			return w
		}
	}
	return Workload{}
}

// Demands is what w needs with parameters p.
func (w Workload) Demands(p result.Params) Demand {
	if w.Demand == nil {
		return Demand{}
	}
	return w.Demand(p)
}
