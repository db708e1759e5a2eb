package study

import (
	"fmt"
	"reflect"

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
	var factors, claims, goals *yaml.Node
	if f := s.levelsNode(s.Factors); len(f.Content) > 0 {
		factors = f
	}
	if len(s.Goals) > 0 {
		goals = list(s.Goals, textNode)
	}
	if len(s.Claims) > 0 {
		claims = block(s.Claims, Claim.node)
	}
	return mapping(0,
		entry{"study", textNode(s.Name)},
		entry{"question", optional(s.Question)},
		entry{"testbed", s.Testbed.node()},
		entry{"baseline", textNode(s.Baseline)},
		entry{"networks", s.networksNode()},
		entry{"placement", list(s.Placement, func(p result.Placement) *yaml.Node { return textNode(string(p)) })},
		entry{"workloads", block(s.Workloads, s.workloadNode)},
		entry{"factors", factors},
		entry{"changes", s.changesNode()},
		entry{"design", s.Design.node()},
		entry{"claims", claims},
		entry{"goals", goals},
	)
}

func (t Testbed) node() *yaml.Node {
	return mapping(yaml.FlowStyle,
		entry{"kind", textNode(t.Kind)},
		entry{"nodes", value(t.Nodes)},
		entry{"pods", value(t.Pods)},
		entry{"nic", optional(t.NIC)},
		entry{"via", optional(t.Via)},
		entry{"link", mapping(yaml.FlowStyle, entry{"mtu", value(t.Link.MTU)}, entry{"rate", optional(t.Link.Rate)})},
		entry{"cpu", t.pinsNode()},
	)
}

func (t Testbed) pinsNode() *yaml.Node {
	if t.CPU == nil {
		return nil
	}
	return mapping(yaml.FlowStyle, entry{"client", value(t.CPU.Client)}, entry{"server", value(t.CPU.Server)})
}

func (s *Study) workloadNode(w Workload) *yaml.Node {
	levels := s.levelsNode(w.Levels)
	if len(levels.Content) == 0 {
		return textNode(w.Name)
	}
	return mapping(0, entry{w.Name, levels})
}

func (s *Study) levelsNode(l Levels) *yaml.Node {
	var entries []entry
	for _, f := range l.factors(s.parameters()) {
		entries = append(entries, entry{f[0].of.Key, list(f, func(lv level) *yaml.Node {
			if lv.of.Kind == result.KindWord {
				return textNode(written(lv.value))
			}
			return value(lv.value)
		})})
	}
	return mapping(yaml.FlowStyle, entries...)
}

func (d Design) node() *yaml.Node {
	return mapping(yaml.FlowStyle,
		entry{"burst", value(d.Burst)},
		entry{"builds", value(d.Builds)},
		entry{"rounds", optional(d.Rounds)},
		entry{"blocks", optional(d.Blocks)},
		entry{"confidence", value(d.Confidence)},
		entry{"margin", value(d.Margin)},
		entry{"time_budget", value(d.TimeBudget)},
		entry{"seed", optional(d.Seed)},
	)
}

func (c Claim) node() *yaml.Node {
	return mapping(0,
		entry{"id", textNode(c.ID)},
		entry{"says", textNode(c.Says)},
		entry{"source", optional(c.Source)},
		entry{"published", optional(c.Published)},
		entry{"expect", textNode(c.Expect)},
	)
}

// entry is a key of a mapping with its value; nil leaves it out.
type entry struct {
	key   string
	value *yaml.Node
}

func mapping(style yaml.Style, entries ...entry) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
	for _, e := range entries {
		if e.value != nil {
			n.Content = append(n.Content, textNode(e.key), e.value)
		}
	}
	return n
}

// optional is the node of a value, nil for the zero value.
func optional(v any) *yaml.Node {
	if reflect.ValueOf(v).IsZero() {
		return nil
	}
	if s, ok := v.(string); ok {
		return textNode(s)
	}
	return value(v)
}

// textNode is text; the tag makes the library quote what would be read as something else.
func textNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

// value is a number, a truth value or a quantity.
func value(v any) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: written(v)} }

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
