package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"netdelta/result"
	"netdelta/testbed"
)

// refusing is a driver that can't open the testbeds of one network.
type refusing struct {
	testbed.Provider
	network string
}

func (r refusing) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	if spec.Network == r.network {
		return nil, errors.New("no room")
	}
	return r.Provider.Open(ctx, spec)
}

// A network that can't be built costs its own trials, by name, and nothing else.
func TestNetworkThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	c := setUp(t, small([]string{"host", "bridge", "vxlan"}, result.CrossNode), 3, nil)
	c.Driver = refusing{c.Driver, "vxlan"}
	run := mustRun(t, c)
	failed := 0
	for _, tr := range journal(t, c) {
		wrong := strings.HasPrefix(tr.Cell, "vxlan/")
		if wrong {
			failed++
		}
		if wrong != strings.Contains(tr.Failed, "building network vxlan: no room") {
			t.Errorf("%s: %q", tr.ID(), tr.Failed)
		}
	}
	if failed != 2 {
		t.Errorf("%d trials of vxlan failed, want 2: it is given up then", failed)
	}
	for _, d := range run.Deltas {
		if d.Network == "vxlan" {
			t.Errorf("there is a delta of %s", d.Cell)
		}
	}
}
