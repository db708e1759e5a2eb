package record

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"netdelta/experiment/study"
)

// Study is the study file of a strategy that has a verb of its own: the verb's options, and claims.
type Study struct {
	// Name becomes part of the run folder's name.
	Name     string `yaml:"study"`
	Strategy string `yaml:"strategy"`
	Question string `yaml:"question,omitempty"`
	// Options are flags of the verb by their names. A value is a scalar or a list of scalars.
	Options map[string]yaml.Node `yaml:"options,omitempty"`
	Claims  []study.Claim        `yaml:"claims,omitempty"`
}

// Parse reads and checks a study file of a strategy. Errors begin with the file's name.
func Parse(file, strategy string, data []byte) (Study, error) {
	var s Study
	if err := yaml.Load(data, &s, yaml.WithKnownFields()); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if s.Strategy != strategy {
		return s, fmt.Errorf("%s: its strategy is %q, not %q; netdelta run takes a study without a strategy", file, s.Strategy, strategy)
	}
	if s.Name == "" || strings.ContainsAny(s.Name, "/\\ ") || s.Name[0] == '.' {
		return s, fmt.Errorf("%s: study %q: need a name without spaces and slashes", file, s.Name)
	}
	for i, c := range s.Claims {
		if c.ID == "" || c.Says == "" {
			return s, fmt.Errorf("%s: claim %d needs id, says and expect", file, i+1)
		}
		if slices.ContainsFunc(s.Claims[:i], func(o study.Claim) bool { return o.ID == c.ID }) {
			return s, fmt.Errorf("%s: claim %s is there twice", file, c.ID)
		}
		if _, err := study.ParseExpectation(c.Expect); err != nil {
			return s, fmt.Errorf("%s: claim %s: %w", file, c.ID, err)
		}
	}
	return s, nil
}

// Marshal writes the study as YAML that Parse reads.
func (s Study) Marshal() ([]byte, error) {
	data, err := yaml.Dump(s, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		return nil, fmt.Errorf("write study %s as YAML: %w", s.Name, err)
	}
	return data, nil
}

// Set gives an option its value: one text, or a list.
func (s *Study) Set(name string, list bool, values ...string) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range values {
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: v})
	}
	if !list {
		n = n.Content[0]
	}
	if s.Options == nil {
		s.Options = map[string]yaml.Node{}
	}
	s.Options[name] = *n
}

// Values are the texts of an option's value, and whether it is a list.
func (s *Study) Values(name string) (values []string, list bool) {
	n := s.Options[name]
	if n.Kind != yaml.SequenceNode {
		return []string{n.Value}, false
	}
	for _, c := range n.Content {
		values = append(values, c.Value)
	}
	return values, true
}
