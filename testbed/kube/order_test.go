package kube

import (
	"encoding/json"
	"slices"
	"testing"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
)

// Programs in pods are not told where the user of this machine keeps files.
func TestOrder(t *testing.T) {
	line := order(ContainerRef{Program: "/netdelta"}, testbed.Command{Args: []string{"agent"}, Env: []string{"HOME=/root", "GOMAXPROCS=3", "XDG_CACHE_HOME=/var/cache/me"}})
	var o inside.Order
	if err := json.Unmarshal([]byte(line[len(line)-1]), &o); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.Env, []string{"GOMAXPROCS=3"}) || !slices.Equal(o.Args, []string{"agent"}) {
		t.Errorf("%v orders %+v", line, o)
	}
}
