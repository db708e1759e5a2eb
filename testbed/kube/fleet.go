package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
)

// Fleet is pods that Indexed Jobs have made: any number of them at the cost of two requests. Close is idempotent.
type Fleet struct {
	driver           *Driver
	launcher         *Launcher
	number           int // tells the fleets and testbeds of a run apart
	slot             int // its range of ports on the nodes, -1 for none
	spec             testbed.FleetSpec
	clients, servers []testbed.Pod
	missing          map[string]string
	front            *front
	closed           bool
}

// OpenFleet makes the pods, spread over the nodes, and waits until they are up. Pods that do not come up are named in Missing; it
// is an error when no client or no server does, and then nothing is left of the fleet.
func (d *Driver) OpenFleet(ctx context.Context, s testbed.FleetSpec) (testbed.Fleet, error) {
	if s.Network != Host && s.Network != Pod && s.Network != ClusterIP && s.Network != NodePort {
		return nil, &testbed.UnsupportedError{
			Feature: "a fleet in network " + s.Network, Need: "pods that a Job can make alike", Fix: fmt.Sprintf("take %s, %s, %s or %s", Host, Pod, ClusterIP, NodePort),
		}
	}
	s.Family = cmp.Or(s.Family, result.IPv4)
	if err := d.lease.hold(ctx); err != nil {
		return nil, err
	}
	d.mu.Lock()
	f := &Fleet{driver: d, launcher: d.launcher, number: d.opened, slot: -1, spec: s, missing: map[string]string{}}
	d.opened++
	d.mu.Unlock()
	if err := f.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("network %s: %w", s.Network, err), f.Close())
	}
	return f, nil
}

func (f *Fleet) open(ctx context.Context) (err error) {
	if f.spec.Network == Host {
		if f.slot, err = f.driver.takeSlot(ctx); err != nil {
			return err
		}
	}
	for _, w := range []struct {
		role  Role
		count int
	}{{RoleServer, f.spec.Servers}, {RoleClient, f.spec.Clients}} {
		job := f.manifest(w.role, w.count)
		if _, err := create(ctx, f.launcher.cluster.API.Jobs(job.Namespace), "job", job); err != nil {
			return err
		}
	}
	if err := f.gather(ctx); err != nil {
		return err
	}
	if f.spec.Network != ClusterIP && f.spec.Network != NodePort {
		return nil
	}
	first, last := f.servers[0].Ports()
	service := serviceManifest(f.launcher.cluster.Namespace, f.name("front"), f.spec.Network, f.spec.Family, f.launcher.Run(), f.labels(RoleServer), first, last)
	f.front, err = f.launcher.cluster.makeService(ctx, service, addressIn(f.servers[0], f.spec.Family), f.launcher.options.Within)
	return err
}

// fleetPod is a pod of a fleet. Until the first program is started in it, an idle one keeps it up.
type fleetPod struct {
	*LivePod
	keeper testbed.Process
}

// Start implements testbed.Pod.
func (p *fleetPod) Start(ctx context.Context, cmd testbed.Command) (testbed.Process, error) {
	started, err := p.LivePod.Start(ctx, cmd)
	if err == nil {
		_ = p.keeper.Close() // how it ends is no matter
	}
	return started, err
}

// addressIn is a pod's address of a version of IP.
func addressIn(p testbed.Pod, family result.Family) netip.Addr {
	if live, is := p.(*fleetPod); is {
		return live.AddressOf(family)
	}
	return p.Address()
}

func (f *Fleet) name(rest string) string {
	return f.launcher.Run().Name("fleet" + strconv.Itoa(f.number) + "-" + rest)
}

// labels select the pods of a role, and no others.
func (f *Fleet) labels(role Role) map[string]string {
	all := f.launcher.Run().Labels(role)
	all[LabelTestbed] = "fleet" + strconv.Itoa(f.number)
	return all
}

// manifest is the Job of a role's pods. A pod that fails is not made again: its index fails, and the others go on.
func (f *Fleet) manifest(role Role, count int) *batchv1.Job {
	w := Wish{Name: "fleet", Role: role, HostNetwork: f.spec.Network == Host}
	if w.HostNetwork {
		first, last := f.launcher.hostPorts(f.slot)
		w.Annotations = map[string]string{annotationPorts: portsText(first, last)}
	}
	pod := f.launcher.Manifest(w)
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector: &metav1.LabelSelector{MatchLabels: f.labels(role)},
	}}
	pod.Spec.Affinity = onNodes(f.launcher.options.Nodes...)
	maps.Copy(pod.Labels, f.labels(role))
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: f.name(string(role)), Namespace: pod.Namespace, Labels: f.labels(role)},
		Spec: batchv1.JobSpec{
			Completions: new(int32(count)), Parallelism: new(min(int32(count), fleetWave)), CompletionMode: new(batchv1.IndexedCompletion),
			BackoffLimitPerIndex: new(int32(0)), MaxFailedIndexes: new(int32(count)), TTLSecondsAfterFinished: new(int32(60)),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels, Annotations: pod.Annotations}, Spec: pod.Spec},
		},
	}
}

// Clients are the pods of clients.
func (f *Fleet) Clients() []testbed.Pod { return f.clients }

// Servers are the pods of servers.
func (f *Fleet) Servers() []testbed.Pod { return f.servers }

// Missing says why pods that were asked for never came up, by their names; one that the Job could not even make is named by the
// Job and its number.
func (f *Fleet) Missing() map[string]string { return f.missing }

// Endpoint is the address at which a client reaches a server's port: of a service it is the service's, whichever server answers.
func (f *Fleet) Endpoint(_, to testbed.Pod, port uint16) netip.AddrPort {
	switch f.spec.Network {
	case ClusterIP:
		return netip.AddrPortFrom(f.front.address, port)
	case NodePort:
		if live, is := to.(*fleetPod); is {
			return netip.AddrPortFrom(live.HostAddress(f.spec.Family), f.front.ports[port])
		}
	}
	return netip.AddrPortFrom(addressIn(to, f.spec.Family), port)
}

// Close removes the Jobs, their pods and the service, and waits until the pods are gone.
func (f *Fleet) Close() error {
	if f.closed {
		return nil
	}
	c := f.launcher.cluster
	errs := gather.Each([]Role{RoleClient, RoleServer}, func(role Role) error { return remove(c.API.Jobs(c.Namespace), "job", f.name(string(role))) })
	if err := errors.Join(append(errs, remove(c.API.Services(c.Namespace), "service", f.name("front")))...); err != nil {
		return fmt.Errorf("remove the fleet of network %s: %w; netdelta cleanup --testbed kubernetes removes it later", f.spec.Network, err)
	}
	f.closed = true
	if f.slot >= 0 {
		f.driver.giveBack(f.slot)
	}
	ctx, cancel := context.WithTimeout(context.Background(), deleteWithin)
	defer cancel()
	left := 0
	for range Polling(ctx, apiPause) {
		pods, err := f.pods(ctx)
		if err == nil && len(pods) == 0 {
			return nil
		}
		left = len(pods)
	}
	return fmt.Errorf("remove the fleet of network %s: %d pods are still there after %s; netdelta cleanup --testbed kubernetes removes them later",
		f.spec.Network, left, deleteWithin)
}

// pods are the fleet's, of both roles.
func (f *Fleet) pods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := f.launcher.cluster.API.Pods(f.launcher.cluster.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: f.launcher.Run().Selector() + "," + LabelTestbed + "=fleet" + strconv.Itoa(f.number),
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
