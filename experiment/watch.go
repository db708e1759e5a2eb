package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"netdelta/agent"
	"netdelta/probe/pressure"
)

// watch looks at the machines that rounds are measured on.
type watch interface {
	// begin starts a span, and end says what the machines did since then.
	begin(ctx context.Context, seats []*seat) error
	end(ctx context.Context) (pressure.Load, error)
	// lacks says what can't be told of them: a sentence for each part.
	lacks() []string
	close() error
}

// watchOf is what watches the machines of a run: this one, or those that the agents run on.
func watchOf(c Config) watch {
	if c.Machine == nil {
		return &distant{unread: map[string]bool{}}
	}
	return &local{reader: c.Machine}
}

// local watches this machine.
type local struct {
	reader *pressure.Reader
	before pressure.Sample
}

func (l *local) begin(context.Context, []*seat) (err error) {
	l.before, err = l.reader.Read()
	return err
}

func (l *local) end(context.Context) (pressure.Load, error) {
	after, err := l.reader.Read()
	if err != nil {
		return pressure.Load{}, err
	}
	return after.Since(l.before), nil
}

func (l *local) lacks() []string { return nil }

func (l *local) close() error { return l.reader.Close() }

// distant watches the machines of the agents, one agent on each.
type distant struct {
	before []view
	// unread are sentences on machines whose counters can't be read.
	unread map[string]bool
}

// view is a machine as an agent on it saw it.
type view struct {
	agent  *agent.Agent
	sample pressure.Sample
	err    error
}

func (d *distant) begin(ctx context.Context, seats []*seat) error {
	d.before = d.look(ctx, lookouts(seats))
	return ctx.Err()
}

// end goes by the machines that were seen both times. What became of an agent that does not answer any more, the bursts of its cells
// will say.
func (d *distant) end(ctx context.Context) (pressure.Load, error) {
	agents := make([]*agent.Agent, len(d.before))
	for i, v := range d.before {
		agents[i] = v.agent
	}
	var loads []pressure.Load
	for i, v := range d.look(ctx, agents) {
		if v.err == nil && d.before[i].err == nil {
			loads = append(loads, v.sample.Since(d.before[i].sample))
		}
	}
	return pressure.Worst(loads), ctx.Err()
}

// look asks all agents at once.
func (d *distant) look(ctx context.Context, agents []*agent.Agent) []view {
	views := make([]view, len(agents))
	var wg sync.WaitGroup
	for i, a := range agents {
		wg.Go(func() {
			views[i].agent = a
			counters, err := a.Counters(ctx)
			if err == nil {
				views[i].sample, err = pressure.SampleOf(counters)
			}
			views[i].err = err
		})
	}
	wg.Wait()
	for _, v := range views {
		if v.err != nil && v.agent.Alive() && ctx.Err() == nil {
			d.unread[fmt.Sprintf("what disturbed node %s: %v", v.agent.Pod().Node(), v.err)] = true
		}
	}
	return views
}

func (d *distant) lacks() []string { return slices.Sorted(maps.Keys(d.unread)) }

func (d *distant) close() error { return nil }

// lookouts are agents of the seats, one on each node.
func lookouts(seats []*seat) []*agent.Agent {
	var all []*agent.Agent
	nodes := map[string]bool{}
	for _, s := range seats {
		if s.failed != nil {
			continue
		}
		for _, a := range []*agent.Agent{s.client, s.server} {
			if node := a.Pod().Node(); !nodes[node] && a.Alive() {
				nodes[node] = true
				all = append(all, a)
			}
		}
	}
	return all
}
