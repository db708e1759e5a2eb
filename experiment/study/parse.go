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
	r.mapping("", "the study", root, readersOf(studyFields(r, &r.study)))
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

// studyFields are all keys of a study file, in the order in which they are written.
func studyFields(r *reader, s *Study) []field {
	testbed, design := testbedFields(r, &s.Testbed), designFields(r, &s.Design)
	readFactors := func(path string, n *yaml.Node) { r.mapping(path, "factors", n, r.levelKeys(&s.Factors)) }
	claim := func(c Claim) *yaml.Node { return mapping(0, claimFields(nil, &c)...) }
	placement := list(s.Placement, func(p result.Placement) *yaml.Node { return textNode(string(p)) })
	return []field{
		text(r, "study", &s.Name),
		text(r, "question", &s.Question).optional(),
		{key: "testbed", read: r.section("testbed", testbed), value: mapping(yaml.FlowStyle, testbed...)},
		text(r, "baseline", &s.Baseline),
		{key: "networks", read: r.networks, value: s.networksNode()},
		{key: "placement", read: listOf(r, &s.Placement), value: placement},
		{key: "workloads", read: r.workloads, value: block(s.Workloads, s.workloadNode)},
		field{key: "factors", read: readFactors, value: s.levelsNode(s.Factors), empty: len(s.Factors) == 0}.optional(),
		{key: "changes", read: r.changes, value: s.changesNode()},
		{key: "design", read: r.section("design", design), value: mapping(yaml.FlowStyle, design...)},
		field{key: "claims", read: r.claims, value: block(s.Claims, claim), empty: len(s.Claims) == 0}.optional(),
		field{key: "goals", read: listOf(r, &s.Goals), value: list(s.Goals, textNode), empty: len(s.Goals) == 0}.optional(),
	}
}

func (r *reader) section(what string, fields []field) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) { r.mapping(path, what, n, readersOf(fields)) }
}

func testbedFields(r *reader, t *Testbed) []field {
	link := linkFields(r, &t.Link)
	cpu := field{key: "cpu", read: r.pins}
	if t.CPU != nil {
		cpu.value = mapping(yaml.FlowStyle, pinFields(nil, t.CPU)...)
	}
	return []field{
		text(r, "kind", &t.Kind),
		figure(r, "nodes", &t.Nodes, parseCount),
		figure(r, "pods", &t.Pods, parseCount),
		text(r, "nic", &t.NIC).optional(),
		text(r, "via", &t.Via).optional(),
		{key: "link", read: r.section("link", link), value: mapping(yaml.FlowStyle, link...)},
		cpu,
	}
}

func linkFields(r *reader, l *Link) []field {
	return []field{figure(r, "mtu", &l.MTU, parseBytes), figure(r, "rate", &l.Rate, parseRate).optional()}
}

// pins reads the processors of a workload's ends.
func (r *reader) pins(path string, n *yaml.Node) {
	p := result.Pins{Client: noCPU, Server: noCPU}
	r.mapping(path, "cpu", n, readersOf(pinFields(r, &p)))
	r.study.Testbed.CPU = &p
}

func pinFields(r *reader, p *result.Pins) []field {
	return []field{figure(r, "client", &p.Client, parseCount), figure(r, "server", &p.Server, parseCount)}
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

func designFields(r *reader, d *Design) []field {
	return []field{
		figure(r, "burst", &d.Burst, parseDuration),
		figure(r, "builds", &d.Builds, parseCount),
		figure(r, "rounds", &d.Rounds, parseCount).optional(),
		figure(r, "blocks", &d.Blocks, parseCount).optional(),
		figure(r, "confidence", &d.Confidence, parseFraction),
		figure(r, "margin", &d.Margin, parseFraction),
		figure(r, "time_budget", &d.TimeBudget, parseDuration),
		figure(r, "seed", &d.Seed, parseSeed).optional(),
	}
}

func claimFields(r *reader, c *Claim) []field {
	return []field{
		text(r, "id", &c.ID),
		text(r, "says", &c.Says),
		text(r, "source", &c.Source).optional(),
		text(r, "published", &c.Published).optional(),
		text(r, "differs", &c.Differs).optional(),
		text(r, "expect", &c.Expect),
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
		r.mapping(inner, "claim", v, readersOf(claimFields(r, &c)))
		r.study.Claims = append(r.study.Claims, c)
	}
}
