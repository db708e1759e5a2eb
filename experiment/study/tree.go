package study

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// Limits on what a study file may be: far above any real one, and low enough that reading it can't hurt.
const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 16      // levels of nesting
	maxNodes = 20_000  // values, counted after anchors are followed
)

// load reads one YAML document. It returns nil and reports an error when there is none.
func (r *reader) load(data []byte) *yaml.Node {
	if len(data) > maxFile {
		r.fail("", Position{File: r.file}, fmt.Sprintf("the file has %d bytes, and a study may have %d", len(data), maxFile), "")
		return nil
	}
	if !r.printable(data) {
		return nil
	}
	limits := loaderlimits.New(loaderlimits.DepthValue(maxDepth), loaderlimits.AliasNone())
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithPlugin(limits))
	if err != nil {
		r.fail("", Position{File: r.file}, fmt.Sprintf("preparing to read the file: %v", err), "")
		return nil
	}
	var doc, second yaml.Node
	switch err := loader.Load(&doc); {
	case errors.Is(err, io.EOF) || err == nil && blank(&doc):
		r.fail("", Position{File: r.file}, "the file is empty", `a study begins with "study: NAME"; netdelta list studies shows the built-in ones`)
		return nil
	case err != nil:
		r.syntax(err)
		return nil
	}
	switch err := loader.Load(&second); {
	case err == nil:
		r.fail("", r.place(&second), "there is a second document in the file", "put each study in a file of its own")
		return nil
	case !errors.Is(err, io.EOF):
		r.syntax(err)
		return nil
	}
	if !r.bounded(&doc) {
		return nil
	}
	return doc.Content[0]
}

func blank(doc *yaml.Node) bool {
	return doc.Kind != yaml.DocumentNode || len(doc.Content) == 0 ||
		doc.Content[0].Kind == yaml.ScalarNode && doc.Content[0].ShortTag() == "!!null"
}

// printable refuses bytes that are not UTF-8 text, at their line and column.
func (r *reader) printable(data []byte) bool {
	line, column := 1, 1
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		at := Position{File: r.file, Line: line, Column: column}
		switch {
		case c == utf8.RuneError && size == 1:
			r.fail("", at, fmt.Sprintf("byte 0x%02x is not UTF-8", data[i]), "save the file as UTF-8")
			return false
		case c < ' ' && c != '\n' && c != '\r' && c != '\t' || c == 0x7f:
			r.fail("", at, fmt.Sprintf("control character U+%04X", c), "a study file is plain text")
			return false
		case c == '\n':
			line, column = line+1, 0
		}
		column++
		i += size
	}
	return true
}

// syntax reports what the YAML parser found wrong.
func (r *reader) syntax(err error) {
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		r.fail("", Position{File: r.file}, fmt.Sprintf("not YAML: %v", err), "")
		return
	}
	problem := "not YAML: " + le.Message
	if le.ContextMsg != "" {
		problem += " " + le.ContextMsg
	}
	at := Position{File: r.file, Line: le.Mark.Line, Column: le.Mark.Column}
	switch {
	case strings.HasPrefix(le.Message, "exceeded max depth"):
		r.fail("", at, fmt.Sprintf("values are nested deeper than %d levels", maxDepth), "")
	case strings.HasPrefix(le.Message, "found character that cannot start any token"):
		r.fail("", at, problem, "indent with spaces, not tabs, and put text with special characters in quotes")
	case strings.HasPrefix(le.Message, "mapping values are not allowed"):
		r.fail("", at, problem, "put text that has a colon in quotes")
	default:
		r.fail("", at, problem, "")
	}
}

// bounded walks the document with its aliases followed, as the reader will, and refuses one that grows beyond all measure
// or contains itself; tags and merge keys, which could give a value another meaning, are refused as well.
func (r *reader) bounded(doc *yaml.Node) bool {
	nodes, ok := 0, true
	var walk func(n *yaml.Node, depth int)
	walk = func(n *yaml.Node, depth int) {
		if nodes++; !ok {
			return
		}
		if nodes > maxNodes || depth > maxDepth {
			r.fail("", r.place(n), "the anchors of this file expand without end", "write the values out")
			ok = false
			return
		}
		if n.Kind == yaml.AliasNode {
			walk(n.Alias, depth+1)
			return
		}
		if n.Style&yaml.TaggedStyle != 0 {
			r.fail("", r.place(n), fmt.Sprintf("tag %q is not allowed", clip(n.Tag)), "leave it out")
			ok = false
		}
		for _, c := range n.Content {
			walk(c, depth+1)
		}
	}
	walk(doc, 0)
	return ok
}

func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (r *reader) place(n *yaml.Node) Position {
	return Position{File: r.file, Line: n.Line, Column: n.Column}
}

// fail reports a problem of the value at path, and marks it and all that contain it as not to be trusted.
func (r *reader) fail(path string, at Position, problem, fix string) {
	r.errs = append(r.errs, &Error{Position: at, Problem: problem, Fix: fix})
	for path != "" {
		r.bad[path] = true
		path = parent(path)
	}
}

