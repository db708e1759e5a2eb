package experiment

import (
	"context"
	"maps"
	"slices"
	"sync"

	"netdelta/agent"
	"netdelta/result"
	"netdelta/testbed"
)

// sightings are what was seen of the testbeds as built, once for each network: devices and settings of the kernel, and what
// could not be told of them.
type sightings struct {
	mu      sync.Mutex
	links   []result.Link
	sysctls map[string]string
	seen    map[string]bool
	lacks   []string
	said    []string // by testbeds
	// versions are those of the programs that testbeds used.
	versions map[string]string
	// nodes are the machines of pods elsewhere, by the names of their nodes.
	nodes map[string]result.Environment
}

// lack notes what can't be told here.
func (s *sightings) lack(sentences []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range sentences {
		if !slices.Contains(s.lacks, l) {
			s.lacks = append(s.lacks, l)
		}
	}
}

// say keeps what testbeds say of themselves.
func (s *sightings) say(sentences []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range sentences {
		if !slices.Contains(s.said, l) {
			s.said = append(s.said, l)
		}
	}
}

// notes adds what can't be told here, and what testbeds say of themselves, to the notes of a run, each once.
func (s *sightings) notes(known []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lacks {
		if text := "not known here: " + l; !slices.Contains(known, text) {
			known = append(known, text)
		}
	}
	for _, l := range s.said {
		if !slices.Contains(known, l) {
			known = append(known, l)
		}
	}
	return known
}

// look notes a testbed that has just been built for a network of the study, and where its agents run.
func (st *stage) look(ctx context.Context, tb testbed.Testbed, c crew, network string) error {
	if st.meets {
		for _, a := range c.all() {
			if err := st.seen.meet(ctx, a); err != nil {
				return err
			}
		}
	}
	return st.seen.lookAs(ctx, tb, network)
}

// meet asks an agent of another machine what that is, once for each node.
func (s *sightings) meet(ctx context.Context, a *agent.Agent) error {
	node := a.Pod().Node()
	s.mu.Lock()
	_, known := s.nodes[node]
	s.mu.Unlock()
	if known {
		return nil
	}
	about, err := a.Machine(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]result.Environment{}
	}
	s.nodes[node] = about
	return nil
}

// look notes a testbed that has just been built, unless its network was seen before.
func (s *sightings) look(ctx context.Context, tb testbed.Testbed) error {
	return s.lookAs(ctx, tb, tb.Spec().Network)
}

// lookAs is look by the name that the study has for the network.
func (s *sightings) lookAs(ctx context.Context, tb testbed.Testbed, name string) error {
	shows := tb.Instruments()
	if shows.Notes != nil {
		s.say(shows.Notes())
	}
	var versions map[string]string
	if shows.Versions != nil {
		var err error
		if versions, err = shows.Versions(); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil {
		s.versions = map[string]string{}
	}
	maps.Copy(s.versions, versions)
	if s.seen[name] {
		return nil
	}
	links, err := tb.Links(ctx)
	if err != nil {
		return err
	}
	if s.sysctls == nil {
		if s.sysctls, err = tb.Sysctls(ctx); err != nil {
			return err
		}
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[name] = true
	for i := range links {
		if links[i].Network == tb.Spec().Network {
			links[i].Network = name
		}
	}
	s.links = append(s.links, links...)
	return nil
}

// environment adds what was seen to what is known of the machine. What a resumed run recorded before stays.
func (s *sightings) environment(e result.Environment) result.Environment {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) > 0 {
		e.Links, e.Sysctls = s.links, s.sysctls
	}
	if e.Cluster != nil {
		e = onNodes(e, s.nodes)
	}
	if len(s.versions) > 0 {
		known := maps.Clone(s.versions)
		maps.Copy(known, e.Versions)
		e.Versions = known
	}
	return e
}
