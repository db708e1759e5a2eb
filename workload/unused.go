package workload

import (
	"fmt"
	"slices"

	"netdelta/result"
)

// Unused returns an error that names a parameter of real workloads (their files, blocks, mixes and engines) which is set in p
// though a workload has only those of used.
func Unused(p result.Params, used ...string) error {
	for _, have := range []struct {
		key string
		set bool
	}{
		{"file", p.File != 0},
		{"reconnect", p.Reconnect},
		{"store", p.Store != ""},
		{"operation", p.Operation != ""},
		{"block", p.Block != 0},
		{"depth", p.Depth != 0},
		{"clients", p.Clients != 0},
		{"mix", p.Mix != ""},
		{"engine", p.Engine != ""},
		{"target", p.Target != ""},
		{"storage_class", p.StorageClass != ""},
	} {
		if have.set && !slices.Contains(used, have.key) {
			return fmt.Errorf("%s is no parameter of this workload; leave it out", have.key)
		}
	}
	return nil
}
