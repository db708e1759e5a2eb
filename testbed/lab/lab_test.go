package lab_test

import (
	"testing"

	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/testbed/lab"
	"netdelta/testbed/testbedtest"
)

func TestTestbed(t *testing.T) {
	require.Namespaces(t)
	driver := lab.NewDriver(network.Catalogue())
	suite := testbedtest.Suite{Driver: driver, ReachByPod: func(name string) bool {
		n, err := network.Find(network.Catalogue(), name)
		return err == nil && n.Reach == network.ByPod
	}}
	for _, n := range network.Catalogue() {
		if driver.Supports(t.Context(), n.Name) == nil {
			suite.Networks = append(suite.Networks, n.Name)
		}
	}
	testbedtest.Run(t, suite)
}
