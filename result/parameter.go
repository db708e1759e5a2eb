package result

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/unit"
)

// Kind is the kind of value that a parameter has.
type Kind int

// The kinds, each with the type of its values.
const (
	KindWord     Kind = iota + 1 // string: one of Parameter.Words, or any
	KindSwitch                   // string: on or off, which study files have without quotes
	KindCount                    // int
	KindSize                     // unit.Bytes
	KindOctets                   // unit.Bytes, printed as a plain number
	KindRate                     // unit.BitsPerSecond
	KindNumber                   // float64
	KindShare                    // float64, from 0 to 1
	KindDuration                 // time.Duration
	KindFlag                     // bool
)

// Zero is the zero value of the kind.
func (k Kind) Zero() any {
	switch k {
	case KindCount:
		return 0
	case KindSize, KindOctets:
		return unit.Bytes(0)
	case KindRate:
		return unit.BitsPerSecond(0)
	case KindNumber, KindShare:
		return 0.0
	case KindDuration:
		return time.Duration(0)
	case KindFlag:
		return false
	}
	return ""
}

// Parameter declares a parameter of workloads, or a condition. Study files, their schema, records, IDs of cells, tables and formats
// follow from it. It can be compared.
type Parameter struct {
	// Key names it in studies and claims: "link.delay". It is the key in records too, unless it has a Field.
	Key  string
	Kind Kind
	Says string // what it is, in one sentence
	// Words are the levels that there are, with bars between them: "nbd|ceph"; "" if any will do.
	Words string
	// Low and High bound its levels, in base units (bytes, bits per second, nanoseconds); both are 0 where a workload's check decides.
	Low, High float64
	// Default is the value that a workload takes where none is given, nil for none.
	Default any
	// Unset is the level that is meant where there is none, "" if the workload decides. Dropped says that this level is recorded as none.
	Unset   string
	Dropped bool
	// Excludes is a parameter with which this one means nothing.
	Excludes Exclusion
	// Needs is a parameter without which this one means nothing.
	Needs Need
	// ID and Label are how cells' IDs and headings name a level, % standing for it: "depth=%", "depth %"; "" takes the kind's way.
	// Headings leave out the level Usual.
	ID, Label, Usual string
	// Factor is what effects are taken of when it varies: "policy" of all that belongs to policies. It is "" for what another load
	// comes of, since that is another question.
	Factor string
	// Derived says that it is no key of studies: it follows from another one.
	Derived bool
	// Stands says that it is a key of studies and claims alone, and stands for values of other parameters: a regime.
	Stands bool
	// Field is its place in Params ("Conditions.LinkRate"), "" for a parameter that a workload declares itself.
	Field string
	// Rank is its place among a workload's own parameters; Declare gives it.
	Rank int
}

// Exclusion says why a parameter means nothing together with another one, and what to do about it.
type Exclusion struct{ Key, Why, Fix string }

// Need says what a parameter belongs to, and what to do where that is missing.
type Need struct {
	Key, Fix string
	Levels   string // at which it means something, with bars between them: "randrw|rw"; "" for any
}

// Means says whether a workload's own parameter means something with parameters p: what it needs is there, at a level that has it.
func (d Parameter) Means(p Params) bool {
	return d.Needs.Levels == "" || slices.Contains(strings.Split(d.Needs.Levels, "|"), p.Own.Word(d.Needs.Key))
}

// Declare gives a workload's own parameters their ranks.
func Declare(own ...Parameter) []Parameter {
	for i := range own {
		own[i].Rank = i
	}
	return own
}

// Known are the levels that there are, nil if any will do.
func (d Parameter) Known() []string {
	if d.Words == "" {
		return nil
	}
	return strings.Split(d.Words, "|")
}

// Name is the level in the ID of a cell: exact, and without slashes, which part an ID; "" where there is none.
func (d Parameter) Name(p Params) string {
	v := p.Get(d)
	if v == d.Kind.Zero() {
		return ""
	}
	format := d.ID
	switch {
	case format != "":
	case d.Kind == KindWord:
		format = "%"
	case d.Kind == KindFlag:
		format = d.Key
	default:
		format = d.Key + "=%"
	}
	text := strings.NewReplacer("~", "%7E", "/", "~").Replace(strings.Replace(exact(d.Kind, v), "://", ":", 1))
	return strings.Replace(format, "%", text, 1)
}

// Heading is the level in a heading; "" where there is none, or the usual one.
func (d Parameter) Heading(p Params) string {
	v := p.Get(d)
	text := fmt.Sprint(v)
	switch d.Kind {
	case KindOctets:
		text = exact(d.Kind, v)
	case KindNumber, KindShare:
		text = strconv.FormatFloat(v.(float64), 'g', 6, 64)
	}
	format := d.Label
	switch {
	case v == d.Kind.Zero() || text == d.Usual:
		return ""
	case format != "":
	case d.Kind == KindWord || d.Kind == KindSize:
		format = "%"
	case d.Kind == KindFlag:
		format = d.Key
	default:
		format = d.Key + " %"
	}
	return strings.Replace(format, "%", text, 1)
}

// exact prints a value without rounding.
func exact(kind Kind, v any) string {
	switch v := v.(type) {
	case unit.Bytes:
		if text, err := v.MarshalText(); err == nil && kind == KindSize {
			return string(text)
		}
		return strconv.FormatInt(int64(v), 10)
	case unit.BitsPerSecond:
		return strings.TrimSuffix(exactRate(v), "/s")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Duration:
		return cmp.Or(exactDuration(v), "0s")
	}
	return fmt.Sprint(v)
}

// Parameters are all that there are with the own ones of these workloads among them, in the order in which studies combine levels
// (the last varies fastest) and IDs name them. What several workloads declare is there once.
func Parameters(own ...Parameter) []Parameter {
	all := loads()
	for _, d := range own {
		if !slices.ContainsFunc(all, func(o Parameter) bool { return o.Key == d.Key }) {
			all = append(all, d)
		}
	}
	return slices.Concat(all, sockets(), links(), pods())
}

// Recorded are parameters in the order of records and formats, without conditions.
func Recorded(all []Parameter) []Parameter {
	place := func(d Parameter) int {
		field := cmp.Or(d.Field, "Own")
		at, _ := reflect.TypeFor[Params]().FieldByName(field)
		return at.Index[0]
	}
	load := slices.DeleteFunc(slices.Clone(all), func(d Parameter) bool { return d.Stands || strings.HasPrefix(d.Field, "Conditions.") })
	slices.SortStableFunc(load, func(a, b Parameter) int { return cmp.Compare(place(a), place(b)) })
	return load
}

// Headings are the given parameters as headings name them, without conditions.
func (p Params) Headings() []string {
	last := func(d Parameter) int {
		switch {
		case d.Field == "":
			return 0
		case d.Field == "Clients":
			return 1
		case d.Field == "File" || d.Field == "Reconnect":
			return 2
		}
		return 3
	}
	all := Recorded(Parameters(p.Own.Declared()...))
	slices.SortStableFunc(all, func(a, b Parameter) int { return cmp.Compare(last(a), last(b)) })
	var texts []string
	for _, d := range all {
		if text := d.Heading(p); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Names are the given parameters as IDs name them, without conditions.
func (p Params) Names() []string {
	var texts []string
	for _, d := range Parameters(p.Own.Declared()...) {
		if text := d.Name(p); text != "" && !d.Stands && !strings.HasPrefix(d.Field, "Conditions.") {
			texts = append(texts, text)
		}
	}
	return texts
}
