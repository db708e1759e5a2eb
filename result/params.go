package result

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"netdelta/unit"
)

// Params are the levels of a cell, but for its network and placement. The zero value of a field means that the workload has no
// such parameter, or that its default holds. Params can be compared. In JSON the parameters of Own stand among the fields.
type Params struct {
	// Message is the size of a request and of its response, or of one write of a stream.
	Message unit.Bytes `json:"message,omitempty"`
	// Connections is how many connections (or flows) one client keeps open.
	Connections int `json:"connections,omitempty"`
	// Rate is the open-loop rate of a stream in bits per second (udp-stream).
	Rate unit.BitsPerSecond `json:"rate,omitempty"`
	// RequestRate is the open-loop rate of a request-response workload in transactions per second; latency then
	// counts from the intended start. Zero is a closed loop.
	RequestRate float64 `json:"request_rate,omitempty"`
	// CPU is the placement of client and server on processors: "same" (one, the default), "two" or "any".
	CPU string `json:"cpu,omitempty"`
	// BusyPoll is SO_BUSY_POLL; zero is off.
	BusyPoll time.Duration `json:"busy_poll,omitempty"`
	// CongestionControl is TCP_CONGESTION of each socket; "" takes "cubic".
	CongestionControl string `json:"congestion_control,omitempty"`
	// Nagle leaves TCP_NODELAY off, so that small writes may be held back.
	Nagle bool `json:"nagle,omitempty"`
	// MTU is the MTU of the underlay; zero takes the testbed's link MTU.
	MTU unit.Bytes `json:"mtu,omitempty"`
	// Family is the version of IP, of pods and underlay alike; "" is IPv4.
	Family Family `json:"family,omitempty"`
	// Search looks for the highest rate without loss in place of sending at Rate (udp-stream).
	Search bool `json:"search,omitempty"`
	// Engine is the program that makes the load: "" is netdelta's own loop, else "wrk", "iperf3", "sockperf" or "netperf".
	Engine string `json:"engine,omitempty"`
	// File is the size of what a server of HTTP answers with (http).
	File unit.Bytes `json:"file,omitempty"`
	// Reconnect opens a connection for each request in place of keeping it alive (http).
	Reconnect bool `json:"reconnect,omitempty"`
	// Own are the parameters that the workload alone has, and declares.
	Own Own `json:"own,omitzero"`
	// Clients is how many clients do the same at the same time; 0 and 1 are one alone (block, and fleets).
	Clients int `json:"clients,omitempty"`
	// Target is the URL of an endpoint of the user's own that is measured in place of a server of netdelta's; it has no password.
	Target string `json:"target,omitempty"`
	// StorageClass is the class of a cluster's volumes, one of which keeps the blocks in place of a store of netdelta's (block).
	StorageClass string `json:"storage_class,omitempty"`
	// Conditions are what the network is measured under; they are plain (Conditions.Plain).
	Conditions Conditions `json:"conditions,omitzero"`
}

// MarshalJSON writes the own parameters among the fields.
func (p Params) MarshalJSON() ([]byte, error) {
	type plain Params
	text, err := json.Marshal(plain(p))
	if err != nil || p.Own == (Own{}) {
		return text, err
	}
	own, err := json.Marshal(p.Own)
	if err != nil {
		return nil, err
	}
	// In a string the quotes would have backslashes before them: this is the field.
	return bytes.Replace(text, append([]byte(`"own":`), own...), own[1:len(own)-1], 1), nil
}

// UnmarshalJSON takes keys that are no fields as own parameters. Until Bind has given them their declarations they are words,
// numbers and flags.
func (p *Params) UnmarshalJSON(text []byte) error {
	type plain Params
	if err := json.Unmarshal(text, (*plain)(p)); err != nil || string(text) == "null" {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		if kind := jsonKind(value); kind != 0 && !isField(name) {
			of := Parameter{Key: name, Kind: kind, Rank: ownMost}
			if err := p.Own.read(of, value); err != nil {
				return fmt.Errorf("parameter %q: %w", name, err)
			}
		}
	}
	return nil
}

// isField says whether a key of JSON is a field of Params.
func isField(key string) bool {
	all := reflect.TypeFor[Params]()
	for i := range all.NumField() {
		if name, _, _ := strings.Cut(all.Field(i).Tag.Get("json"), ","); name == key {
			return true
		}
	}
	return false
}

// Bind gives own parameters that were read from a record their declarations, among those given.
func (p Params) Bind(declared []Parameter) Params {
	if p.Own == (Own{}) {
		return p
	}
	bound := p
	bound.Own = Own{}
	for _, own := range p.Own.values() {
		if own.value == nil {
			continue
		}
		of := own.of.Value()
		for _, d := range declared {
			if d.Field == "" && d.Key == of.Key {
				of = d
			}
		}
		if err := bound.Own.read(of, own.value); err != nil {
			return p // not as it is declared: it stays what it is
		}
	}
	return bound
}

