package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Capabilities implements testbed.Provider.
func (d *Driver) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{
		Networks: Networks(), Lacking: d.Lacking, Stored: d.Stored,
		// Pods are scheduled and started, and each exchange with an agent goes through the cluster's own server.
		Costs: &testbed.Costs{
			Start: 3 * time.Second, Build: 6 * time.Second, Cell: 30 * time.Millisecond, Exchange: 4 * time.Millisecond,
			Opens: 16, Ground: "the cluster",
		},
		Describe: func(ctx context.Context, e result.Environment) (result.Environment, []string, error) {
			about, notes, err := d.Cluster(ctx)
			e.Cluster = &about
			return e, notes, err
		},
		Targets: &testbed.Targets{Locate: d.Locate, From: Pod},
	}
}

// usualNodes is how many nodes a run takes: the client's, and one across.
const usualNodes = 2

// Cluster describes the cluster without looking into a pod. What joins the pods is for others to find out.
func (d *Driver) Cluster(ctx context.Context) (about result.Cluster, notes []string, err error) {
	about.Name = d.cluster.Name
	version, err := d.cluster.API.Version(ctx)
	if err != nil {
		return about, nil, fmt.Errorf("ask cluster %s for its version: %w", d.cluster.Name, mendable(err))
	}
	about.Version = version.GitVersion
	names, err := d.choose(ctx, usualNodes)
	if err != nil {
		if names, err = d.choose(ctx, 1); err != nil {
			return about, nil, err
		}
	}
	for _, name := range names {
		n, err := d.cluster.API.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			about.Nodes = append(about.Nodes, result.ClusterNode{Name: name})
			notes = append(notes, fmt.Sprintf("kernel and size of node %s are not known: %v", name, mendable(err)))
		case err != nil:
			return about, notes, fmt.Errorf("look at node %s: %w", name, err)
		default:
			about.Nodes = append(about.Nodes, aboutNode(n))
		}
	}
	return about, notes, nil
}

// aboutNode is what a node says of itself.
func aboutNode(n *corev1.Node) result.ClusterNode {
	i := n.Status.NodeInfo
	return result.ClusterNode{
		Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Kernel: i.KernelVersion, Arch: i.Architecture, OS: i.OSImage,
		Kubelet: i.KubeletVersion, Runtime: i.ContainerRuntimeVersion,
		CPU: result.CPU{Count: int(n.Status.Capacity.Cpu().Value())}, Memory: unit.Bytes(n.Status.Capacity.Memory().Value()),
	}
}
