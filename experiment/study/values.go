package study

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v4"

	"netdelta/result"
	"netdelta/unit"
)

// octal refuses 0300, which is 300 to one reader and 192 to another, and texts too long to be a quantity.
func octal(s string) error {
	if len(s) > 40 {
		return fmt.Errorf("%q is too long", clip(s))
	}
	if digits := strings.TrimLeft(s, "+-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return fmt.Errorf("%q begins with a zero", s)
	}
	return nil
}

// quantity reads a size or rate, and shortens what unit says of a wrong one: the place is known here.
func quantity[T any](parse func(string) (T, error)) func(string) (T, error) {
	return func(s string) (v T, err error) {
		if err := octal(s); err != nil {
			return v, err
		}
		v, err = parse(s)
		if syntax, is := errors.AsType[*unit.SyntaxError](err); is {
			return v, fmt.Errorf("%q is not a %s: %s; write for example %s", s, syntax.Kind, syntax.Why, syntax.Example)
		}
		return v, err
	}
}

func parseBytes(s string) (unit.Bytes, error)        { return quantity(unit.ParseBytes)(s) }
func parseRate(s string) (unit.BitsPerSecond, error) { return quantity(unit.ParseRate)(s) }

func parseCount(s string) (int, error) {
	if err := octal(s); err != nil {
		return 0, err
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number", s)
	}
	return int(v), nil
}

func parseSeed(s string) (uint64, error) {
	if err := octal(s); err != nil {
		return 0, err
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number from 0 to 2^64-1", clip(s))
	}
	return v, nil
}

func parseFloat(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) || strings.ContainsAny(s, "xX_pP") {
		return 0, fmt.Errorf("%q is not a number", clip(s))
	}
	return v, nil
}

// parseFraction takes 0.02 and 2%.
func parseFraction(s string) (float64, error) {
	p, percent := strings.CutSuffix(s, "%")
	v, err := parseFloat(strings.TrimSpace(p))
	if err != nil {
		return 0, fmt.Errorf("%q is not a fraction; write 2%% or 0.02", clip(s))
	}
	if percent {
		// Rounded so that 2% and 0.02 are the same number, as far as anyone writes digits.
		v = math.Round(v*1e10) / 1e12
	}
	return v, nil
}

func parseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err == nil {
		return d, nil
	}
	if _, bad := strconv.ParseFloat(s, 64); bad == nil {
		return 0, fmt.Errorf("%q has no unit; write %ss or %sms", clip(s), clip(s), clip(s))
	}
	return 0, fmt.Errorf("%q is not a duration; write 5ms, 60s or 15m", clip(s))
}

func parseBool(s string) (bool, error) {
	switch s {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither true nor false", clip(s))
}

// The forms in which values are written back: each is read as the same value again.
func bytesText(v unit.Bytes) string { return strconv.FormatInt(int64(v), 10) }
func floatText(v float64) string    { return strconv.FormatFloat(v, 'g', -1, 64) }

// clip shortens what the user wrote to what a message can bear.
func clip(s string) string {
	r := []rune(s)
	if len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// hostile says what makes a text unfit to be printed on a terminal or in a report, "" if nothing does.
func hostile(s string) string {
	for _, r := range s {
		switch {
		case r == '\n':
		case unicode.IsControl(r):
			return fmt.Sprintf("a control character (U+%04X)", r)
		case unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029':
			return fmt.Sprintf("an invisible character (U+%04X)", r)
		case r == unicode.ReplacementChar:
			return "a character that could not be decoded (U+FFFD)"
		}
	}
	return ""
}

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
