package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/testbed"
	"netdelta/testbed/kube/inside"
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

// Lacking is testbed.Capabilities.Lacking: it looks into a pod of the run's image, which it makes for the purpose. What was found once is
// taken to hold for the run.
func (d *Driver) Lacking(ctx context.Context, names []string) ([]string, error) {
	d.equipping.Lock()
	defer d.equipping.Unlock()
	if !slices.ContainsFunc(names, func(n string) bool { _, known := d.equipped[n]; return !known }) {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return d.equipped[n] }), nil
	}
	found, err := d.look(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("look which programs there are in the pods' image: %w", err)
	}
	for _, n := range names {
		d.equipped[n] = !slices.Contains(found, n)
	}
	return found, nil
}

// look makes a pod and looks there for programs.
func (d *Driver) look(ctx context.Context, names []string) (lacking []string, err error) {
	if err := d.lease.hold(ctx); err != nil {
		return nil, err
	}
	pod, err := d.launcher.Launch(ctx, Wish{Name: "look", Role: RoleServer})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, pod.Delete()) }()
	found, err := ask[inside.Lacks](ctx, d.cluster, pod.place, inside.Lacking, names)
	if err == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	return found.Names, err
}
