package kube

import (
	"testing"

	"netdelta/testbed/testbedtest"
)

// TestBasicConformanceOnCluster: testbeds of a cluster pass the suite of all testbeds, but for links, which are the cluster's own. Pods keep their
// addresses through swaps: a Service comes in front of them, or goes.
func TestBasicConformanceOnCluster(t *testing.T) {
	t.Parallel()
	testbedtest.Run(t, testbedtest.Suite{
		Driver: newDriver(t, connect(t, "restricted"), Options{Ports: 4}), Networks: []string{Pod, ClusterIP, NodePort, Headless},
		ReachByPod: func(string) bool { return true }, Found: true,
	})
}
