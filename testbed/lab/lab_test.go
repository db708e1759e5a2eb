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
	suite := testbedtest.Suite{Driver: lab.NewDriver(network.Catalogue()), ReachByPod: func(name string) bool {
		n, err := network.Find(network.Catalogue(), name)
		return err == nil && n.Reach == network.ByPod
	}}
	for _, n := range network.Catalogue() {
		suite.Networks = append(suite.Networks, n.Name)
	}
	testbedtest.Run(t, suite)
}
