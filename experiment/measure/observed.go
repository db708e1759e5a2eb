package measure

import (
	"context"
	"maps"
	"slices"
	"sync"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// Observed is the environment as observed on the testbeds, once for each network: devices and kernel settings, and what could not be
// observed. It is safe for concurrent use.
type Observed struct {
	mu       sync.Mutex
	links    []result.Link
	sysctls  map[string]string
	networks map[string]bool
	notes    []string // on what could not be observed
	said     []string // by testbeds
	versions map[string]string
	nodes    map[string]result.Environment
}

func newObserved() *Observed {
	return &Observed{networks: map[string]bool{}, versions: map[string]string{}, nodes: map[string]result.Environment{}}
}

// unknown notes what can't be told here.
func (o *Observed) unknown(sentences []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range sentences {
		o.notes = appendOnce(o.notes, "not known here: "+s)
	}
}

// Say keeps sentences of and on testbeds for the run's notes.
func (o *Observed) Say(sentences ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.said = appendOnce(o.said, sentences...)
}

// Notes adds to the notes of a run, each once.
func (o *Observed) Notes(known []string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return appendOnce(appendOnce(known, o.notes...), o.said...)
}

func appendOnce(known []string, more ...string) []string {
	for _, s := range more {
		if !slices.Contains(known, s) {
			known = append(known, s)
		}
	}
	return known
}

// meet asks agents on other machines what those are, once for each node.
func (o *Observed) meet(ctx context.Context, agents []*agent.Agent) error {
	for _, a := range agents {
		node := a.Pod().Node()
		o.mu.Lock()
		_, known := o.nodes[node]
		o.mu.Unlock()
		if known {
			continue
		}
		about, err := a.Machine(ctx)
		if err != nil {
			return err
		}
		o.mu.Lock()
		o.nodes[node] = about
		o.mu.Unlock()
	}
	return nil
}

// Nodes are the machines of pods elsewhere, by node.
func (o *Observed) Nodes() map[string]result.Environment {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.nodes)
}

// Look records a testbed that has just been built or swapped, under the study's name of its network, unless that was seen before.
func (o *Observed) Look(ctx context.Context, tb testbed.Testbed, network string) error {
	shows := tb.Instruments()
	if shows.Notes != nil {
		o.Say(shows.Notes()...)
	}
	var versions map[string]string
	if shows.Versions != nil {
		var err error
		if versions, err = shows.Versions(); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.versions, versions)
	if o.networks[network] {
		return nil
	}
	links, err := tb.Links(ctx)
	if err != nil {
		return err
	}
	if o.sysctls == nil {
		if o.sysctls, err = tb.Sysctls(ctx); err != nil {
			return err
		}
	}
	o.networks[network] = true
	for i := range links {
		if links[i].Network == tb.Spec().Network {
			links[i].Network = network
		}
	}
	o.links = append(o.links, links...)
	return nil
}

// Environment adds what was observed to what is known of the machine. What a resumed run recorded before stays.
func (o *Observed) Environment(e result.Environment) result.Environment {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.links) > 0 {
		e.Links, e.Sysctls = o.links, o.sysctls
	}
	if len(o.versions) > 0 {
		known := maps.Clone(o.versions)
		maps.Copy(known, e.Versions)
		e.Versions = known
	}
	return e
}
