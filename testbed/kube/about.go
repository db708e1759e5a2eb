package kube

import (
	"time"

	"netdelta/testbed"
)

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{
		Networks: Networks(), Lacking: d.Lacking, Stored: d.Stored,
		// Pods are scheduled and started, once for several builds, and each exchange with an agent goes through the cluster's own server.
		Costs: &testbed.Costs{
			Start: 9 * time.Second, Build: 2 * time.Second, Cell: 30 * time.Millisecond, Exchange: 4 * time.Millisecond,
			Opens: 16, Ground: "the cluster",
		},
		Targets: &testbed.Targets{Locate: d.Locate, From: Pod},
		Usual:   []string{Host, Pod, ClusterIP}, Nodes: d.Able, Fleet: d.OpenFleet, Policies: d.OpenPolicyTarget,
	}
}
