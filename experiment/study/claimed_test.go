package study

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"netdelta/result"
)

// TestClaimed: a claim takes the settings in which there is something to compare for it, and nothing where what it names is not there.
func TestClaimed(t *testing.T) {
	var cells []result.Cell
	setting := func(name, workload string, p result.Params, networks ...string) {
		for _, n := range networks {
			role := result.RoleCell
			if n == "host" {
				role = result.RoleBaseline
			}
			cells = append(cells, result.Cell{ID: name + "/" + n, Network: n, Workload: workload, Role: role, Placement: result.CrossNode, Params: p})
		}
	}
	setting("small", "tcp-rr", result.Params{Message: 300}, "host", "bridge", "vxlan")
	setting("large", "tcp-rr", result.Params{Message: 65536}, "host", "bridge")
	setting("far", "tcp-rr", result.Params{Message: 300, Conditions: result.Conditions{LinkDelay: time.Millisecond}}, "host", "vxlan")
	setting("stream", "tcp-stream", result.Params{}, "host", "bridge", "vxlan")
	for expect, want := range map[string][]string{
		"p50 of bridge above host where message=300|1024":                                    {"small/bridge", "small/host"},
		"p50 of vxlan, ipip below bridge where workload=tcp-rr":                              {"small/bridge", "small/vxlan"},
		"p50 of bridge above ipip":                                                           nil,
		"p50 of others within 5us of each other where workload=tcp-rr":                       {"small/bridge", "small/vxlan"},
		"p50 of bridge, vxlan changes between message=300 and message=65536":                 {"large/bridge", "small/bridge"},
		"p50 of vxlan rises between link.delay=0s and link.delay=1ms where workload=tcp-rr":  {"far/vxlan", "small/vxlan"},
		"p50 of bridge rises between link.delay=0s and link.delay=1ms where workload=tcp-rr": nil,
		"rate rises with throughput of tcp-stream where workload=oltp":                       nil,
		"p50 of bridge above host where message=65536; throughput of vxlan below host where workload=tcp-stream": {
			"large/bridge", "large/host", "stream/host", "stream/vxlan",
		},
		"nonsense": nil,
	} {
		got := Claimed([]Claim{{ID: "a", Expect: expect}}, cells, nil, nil)
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", expect, diff)
		}
	}
}
