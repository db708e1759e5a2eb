package result

import (
	"fmt"
	"slices"
	"strings"

	"netdelta/unit"
)

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