// Bind gives the own parameters of all that a run holds their declarations.
func (r *Run) Bind(declared []Parameter) {
	for _, list := range reflect.ValueOf(r).Elem().Fields() {
		if list.Kind() != reflect.Slice || list.Type().Elem().Kind() != reflect.Struct {
			continue
		}
		for _, f := range reflect.VisibleFields(list.Type().Elem()) { // also fields of an embedded Setting
			if f.Type != reflect.TypeFor[Params]() || list.Len() == 0 {
				continue
			}
			bound := reflect.AppendSlice(reflect.MakeSlice(list.Type(), 0, list.Len()), list) // others may be reading the list
			for i := range bound.Len() {
				at := bound.Index(i).FieldByIndex(f.Index).Addr().Interface().(*Params)
				*at = at.Bind(declared)
			}
			list.Set(bound)
		}
	}
}

// field is the field of a declared parameter.
func (p *Params) field(d Parameter) reflect.Value {
	v := reflect.ValueOf(p).Elem()
	for name := range strings.SplitSeq(d.Field, ".") {
		v = v.FieldByName(name)
	}
	return v
}

// Get is the value of a parameter, the zero value of its kind where it is not given.
func (p Params) Get(d Parameter) any {
	if d.Stands {
		return p.Regime()
	}
	if d.Field == "" {
		if v := p.Own.get(d.Key); v != nil {
			return v
		}
		return d.Kind.Zero()
	}
	v := p.field(d)
	return v.Convert(reflect.TypeOf(d.Kind.Zero())).Interface()
}

// With are the parameters with another value of one; v is of the parameter's kind. Its zero value takes the parameter away, and so
// does the level that is meant anyway where the declaration says so.
func (p Params) With(d Parameter, v any) Params {
	if d.Dropped && v == any(d.Unset) {
		v = d.Kind.Zero()
	}
	if d.Stands {
		return p.inRegime(v.(string))
	}
	if d.Field == "" {
		p.Own.put(d, v)
		return p
	}
	to := p.field(d)
	to.Set(reflect.ValueOf(v).Convert(to.Type()))
	return p
}

// Given says whether a parameter has a value.
func (p Params) Given(d Parameter) bool { return p.Get(d) != d.Kind.Zero() }

// Unused returns an error that names a parameter which is set in p though the workload has no such one: own are the parameters that the workload declares
// itself, used are the keys of files, engines and targets, which only some workloads have, that it knows. Levels of own must
// be among those declared: known words, and numbers within their bounds.
func Unused(p Params, own []Parameter, used ...string) error {
	some := []string{"file", "reconnect", "clients", "engine", "target", "storage_class"}
	for _, d := range Parameters(p.Own.Declared()...) {
		i := slices.IndexFunc(own, func(o Parameter) bool { return o.Key == d.Key })
		switch {
		case !p.Given(d) || d.Field != "" && !slices.Contains(some, d.Key) || slices.Contains(used, d.Key):
		case d.Field != "" || i < 0:
			return fmt.Errorf("%s is no parameter of this workload; leave it out", d.Key)
		case own[i].Words != "" && !slices.Contains(own[i].Known(), p.Own.Word(d.Key)):
			return fmt.Errorf("%s %q is unknown: %s", d.Key, p.Own.Word(d.Key), strings.Join(own[i].Known(), ", "))
		default:
			if err := own[i].bounded(p.Own); err != nil {
				return err
			}
		}
	}
	return nil
}

// bounded returns an error where a workload's own parameter has a number out of its bounds.
func (d Parameter) bounded(o Own) error {
	var v, low, high any
	var out bool
	switch d.Kind {
	case KindCount:
		v, low, high = o.Count(d.Key), int(d.Low), int(d.High)
		out = float64(o.Count(d.Key)) < d.Low || float64(o.Count(d.Key)) > d.High
	case KindSize, KindOctets:
		v, low, high = o.Size(d.Key), unit.Bytes(d.Low), unit.Bytes(d.High)
		out = float64(o.Size(d.Key)) < d.Low || float64(o.Size(d.Key)) > d.High
	case KindNumber, KindShare:
		v, low, high = o.Share(d.Key), d.Low, d.High
		out = !(o.Share(d.Key) >= d.Low && o.Share(d.Key) <= d.High)
	}
	if !out || d.Low == 0 && d.High == 0 {
		return nil
	}
	return fmt.Errorf("%s %v is out of range: %v to %v", d.Key, v, low, high)
}