// parent of "a.b[1]" is "a.b", of that "a", and of that "".
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

// kind names what a node is, for messages.
func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return clip(n.Value)
	case "!!timestamp":
		return "the date " + clip(n.Value)
	}
	return fmt.Sprintf("the text %q", clip(n.Value))
}

// keys are the keys of one mapping, with what reads each value.
type keys map[string]func(path string, n *yaml.Node)

func (k keys) names() []string {
	var names []string
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// field is a key of a mapping with what reads its value, and the value as it is written, nil where the key is left out. Fields that are
// written alone have no reader.
type field struct {
	key   string
	read  func(path string, n *yaml.Node)
	value *yaml.Node
	empty bool // the value is the zero value
}

// optional leaves a field out whose value is the zero value.
func (f field) optional() field {
	if f.empty {
		f.value = nil
	}
	return f
}

func readersOf(fields []field) keys {
	all := keys{}
	for _, f := range fields {
		all[f.key] = f.read
	}
	return all
}

func text(r *reader, key string, to *string) field {
	return field{key, r.text(to), textNode(*to), *to == ""}
}

// figure is a field of a number, a truth value or a quantity.
func figure[T comparable](r *reader, key string, to *T, parse func(string) (T, error)) field {
	return field{key, into(r, to, parse), value(*to), *to == *new(T)}
}

// mapping reads each value by its key. what names the mapping in messages.
func (r *reader) mapping(path, what string, n *yaml.Node, known keys) {
	n = follow(n)
	if n.Kind != yaml.MappingNode {
		r.fail(path, r.place(n), fmt.Sprintf("%s must be a mapping (key: value), not %s", what, kind(n)), "its keys are "+strings.Join(known.names(), ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.fail(path, r.place(key), fmt.Sprintf("a key of %s must be a word, not %s", what, kind(key)), "")
			continue
		}
		name := key.Value
		read, ok := known[name]
		if !ok {
			r.fail(path, r.place(key), fmt.Sprintf("unknown key %q in %s", clip(name), what), suggest(name, known.names()))
			continue
		}
		if first := seen[name]; first > 0 {
			r.fail(path, r.place(key), fmt.Sprintf("key %q is there twice", name), fmt.Sprintf("it is already on line %d", first))
			continue
		}
		seen[name] = key.Line
		inner := strings.TrimPrefix(path+"."+name, ".")
		r.places[inner] = r.place(follow(value))
		read(inner, value)
	}
}

// scalar reads a single value with parse.
func scalar[T any](r *reader, path string, n *yaml.Node, parse func(string) (T, error)) (v T, ok bool) {
	n = follow(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		r.fail(path, r.place(n), fmt.Sprintf("%s must be a single value, not %s", subject(path), kind(n)), "")
		return v, false
	}
	v, err := parse(n.Value)
	if err != nil {
		r.fail(path, r.place(n), fmt.Sprintf("%s: %v", leaf(path), err), "")
		return v, false
	}
	return v, true
}

// subject names what stands at path: "burst", or "each of networks" for an element of a list.
func subject(path string) string {
	if strings.HasSuffix(path, "]") {
		return "each of " + leaf(path)
	}
	return leaf(path)
}

// into returns a reader of one value.
func into[T any](r *reader, to *T, parse func(string) (T, error)) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if v, ok := scalar(r, path, n, parse); ok {
			*to = v
		}
	}
}

// text returns a reader of text: what YAML takes for a number or a date must be in quotes.
func (r *reader) text(to *string) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		if v, ok := r.word(path, n); ok {
			*to = v
		}
	}
}

func (r *reader) word(path string, n *yaml.Node) (string, bool) {
	n = follow(n)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!merge" {
		fix := ""
		if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null" {
			fix = fmt.Sprintf("put it in quotes if %q is meant as text", clip(n.Value))
		}
		r.fail(path, r.place(n), fmt.Sprintf("%s must be text, not %s", subject(path), kind(n)), fix)
		return "", false
	}
	return n.Value, true
}

// listOf returns a reader of a list of names, or of one name.
func listOf[T ~string](r *reader, to *[]T) func(string, *yaml.Node) {
	return func(path string, n *yaml.Node) {
		r.each(path, n, func() int { return len(*to) }, func(path string, n *yaml.Node) {
			if v, ok := r.word(path, n); ok {
				*to = append(*to, T(v))
			}
		})
	}
}

// each reads the values of a list, or the one value that stands in its stead. have is the length so far of what is
// read: values are numbered as they are kept, so that a place can be found by index although a value before it was bad.
func (r *reader) each(path string, n *yaml.Node, have func() int, read func(string, *yaml.Node)) {
	n = follow(n)
	values := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		values = n.Content
		if len(values) == 0 {
			r.fail(path, r.place(n), leaf(path)+" is an empty list", "name at least one")
		}
	}
	for _, v := range values {
		inner := fmt.Sprintf("%s[%d]", path, have())
		r.places[inner] = r.place(follow(v))
		before := have()
		read(inner, v)
		if have() == before {
			delete(r.bad, inner) // the next value takes this number; that the list is not whole stays known
		}
	}
}
