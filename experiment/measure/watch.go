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

// machineWatch observes the load of the machines that rounds are measured on: this machine, or the agents' machines through one agent
// on each.
type machineWatch struct {
	here   *pressure.Reader // nil where agents watch
	before []machineSample
	unread map[string]bool // sentences on machines whose counters can't be read
}

// machineSample is a machine at one time.
type machineSample struct {
	agent  *agent.Agent // nil for this machine
	sample pressure.Sample
	err    error
}

// begin starts a span.
func (w *machineWatch) begin(ctx context.Context, sessions []*Session) error {
	if w.here != nil {
		now, err := w.here.Read()
		w.before = []machineSample{{sample: now}}
		return err
	}
	w.before = w.read(ctx, onePerNode(sessions))
	return ctx.Err()
}

// end gives the load since begin, of the machines that could be read both times. If an agent no longer answers, the bursts of its
// cells fail.
func (w *machineWatch) end(ctx context.Context) (pressure.Load, error) {
	if w.here != nil {
		now, err := w.here.Read()
		if err != nil {
			return pressure.Load{}, err
		}
		return now.Since(w.before[0].sample), nil
	}
	agents := make([]*agent.Agent, len(w.before))
	for i, v := range w.before {
		agents[i] = v.agent
	}
	var loads []pressure.Load
	for i, v := range w.read(ctx, agents) {
		if v.err == nil && w.before[i].err == nil {
			loads = append(loads, v.sample.Since(w.before[i].sample))
		}
	}
	return pressure.Worst(loads), ctx.Err()
}

// read asks all agents at once.
func (w *machineWatch) read(ctx context.Context, agents []*agent.Agent) []machineSample {
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
			w.unread[fmt.Sprintf("what disturbed node %s: %v", v.agent.Pod().Node(), v.err)] = true
		}
	}
	return samples
}

// unknown says what can't be told of the machines: a sentence for each part.
func (w *machineWatch) unknown() []string { return slices.Sorted(maps.Keys(w.unread)) }

func (w *machineWatch) close() error {
	if w.here == nil {
		return nil
	}
	return w.here.Close()
}

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
