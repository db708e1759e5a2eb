package lab_test

import (
	"errors"
	"strings"
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// TestNoCardsUnasked: no network card of a machine is taken unless it is named, and one that is no card with virtual functions is
// none either. The error says where there are some.
func TestNoCardsUnasked(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	for _, named := range []string{"", "lo", "nothing,at-all"} {
		t.Setenv(lab.CardsVariable, named)
		err := driver.Supports(t.Context(), testbed.Spec{Network: "sriov"})
		var lacks *testbed.UnsupportedError
		if !errors.As(err, &lacks) || !lacks.InGuest || !strings.Contains(err.Error(), "--testbed vm") || !strings.Contains(lacks.Fix, lab.CardsVariable) {
			t.Errorf("with %q: got error %v", named, err)
		}
		if _, err := driver.Open(t.Context(), testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "sriov"}); !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("with %q: opened: %v", named, err)
		}
	}
}
