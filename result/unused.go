package result

import (
	"fmt"
	"slices"
	"strings"
)

// Unused returns an error that names a parameter which is set in p though the workload has no such one: own are the parameters that the workload declares
// itself, used are the keys of files, engines and targets, which only some workloads have, that it knows. Words of own must be known ones.
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
		}
	}
	return nil
}
