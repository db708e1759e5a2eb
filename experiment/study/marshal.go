package study

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"

	"netdelta/result"
)

// Marshal writes the study as a study file, with every default written out. Parse reads it back as the same study.
func (s *Study) Marshal() ([]byte, error) {
	data, err := yaml.Dump(s.node(), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("writing study %q as YAML: %w", s.Name, err)
	}
	return data, nil
}

func (s *Study) node() *yaml.Node {
	n := mapping()
	n.add("study", textNode(s.Name))
	if s.Question != "" {
		n.add("question", textNode(s.Question))
	}
	n.add("testbed", s.Testbed.node())
	n.add("baseline", textNode(s.Baseline))
	n.add("networks", s.networksNode())
	n.add("placement", list(s.Placement, func(p result.Placement) *yaml.Node { return textNode(string(p)) }))
	n.add("workloads", block(s.Workloads, s.workloadNode))
	if f := s.levelsNode(s.Factors); len(f.Content) > 0 {
		n.add("factors", f)
	}
	n.add("design", s.Design.node())
	if len(s.Claims) > 0 {
		n.add("claims", block(s.Claims, Claim.node))
	}
	return n.Node
}

func (t Testbed) node() *yaml.Node {
	link := flow()
	link.add("mtu", plain(bytesText(t.Link.MTU)))
	if t.Link.Rate != 0 {
		link.add("rate", plain(written(t.Link.Rate)))
	}
	n := flow()
	n.add("kind", textNode(t.Kind))
	n.add("nodes", plain(strconv.Itoa(t.Nodes)))
	n.add("pods", plain(strconv.Itoa(t.Pods)))
	n.add("link", link.Node)
	return n.Node
}

func (s *Study) workloadNode(w Workload) *yaml.Node {
	levels := s.levelsNode(w.Levels)
	if len(levels.Content) == 0 {
		return textNode(w.Name)
	}
	n := mapping()
	n.add(w.Name, levels)
	return n.Node
}

func (s *Study) levelsNode(l Levels) *yaml.Node {
	n := flow()
	for _, f := range l.factors(s.parameters()) {
		value := plain
		if f[0].of.Kind == result.KindWord {
			value = textNode
		}
		n.add(f[0].of.Key, list(f, func(lv level) *yaml.Node { return value(written(lv.value)) }))
	}
	return n.Node
}

func (d Design) node() *yaml.Node {
	n := flow()
	n.add("burst", plain(FormatDuration(d.Burst)))
	n.add("builds", plain(strconv.Itoa(d.Builds)))
	if d.Rounds != 0 {
		n.add("rounds", plain(strconv.Itoa(d.Rounds)))
	}
	if d.Blocks != 0 {
		n.add("blocks", plain(strconv.Itoa(d.Blocks)))
	}
	n.add("confidence", plain(floatText(d.Confidence)))
	n.add("margin", plain(floatText(d.Margin)))
	n.add("time_budget", plain(FormatDuration(d.TimeBudget)))
	if d.Seed != 0 {
		n.add("seed", plain(strconv.FormatUint(d.Seed, 10)))
	}
	return n.Node
}

func (c Claim) node() *yaml.Node {
	n := mapping()
	n.add("id", textNode(c.ID))
	n.add("says", textNode(c.Says))
	if c.Source != "" {
		n.add("source", textNode(c.Source))
	}
	if c.Published != "" {
		n.add("published", textNode(c.Published))
	}
	n.add("expect", textNode(c.Expect))
	return n.Node
}

// builder adds keys to a mapping.
type builder struct{ *yaml.Node }

func mapping() builder { return builder{&yaml.Node{Kind: yaml.MappingNode}} }
func flow() builder    { return builder{&yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}} }

func (b builder) add(key string, value *yaml.Node) {
	b.Content = append(b.Content, textNode(key), value)
}

// textNode is text; the tag makes the library quote what would be read as something else.
func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// plain is a number, a truth value or a quantity.
func plain(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: s} }

func list[T any](values []T, node func(T) *yaml.Node) *yaml.Node {
	n := block(values, node)
	n.Style = yaml.FlowStyle
	return n
}

func block[T any](values []T, node func(T) *yaml.Node) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, v := range values {
		n.Content = append(n.Content, node(v))
	}
	return n
}
