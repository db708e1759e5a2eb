package lab_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/network/networktest"
	"netdelta/testbed/lab"
)

func TestNetworks(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	for _, n := range network.Catalogue() {
		networktest.Run(t, driver, n)
	}
}
