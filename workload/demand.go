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
	"netdelta/result"
	"netdelta/unit"
)

// Demand is what a workload needs in addition to netdelta.
type Demand struct {
	// Programs are those that must be installed where its ends run.
	Programs []Program
	// Burst is the shortest burst that says something, for programs that take long to start or count in seconds; 0 is any.
	Burst time.Duration
	// Opaque says that it is not known to the byte what goes over the wire. Its path is then proved without amounts.
	Opaque bool
	// Memory is what its servers take at most, in all pods together.
	Memory unit.Bytes
	// Volume is what a volume of its client's has to hold, of the class that its parameters name; 0 for none. There is no server then.
	Volume unit.Bytes
	// Cluster is the daemons that serve it from several pods; nil where Serve and Dial are all there is to it.
	Cluster *Cluster
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
	// Pods is how many there are, on a node each; the client is on one more.
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
	Pod      int          // from 0; -1 is the client
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
		own = append(own, w.Parameters...)
	}
	return own
}

// Demands is what w needs with parameters p.
func (w Workload) Demands(p result.Params) Demand {
	if w.Demand == nil {
		return Demand{}
	}
	return w.Demand(p)
}
