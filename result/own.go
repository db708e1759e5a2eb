package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"unique"

	"netdelta/unit"
)

// ownMost is how many parameters of its own a workload can have.
const ownMost = 8

// Own are the values of the parameters that a workload declares itself, in the order of their declaration. Two are equal if the
// same parameters have the same values. A large run has them a hundred thousand times, and nearly always none: they take a word.
type Own struct {
	list unique.Handle[[ownMost]ownValue] // the zero handle has none
}

// values are the parameters; those that are not given have no value.
func (o Own) values() [ownMost]ownValue {
	if o == (Own{}) {
		return [ownMost]ownValue{}
	}
	return o.list.Value()
}

// ownValue is the value of a parameter; nil is none. The declaration is kept with it so that the parameter can be printed wherever
// it gets to.
type ownValue struct {
	of    unique.Handle[Parameter]
	value any
}

// OwnOf are own parameters by their keys and values: OwnOf("store", "nbd", "depth", 16). They have no declarations until Params.Bind.
func OwnOf(pairs ...any) Own {
	var o Own
	for i := 0; i+1 < len(pairs); i += 2 {
		d := Parameter{Kind: KindWord, Rank: ownMost}
		d.Key, _ = pairs[i].(string)
		switch pairs[i+1].(type) {
		case int:
			d.Kind = KindCount
		case float64:
			d.Kind = KindShare
		case unit.Bytes:
			d.Kind = KindSize
		case bool:
			d.Kind = KindFlag
		}
		o.put(d, pairs[i+1])
	}
	return o
}

// Or fills in the defaults of those that have no value.
func (o Own) Or(declared []Parameter) Own {
	for _, d := range declared {
		if d.Default != nil && o.get(d.Key) == nil {
			o.put(d, d.Default)
		}
	}
	return o
}

// Equal says whether two are the same.
func (o Own) Equal(other Own) bool { return o == other }

func (o Own) get(key string) any {
	for _, v := range o.values() {
		if v.value != nil && v.of.Value().Key == key {
			return v.value
		}
	}
	return nil
}

// Word is the value of a parameter that is a word, "" where it is not given; the others are the same for other kinds.
func (o Own) Word(key string) string {
	v, _ := o.get(key).(string)
	return v
}

// Count is the value of a parameter that is a whole number.
func (o Own) Count(key string) int {
	switch v := o.get(key).(type) {
	case int:
		return v
	case float64: // as it was read from JSON
		return int(v)
	}
	return 0
}

// Size is the value of a parameter that is a number of bytes.
func (o Own) Size(key string) unit.Bytes {
	if v, is := o.get(key).(unit.Bytes); is {
		return v
	}
	return unit.Bytes(o.Count(key))
}

// Share is the value of a parameter that is a share, from 0 to 1.
func (o Own) Share(key string) float64 {
	v, _ := o.get(key).(float64)
	return v
}

// Flag is the value of a parameter that is true or false.
func (o Own) Flag(key string) bool {
	v, _ := o.get(key).(bool)
	return v
}

// Declared are the declarations of the parameters that have values.
func (o Own) Declared() []Parameter {
	var all []Parameter
	for _, v := range o.values() {
		if v.value != nil {
			all = append(all, v.of.Value())
		}
	}
	return all
}

// put gives a parameter a value, at the place of its rank; the zero value takes it away.
func (o *Own) put(d Parameter, v any) {
	list := make([]ownValue, 0, ownMost+1)
	for _, have := range o.values() {
		if have.value != nil && have.of.Value().Key != d.Key {
			list = append(list, have)
		}
	}
	if v != d.Kind.Zero() {
		at := len(list)
		for at > 0 && list[at-1].of.Value().Rank > d.Rank {
			at--
		}
		list = slices.Insert(list, at, ownValue{unique.Make(d), v})
	}
	*o = Own{}
	if len(list) > 0 {
		var all [ownMost]ownValue
		copy(all[:], list)
		o.list = unique.Make(all)
	}
}

// read puts a value as JSON has it, or one that was read without a declaration.
func (o *Own) read(d Parameter, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	v, err := d.Kind.read(text)
	if err == nil {
		o.put(d, v)
	}
	return err
}

// MarshalJSON writes an object, its keys in the order of the declarations.
func (o Own) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for _, v := range o.values() {
		if v.value == nil {
			continue
		}
		value, err := json.Marshal(v.value)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, ",%q:%s", v.of.Value().Key, value)
	}
	return append(append([]byte{'{'}, bytes.TrimPrefix(b.Bytes(), []byte{','})...), '}'), nil
}

// read decodes a value of the kind.
func (k Kind) read(text []byte) (any, error) {
	v := reflect.New(reflect.TypeOf(k.Zero()))
	err := json.Unmarshal(text, v.Interface())
	return v.Elem().Interface(), err
}

// jsonKind is the kind that a value in JSON has as far as it can be seen, 0 for none.
func jsonKind(v any) Kind {
	switch v.(type) {
	case json.Number:
		return KindNumber
	case bool:
		return KindFlag
	case string:
		return KindWord
	}
	return 0
}
