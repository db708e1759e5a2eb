// Package foreign has other programs make the load of a workload in place of netdelta's own loops: iperf3, sockperf and netperf.
// Each burst is a run of the program's client, pinned like the loop that it stands for, against a server that stays; what it
// measured is read from its own output. So a study can hold both against each other in one run.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// Engine is a program that makes the load of one workload.
type Engine struct {
	name     string // as in result.Params.Engine
	programs []workload.Program
	// check names a parameter that the program can't do, of those that the workload has.
	check func(p result.Params) error
	// server is what serves. reached is what tells that it does: the protocol that it listens with.
	server  func(p result.Params, listen netip.AddrPort) daemon.Spec
	reached network.Protocol
	// prepare sets in the pod of either end what the program can't be told; nil where there is nothing.
	prepare func(p, defaults result.Params) error
	// measure runs the client once, in a home of its own.
	measure func(ctx context.Context, c *client, length, warmup time.Duration) (outcome, error)
}

// burst is the shortest that these programs take: they count in whole seconds.
const burst = time.Second

// room is what a home has for their logs.
const room = 64 * unit.MiB

// Beside has engines beside a workload's own loop.
func Beside(w workload.Workload, engines ...Engine) workload.Workload {
	own := w
	find := func(p result.Params) (Engine, error) {
		var names []string
		for _, e := range engines {
			if e.name == p.Engine {
				return e, e.usable(own, p)
			}
			names = append(names, e.name)
		}
		return Engine{}, fmt.Errorf("%s: engine %q can't make its load: netdelta, %s", own.Name, p.Engine, strings.Join(names, " or "))
	}
	w.Check = func(p result.Params) error {
		if p.Engine == "" {
			return own.Check(p)
		}
		_, err := find(p)
		return err
	}
	w.SourcePorts = func(p result.Params) int {
		if p.Engine == "" {
			return own.SourcePorts(p)
		}
		return 0 // these programs take any, and another one for each burst
	}
	w.Demand = func(p result.Params) workload.Demand {
		if p.Engine == "" {
			return own.Demands(p)
		}
		e, err := find(p)
		if err != nil {
			return workload.Demand{}
		}
		return workload.Demand{Programs: e.programs, Burst: burst, Opaque: true}
	}
	w.Serve = func(ctx context.Context, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
		if p.Engine == "" {
			return own.Serve(ctx, p, listen, cpu)
		}
		e, err := find(p)
		if err != nil {
			return nil, err
		}
		if err := e.ready(p, own.Defaults); err != nil {
			return nil, fmt.Errorf("%s: serve by %s: %w", own.Name, e.name, err)
		}
		return e.serve(ctx, own.Name, engine.Fill(p, own.Defaults), listen, cpu)
	}
	w.Dial = func(ctx context.Context, p result.Params, local, server netip.AddrPort, cpu int) (engine.Client, error) {
		if p.Engine == "" {
			return own.Dial(ctx, p, local, server, cpu)
		}
		e, err := find(p)
		if err != nil {
			return nil, err
		}
		if err := e.ready(p, own.Defaults); err != nil {
			return nil, fmt.Errorf("%s: load by %s: %w", own.Name, e.name, err)
		}
		return e.dial(own.Name, filled(p, own.Defaults), server, cpu)
	}
	if own.Exact != nil {
		w.Exact = func(ctx context.Context, spec engine.ExactSpec, cpu int) (engine.ExactPair, error) {
			if spec.Params.Engine != "" {
				return nil, fmt.Errorf("%s: instructions are counted of netdelta's own loops alone; leave engine %s out", own.Name, spec.Params.Engine)
			}
			return own.Exact(ctx, spec, cpu)
		}
	}
	return w
}

// usable names the first parameter that the workload does not have, or that this engine can't do.
func (e Engine) usable(own workload.Workload, p result.Params) error {
	plain := p
	plain.Engine = ""
	if err := own.Check(plain); err != nil {
		return err
	}
	if err := e.check(engine.Fill(plain, own.Defaults)); err != nil {
		return fmt.Errorf("%s: engine %s: %w; leave it out, or the engine", own.Name, e.name, err)
	}
	return nil
}

// ready prepares the pod.
func (e Engine) ready(p, defaults result.Params) error {
	if e.prepare == nil {
		return nil
	}
	return e.prepare(p, defaults)
}

// parameter is one that an engine lacks, if it is set.
type parameter struct {
	name string
	set  bool
}

// lacks names the first parameter that is set.
func lacks(all ...parameter) error {
	for _, p := range all {
		if p.set {
			return errors.New(p.name + " can't be had of it")
		}
	}
	return nil
}

// only refuses a number of connections above what an engine makes.
func only(p result.Params, most int) error {
	if p.Connections > most {
		return fmt.Errorf("connections %d are more than the %d that it makes", p.Connections, most)
	}
	return nil
}

// within refuses a message that an engine does not send.
func within(p result.Params, least, most unit.Bytes) error {
	if p.Message < least || p.Message > most {
		return fmt.Errorf("message %d bytes is out of its range: %d to %d bytes", int64(p.Message), int64(least), int64(most))
	}
	return nil
}
