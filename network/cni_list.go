package network

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
)

// ListError says what is wrong with a list of CNI plugins, and where.
type ListError struct {
	File         string
	Line, Column int // from 1, in characters; 0 is the whole file
	Problem      string
	Fix          string // "" when the problem says it all
}

// Error prints file:line:column, the problem and the fix.
func (e *ListError) Error() string {
	s := e.File
	if e.Line > 0 {
		s = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	s += ": " + e.Problem
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// pluginList is a list of plugins with placeholders.
type pluginList struct {
	file, text string
	sum        string
	// plugins are the types, each once, in the order in which they are called; a plugin that gives addresses after the one
	// that calls it.
	plugins []string
}

var placeholderPattern = regexp.MustCompile(`\{\{\s*\.?([A-Za-z]*)\s*\}\}`)

// versionsOfLists are the versions of the CNI specification that know lists of plugins and that libcni speaks.
func versionsOfLists() []string { return []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} }

// fill puts values in the place of placeholders.
func (l pluginList) fill(values []placeholder) string {
	text, _ := substitute(l.text, values)
	return text
}

// substitute puts values in the place of placeholders, and returns where each byte of what it makes was in the text: for
// a value, where the placeholder begins.
func substitute(text string, values []placeholder) (filled string, origin []int) {
	var b strings.Builder
	at := 0
	put := func(s string, from, step int) {
		b.WriteString(s)
		for i := range len(s) {
			origin = append(origin, from+i*step)
		}
	}
	for _, m := range placeholderPattern.FindAllStringSubmatchIndex(text, -1) {
		i := slices.IndexFunc(values, func(p placeholder) bool { return p.name == text[m[2]:m[3]] })
		if i < 0 {
			continue
		}
		put(text[at:m[0]], at, 1)
		put(values[i].value, m[0], 0)
		at = m[1]
	}
	put(text[at:], at, 1)
	return b.String(), append(origin, len(text))
}

// parseList reads a list. It holds it against the specification as far as all plugins have it in common; what is a
// plugin's own is for the plugin to judge.
func parseList(file string, text []byte) (pluginList, error) {
	l := pluginList{file: file, text: string(text), sum: fmt.Sprintf("%x", sha256.Sum256(text))}
	t, err := NewTopology(Layout{Nodes: 1, PodsPerNode: 1})
	if err != nil {
		return l, err
	}
	values := placeholders(t, 0)
	filled, origin := substitute(l.text, values)
	r := &listReader{file: file, text: l.text, filled: filled, origin: origin}
	if err := r.unknown(values); err != nil {
		return l, err
	}
	if err := r.read(); err != nil {
		return l, err
	}
	l.plugins = r.plugins
	return l, nil
}

// listReader reads a list whose placeholders are filled in.
type listReader struct {
	file, text string
	filled     string
	origin     []int // in text, of each byte of filled
	decoder    *json.Decoder
	plugins    []string
}

// fail is an error at an offset in the filled text.
func (r *listReader) fail(offset int64, problem, fix string) error {
	return r.failAt(r.origin[min(max(0, int(offset)), len(r.origin)-1)], problem, fix)
}

// failAt is an error at an offset in the text as it was written.
func (r *listReader) failAt(offset int, problem, fix string) error {
	before := r.text[:offset]
	line := strings.Count(before, "\n")
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &ListError{File: r.file, Line: line + 1, Column: column + 1, Problem: problem, Fix: fix}
}

// unknown finds a placeholder that there is not.
func (r *listReader) unknown(values []placeholder) error {
	known := gather.Each(values, func(v placeholder) string { return v.name })
	for _, m := range placeholderPattern.FindAllStringSubmatchIndex(r.text, -1) {
		name := r.text[m[2]:m[3]]
		if slices.Contains(known, name) {
			continue
		}
		fix := "known are " + strings.Join(known, ", ")
		if near, ok := suggest.Nearest(name, known); ok {
			fix = fmt.Sprintf("did you mean {{.%s}}?", near)
		}
		return r.failAt(m[0], fmt.Sprintf("unknown placeholder %q", r.text[m[0]:m[1]]), fix)
	}
	return nil
}

// read goes through the keys of the list.
func (r *listReader) read() error {
	if err := r.syntax(); err != nil {
		return err
	}
	r.decoder = json.NewDecoder(strings.NewReader(r.filled))
	if open, _ := r.decoder.Token(); open != json.Delim('{') {
		return r.fail(0, "a list of CNI plugins is a JSON object", `write {"cniVersion": "1.0.0", "name": "...", "plugins": [...]}`)
	}
	found := map[string]bool{}
	for r.decoder.More() {
		key, _ := r.decoder.Token() // a string: the syntax was checked
		name, _ := key.(string)
		found[name] = true
		if err := r.member(name); err != nil {
			return err
		}
	}
	for _, needed := range []struct{ key, fix string }{
		{"cniVersion", `write "cniVersion": "1.0.0"`}, {"name", `write "name": "mynet"`}, {"plugins", "a single plugin's configuration becomes a list as the only entry of \"plugins\""},
	} {
		if !found[needed.key] {
			return r.fail(0, fmt.Sprintf("the key %q is missing", needed.key), needed.fix)
		}
	}
	return nil
}

// syntax refuses what is no JSON.
func (r *listReader) syntax() error {
	var whatever json.RawMessage
	err := json.Unmarshal([]byte(r.filled), &whatever)
	if wrong, is := errors.AsType[*json.SyntaxError](err); is {
		return r.fail(wrong.Offset-1, "no JSON: "+wrong.Error(), "")
	}
	if err != nil {
		return r.fail(0, "no JSON: "+err.Error(), "")
	}
	return nil
}

// value reads the next value as it stands, with its offset.
func (r *listReader) value() (raw json.RawMessage, offset int64) {
	if err := r.decoder.Decode(&raw); err != nil {
		return nil, r.decoder.InputOffset() // never: the syntax was checked
	}
	return raw, r.decoder.InputOffset() - int64(len(raw))
}

// member reads the value of a key.
func (r *listReader) member(key string) error {
	if key == "plugins" {
		return r.pluginsOf()
	}
	raw, at := r.value()
	if key != "name" && key != "cniVersion" {
		return nil
	}
	var text string
	if json.Unmarshal(raw, &text) != nil || text == "" {
		return r.fail(at, fmt.Sprintf("%s must be a text, not %s", key, clipped(raw)), "")
	}
	if versions := versionsOfLists(); key == "cniVersion" && !slices.Contains(versions, text) {
		return r.fail(at, fmt.Sprintf("cniVersion %q is none that has lists of plugins and is known here", text), "known are "+strings.Join(versions, ", "))
	}
	if key == "name" && !regexpName.MatchString(text) {
		return r.fail(at, fmt.Sprintf("the network name %q is none that CNI allows", text), "use letters, digits, dots, dashes and underscores, and begin with a letter or digit")
	}
	return nil
}

// regexpName is what the specification allows for names of networks.
var regexpName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.\-]*$`)

// pluginsOf reads the list itself.
func (r *listReader) pluginsOf() error {
	raw, at := r.value()
	inside := json.NewDecoder(bytes.NewReader(raw))
	if open, _ := inside.Token(); open != json.Delim('[') {
		return r.fail(at, fmt.Sprintf("plugins must be a list, not %s", clipped(raw)), "")
	}
	for inside.More() {
		var plugin json.RawMessage
		if err := inside.Decode(&plugin); err != nil {
			return r.fail(at, "plugins can't be read: "+err.Error(), "")
		}
		if err := r.plugin(plugin, at+inside.InputOffset()-int64(len(plugin))); err != nil {
			return err
		}
	}
	if len(r.plugins) == 0 {
		return r.fail(at, "plugins is an empty list", "name at least one")
	}
	return nil
}

// plugin reads what kind of plugin an entry asks for.
func (r *listReader) plugin(raw json.RawMessage, at int64) error {
	var entry struct {
		Type string `json:"type"`
		IPAM *struct {
			Type string `json:"type"`
		} `json:"ipam"`
	}
	err := json.Unmarshal(raw, &entry)
	if wrong, is := errors.AsType[*json.UnmarshalTypeError](err); is {
		place := cmp.Or(wrong.Field, "a plugin")
		return r.fail(at+max(0, wrong.Offset-1), fmt.Sprintf("%s must not be a %s", place, wrong.Value), "")
	}
	if err != nil {
		return r.fail(at, err.Error(), "")
	}
	types := []string{entry.Type}
	if entry.IPAM != nil && entry.IPAM.Type != "" {
		types = append(types, entry.IPAM.Type)
	}
	for _, name := range types {
		if name == "" || strings.ContainsRune(name, '/') || name == ".." {
			return r.fail(at, fmt.Sprintf("a plugin of the type %q", name), `write "type": "bridge", the name of a program without its folder`)
		}
		r.plugins = gather.Once(r.plugins, name)
	}
	return nil
}

// clipped shows the beginning of a value.
func clipped(raw json.RawMessage) string {
	const shown = 40
	text := strings.Join(strings.Fields(string(raw)), " ")
	if len(text) > shown {
		text = text[:shown] + "..."
	}
	return text
}
