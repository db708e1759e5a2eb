package kube

import (
	"testing"

	"netdelta/testbed"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// The Job of a fleet loses the index of a pod that fails and no other, and its pods are as restricted as all are.
func TestFleetManifest(t *testing.T) {
	l, err := NewLauncher(&Cluster{Namespace: "here"}, Options{Run: "0a1b2c3d", Image: "example/netdelta", Nodes: []string{"w1", "w2"}})
	if err != nil {
		t.Fatal(err)
	}
	f := &Fleet{launcher: l, number: 3, slot: 2, spec: testbed.FleetSpec{Network: Host, Clients: 20, Servers: 4}}
	job := f.manifest(RoleClient, 20)
	s := job.Spec
	if job.Name != "netdelta-0a1b2c3d-fleet3-client" || job.Namespace != "here" || job.Labels[LabelManagedBy] != ManagedBy || job.Labels[LabelRun] != "0a1b2c3d" {
		t.Errorf("the job is %s/%s, %v", job.Namespace, job.Name, job.Labels)
	}
	if *s.Completions != 20 || *s.Parallelism != fleetWave || *s.CompletionMode != batchv1.IndexedCompletion || *s.BackoffLimitPerIndex != 0 || *s.MaxFailedIndexes != 20 {
		t.Errorf("the job's spec is %+v", s)
	}
	pod := s.Template
	if pod.Labels[LabelRole] != string(RoleClient) || pod.Labels[LabelTestbed] != "fleet3" || pod.Annotations[annotationPorts] != "21082-21121" {
		t.Errorf("the pods' labels are %v, annotations %v", pod.Labels, pod.Annotations)
	}
	if !pod.Spec.HostNetwork || pod.Spec.RestartPolicy != corev1.RestartPolicyNever || *pod.Spec.AutomountServiceAccountToken ||
		!*pod.Spec.SecurityContext.RunAsNonRoot || pod.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels[LabelTestbed] != "fleet3" {
		t.Errorf("the pods' spec is %+v", pod.Spec)
	}
	if terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms; len(terms) != 2 {
		t.Errorf("the pods may be on %+v", terms)
	}
	// Servers in one namespace of a node have ports of their own.
	last := uint16(0)
	for range 4 {
		p := &LivePod{}
		f.place(p)
		f.servers = append(f.servers, &fleetPod{LivePod: p})
		if p.first <= last || p.last < p.first || p.last > 21121 {
			t.Errorf("ports %d to %d after %d", p.first, p.last, last)
		}
		last = p.last
	}
}
