package measure

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"netdelta/agent"
	"netdelta/probe/pressure"
)

// machineWatch observes the load of the machines that rounds are measured on.
type machineWatch interface {
	// begin starts a span, and end gives the load since then.
	begin(ctx context.Context, sessions []*Session) error
	end(ctx context.Context) (pressure.Load, error)
	// unknown says what can't be told of the machines: a sentence for each part.
	unknown() []string
	close() error
}

// watchMachines watches this machine, or the agents' machines.
func watchMachines(c Config) machineWatch {
	if c.Machine == nil {
		return &remoteWatch{unread: map[string]bool{}}
	}
	return &localWatch{reader: c.Machine}
}

// localWatch watches this machine.
type localWatch struct {
	reader *pressure.Reader
	before pressure.Sample
}

func (l *localWatch) begin(context.Context, []*Session) (err error) {
	l.before, err = l.reader.Read()
	return err
}

func (l *localWatch) end(context.Context) (pressure.Load, error) {
	after, err := l.reader.Read()
	if err != nil {
		return pressure.Load{}, err
	}
	return after.Since(l.before), nil
}

func (l *localWatch) unknown() []string { return nil }

func (l *localWatch) close() error { return l.reader.Close() }

// remoteWatch watches the machines of the agents, through one agent on each.
type remoteWatch struct {
	before []machineSample
	unread map[string]bool // sentences on machines whose counters can't be read
}

// machineSample is a machine as an agent on it saw it.
type machineSample struct {
	agent  *agent.Agent
	sample pressure.Sample
	err    error
}

func (d *remoteWatch) begin(ctx context.Context, sessions []*Session) error {
	d.before = d.read(ctx, onePerNode(sessions))
	return ctx.Err()
}

// end goes by the machines that could be read both times. If an agent no longer answers, the bursts of its cells fail.
func (d *remoteWatch) end(ctx context.Context) (pressure.Load, error) {
	agents := make([]*agent.Agent, len(d.before))
	for i, v := range d.before {
		agents[i] = v.agent
	}
	var loads []pressure.Load
	for i, v := range d.read(ctx, agents) {
		if v.err == nil && d.before[i].err == nil {
			loads = append(loads, v.sample.Since(d.before[i].sample))
		}
	}
	return pressure.Worst(loads), ctx.Err()
}

// read asks all agents at once.
func (d *remoteWatch) read(ctx context.Context, agents []*agent.Agent) []machineSample {
	samples := make([]machineSample, len(agents))
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			samples[i].agent = a
			counters, err := a.Counters(ctx)
			if err == nil {
				samples[i].sample, err = pressure.SampleOf(counters)
			}
			samples[i].err = err
		})
	}
	wg.Wait()
	for _, v := range samples {
		if v.err != nil && v.agent.Alive() && ctx.Err() == nil {
			d.unread[fmt.Sprintf("what disturbed node %s: %v", v.agent.Pod().Node(), v.err)] = true
		}
	}
	return samples
}

func (d *remoteWatch) unknown() []string { return slices.Sorted(maps.Keys(d.unread)) }

func (d *remoteWatch) close() error { return nil }

// onePerNode is one agent of the sessions on each node.
func onePerNode(sessions []*Session) []*agent.Agent {
	var all []*agent.Agent
	nodes := map[string]bool{}
	for _, s := range sessions {
		if s.Failed != nil {
			continue
		}
		for _, a := range s.agents() {
			if node := a.Pod().Node(); !nodes[node] && a.Alive() {
				nodes[node] = true
				all = append(all, a)
			}
		}
	}
	return all
}
