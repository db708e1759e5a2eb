package study

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"

	"netdelta/result"
)

// reader turns a YAML document into a Study and remembers where each value stood.
type reader struct {
	file   string
	source []byte
	study  Study
	errs   Errors
	places map[string]Position // by path: "workloads[0].message[1]"
	bad    map[string]bool     // paths whose values could not be read, wholly or in part
}

// Parse reads a study file. name stands in messages for the file. Either the study is whole and checked against what is
// known, or the error is an Errors that lists all that is wrong, each with file:line:column.
func Parse(name string, data []byte, known Known) (*Study, error) {
	r := &reader{file: name, source: data, study: defaults(), places: map[string]Position{}, bad: map[string]bool{}}
	r.study.Parameters = known.parameters()
	root := r.load(data)
	if root == nil {
		return nil, r.errs.sorted()
	}
	r.places[""] = Position{File: name, Line: root.Line, Column: root.Column}
	r.mapping("", "the study", root, r.keys())
	if follow(root).Kind != yaml.MappingNode {
		return nil, r.errs.sorted()
	}
	complete(&r.study, r.given)
	c := &checker{
		study: &r.study, known: known, kinds: known.On, given: r.given,
		at:     func(path string) Position { return nearestPlace(r.places, path) },
		bad:    func(path string) bool { return r.bad[path] },
		within: r.within,
	}
	c.check()
	if err := append(r.errs, c.errs...).sorted(); err != nil {
		return nil, err
	}
	return &r.study, nil
}

// defaults is a study in which only the design and testbed are filled in.
func defaults() Study {
	return Study{
		Testbed: Testbed{Kind: "lab", Nodes: 2, Pods: 2, Link: Link{MTU: DefaultMTU}},
		Design: Design{
			Burst: DefaultBurst, Builds: DefaultBuilds, Confidence: DefaultConfidence, Margin: DefaultMargin,
			TimeBudget: DefaultTimeBudget,
		},
	}
}

// complete fills in the defaults that depend on other values.
func complete(s *Study, given func(string) bool) {
	if given("placement") {
		return
	}
	if s.Testbed.Pods >= 2 {
		s.Placement = append(s.Placement, result.SameNode)
	}
	if s.Testbed.Nodes >= 2 {
		s.Placement = append(s.Placement, result.CrossNode)
	}
}

func (r *reader) given(path string) bool {
	_, ok := r.places[path]
	return ok
}

// nearestPlace is where the value at path stands, or where what contains it does.
func nearestPlace(places map[string]Position, path string) Position {
	for path != "" {
		if p, ok := places[path]; ok {
			return p
		}
		path = parent(path)
	}
	return places[""]
}

func (r *reader) keys() keys {
	s := &r.study
	return keys{
		"study":     r.text(&s.Name),
		"question":  r.text(&s.Question),
		"testbed":   r.section("testbed", r.testbedKeys()),
		"baseline":  r.text(&s.Baseline),
		"networks":  r.networks,
		"placement": listOf(r, &s.Placement),
		"workloads": r.workloads,
		"factors":   r.section("factors", r.levelKeys(&s.Factors)),
		"changes":   r.changes,
		"design":    r.section("design", r.designKeys()),
		"claims":    r.claims,
		"goals":     listOf(r, &s.Goals),
	}
}

func (r *reader) section(what string, known keys) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) { r.mapping(path, what, n, known) }
}

func (r *reader) testbedKeys() keys {
	t := &r.study.Testbed
	return keys{
		"kind":  r.text(&t.Kind),
		"nodes": into(r, &t.Nodes, parseCount),
		"pods":  into(r, &t.Pods, parseCount),
		"nic":   r.text(&t.NIC),
		"via":   r.text(&t.Via),
		"link":  r.section("link", r.linkKeys()),
		"cpu":   r.pins,
	}
}

// pins reads the processors of a workload's ends.
func (r *reader) pins(path string, n *yaml.Node) {
	p := result.Pins{Client: noCPU, Server: noCPU}
	r.mapping(path, "cpu", n, keys{"client": into(r, &p.Client, parseCount), "server": into(r, &p.Server, parseCount)})
	r.study.Testbed.CPU = &p
}

func (r *reader) linkKeys() keys {
	l := &r.study.Testbed.Link
	return keys{"mtu": into(r, &l.MTU, parseBytes), "rate": into(r, &l.Rate, parseRate)}
}

func (r *reader) levelKeys(l *Levels) keys {
	all := keys{}
	for _, d := range r.study.parameters() {
		if !d.Derived {
			all[d.Key] = r.levels(l, d)
		}
	}
	return all
}

func (r *reader) designKeys() keys {
	d := &r.study.Design
	return keys{
		"burst":       into(r, &d.Burst, parseDuration),
		"builds":      into(r, &d.Builds, parseCount),
		"rounds":      into(r, &d.Rounds, parseCount),
		"blocks":      into(r, &d.Blocks, parseCount),
		"confidence":  into(r, &d.Confidence, parseFraction),
		"margin":      into(r, &d.Margin, parseFraction),
		"time_budget": into(r, &d.TimeBudget, parseDuration),
		"seed":        into(r, &d.Seed, parseSeed),
	}
}

func (r *reader) claimKeys(c *Claim) keys {
	return keys{
		"id":        r.text(&c.ID),
		"says":      r.text(&c.Says),
		"source":    r.text(&c.Source),
		"published": r.text(&c.Published),
		"expect":    r.text(&c.Expect),
	}
}

// workloads reads a list in which each entry is a name, or a name with its parameters.
func (r *reader) workloads(path string, n *yaml.Node) {
	to := &r.study.Workloads
	r.each(path, n, func() int { return len(*to) }, func(path string, n *yaml.Node) {
		n = follow(n)
		if n.Kind != yaml.MappingNode {
			if name, ok := r.word(path, n); ok {
				*to = append(*to, Workload{Name: name})
			}
			return
		}
		if len(n.Content) != 2 {
			r.fail(path, r.place(n), fmt.Sprintf("an entry of workloads must be one workload, not %d", len(n.Content)/2),
				"write each on a line of its own: - tcp-rr: {message: [300, 500]}")
			return
		}
		name, ok := r.word(path, n.Content[0])
		if !ok {
			return
		}
		r.places[path] = r.place(follow(n.Content[0]))
		w := Workload{Name: name}
		if p := follow(n.Content[1]); p.Kind != yaml.ScalarNode || p.ShortTag() != "!!null" {
			r.mapping(path, "workload "+strings.TrimSpace(fmt.Sprintf("%q", clip(name))), p, r.levelKeys(&w.Levels))
		}
		*to = append(*to, w)
	})
}

func (r *reader) claims(path string, n *yaml.Node) {
	n = follow(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(path, r.place(n), "claims must be a list, not "+kind(n), "write each claim as - {id: ..., says: ..., source: ..., expect: ...}")
		return
	}
	for _, v := range n.Content {
		inner := fmt.Sprintf("%s[%d]", path, len(r.study.Claims))
		r.places[inner] = r.place(follow(v))
		var c Claim
		r.mapping(inner, "claim", v, r.claimKeys(&c))
		r.study.Claims = append(r.study.Claims, c)
	}
}
