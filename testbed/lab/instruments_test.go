package lab_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// A lab shows all that there is to see: what a run records of it is found by these alone.
func TestLabShowsAll(t *testing.T) {
	require.Namespaces(t)
	tb, err := lab.NewDriver(network.Catalogue()).Open(t.Context(), testbed.Spec{Nodes: 1, PodsPerNode: 1, Network: "host"})
	if err != nil {
		t.Fatal(err)
	}
	shows := tb.Instruments()
	if shows.Observer == nil || shows.Within == nil || shows.Carriers == nil || shows.Versions == nil || shows.Notes == nil {
		t.Errorf("a lab shows %+v", shows)
	}
	if err := tb.Close(); err != nil {
		t.Error(err)
	}
}
