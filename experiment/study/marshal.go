package study

import (
	"fmt"

	"go.yaml.in/yaml/v4"

	"netdelta/result"
)

// Marshal writes the study as a study file, with every default written out. Parse reads it back as the same study.
func (s *Study) Marshal() ([]byte, error) {
	data, err := yaml.Dump(mapping(0, studyFields(nil, s)...), yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("writing study %q as YAML: %w", s.Name, err)
	}
	return data, nil
}

func (s *Study) workloadNode(w Workload) *yaml.Node {
	levels := s.levelsNode(w.Levels)
	if len(levels.Content) == 0 {
		return textNode(w.Name)
	}
	return mapping(0, field{key: w.Name, value: levels})
}

func (s *Study) levelsNode(l Levels) *yaml.Node {
	var fields []field
	for _, f := range l.factors(s.parameters()) {
		fields = append(fields, field{key: f[0].of.Key, value: list(f, func(lv level) *yaml.Node {
			if lv.of.Kind == result.KindWord {
				return textNode(written(lv.value))
			}
			return value(lv.value)
		})})
	}
	return mapping(yaml.FlowStyle, fields...)
}

func mapping(style yaml.Style, fields ...field) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Style: style}
	for _, f := range fields {
		if f.value != nil {
			n.Content = append(n.Content, textNode(f.key), f.value)
		}
	}
	return n
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
