package kube

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/kubetest"
	"netdelta/unit"
)

// TestVolumeManifests: what is asked of the cluster for a volume, and the pod that has it.
func TestVolumeManifests(t *testing.T) {
	volume := testbed.Volume{Class: "fast", Size: 256 * unit.MiB}
	goldenYAML(t, "claim", claimManifest("measured", testRun.Name("t0-volume"), testRun, volume))
	goldenYAML(t, "pod-volume", launcherWith(t, Options{}).Manifest(Wish{Name: "t0-p0", Role: RoleClient, Node: "w1", Claim: testRun.Name("t0-volume")}))
	for size, want := range map[unit.Bytes]string{16 * unit.MiB: "1Gi", 512 * unit.MiB: "1Gi", 513 * unit.MiB: "2Gi", 16 * unit.GiB: "17Gi"} {
		volume.Size = size
		got := claimManifest("measured", "x", testRun, volume).Spec.Resources.Requests[corev1.ResourceStorage]
		if got.String() != want {
			t.Errorf("a file of %v takes a volume of %s, want %s", size, got.String(), want)
		}
	}
}

// Clients in several pods have a volume each, and none is served by another; on a cluster with too few nodes that is unsupported.
func TestVolumesOfClients(t *testing.T) {
	spec := testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: Pod, Volume: testbed.Volume{Class: "fast", Size: unit.MiB, Clients: 2}}
	bed := peersOf(launcherWith(t, Options{}), spec, "w1", "w2")
	claims := map[string]bool{}
	for _, p := range bed.pods {
		p.claim = newClaim(p)
		w := p.wish()
		if claims[w.Claim] = true; w.Role != RoleClient || w.Claim == "" || p.claim.manifest().Name != w.Claim {
			t.Errorf("pod %d is a %s with claim %q", p.index, w.Role, w.Claim)
		}
	}
	if len(claims) != 2 {
		t.Errorf("the claims are %v", claims)
	}
	bed.driver.cluster.API = kubetest.API(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	if err := bed.driver.claimable(t.Context(), spec); !errors.Is(err, testbed.ErrUnsupported) || !strings.Contains(err.Error(), "2 nodes") || !strings.Contains(err.Error(), " are 1;") {
		t.Errorf("a cluster of one node: %v", err)
	}
}

// TestStored says what is known of a class, and which there are in place of one that is not.
func TestStored(t *testing.T) {
	named := func(name, provisioner string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner}
	}
	d := &Driver{cluster: &Cluster{Name: "test", API: kubetest.API(t, named("fast", "rbd.csi.example"), named("local", noProvisioner))}}
	for class, want := range map[string]string{"fast": "made by rbd.csi.example", "local": "were made beforehand"} {
		if says, err := d.Stored(t.Context(), testbed.Volume{Class: class}); err != nil || len(says) != 2 || says[0] != mountedByNodes || !strings.Contains(says[1], want) {
			t.Errorf("%s: %q, %v", class, says, err)
		}
	}
	if _, err := d.Stored(t.Context(), testbed.Volume{Class: "fest"}); err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), "fast, local") {
		t.Errorf("a class that is not there: %v", err)
	}
	d.cluster.API = kubetest.API(t)
	if _, err := d.Stored(t.Context(), testbed.Volume{Class: "fast"}); err == nil || !strings.Contains(err.Error(), "no StorageClass at all") {
		t.Errorf("without any: %v", err)
	}
}

// TestStorable: only where the client stands can be chosen.
func TestStorable(t *testing.T) {
	for _, spec := range []testbed.Spec{{Network: Host}, {Network: Pod}, {Network: Pod, Conditions: result.Conditions{From: result.FromNode}}} {
		spec.Volume.Class = "fast"
		if err := possible(spec); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	for _, spec := range []testbed.Spec{{Network: ClusterIP}, {Network: "multus:a/b"}, {Network: Pod, PodsOutlive: true}, {Network: Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes}}} {
		spec.Volume.Class = "fast"
		if err := possible(spec); err == nil || !strings.Contains(err.Error(), "storage class") {
			t.Errorf("%+v: got %v", spec, err)
		}
	}
}

// TestAboutVolume says where a volume is, and what becomes of it.
func TestAboutVolume(t *testing.T) {
	at := func(key string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{"w1"}}},
		}}}}
	}
	for _, c := range []struct {
		want string
		spec corev1.PersistentVolumeSpec
	}{
		{"a volume of the CSI driver rbd.csi.example with ext4; its cluster does not say where its blocks are", corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "rbd.csi.example", FSType: "ext4"}},
		}},
		{"a folder or disk of the node that mounts it; only node w1 can mount it; the cluster keeps it", corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}}, NodeAffinity: at(corev1.LabelHostname),
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		}},
		{"NFS of filer; its cluster does not say", corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "filer"}}, NodeAffinity: at(corev1.LabelTopologyZone),
		}},
	} {
		if got := aboutVolume(&corev1.PersistentVolume{Spec: c.spec}); !strings.HasPrefix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestPending: why a claim has no volume is told in the cluster's words, and given up where they are hopeless.
func TestPending(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "measured", Name: "c"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "measured", Name: "p"}}
	pod.Spec.SecurityContext, pod.Spec.Containers = &corev1.PodSecurityContext{}, make([]corev1.Container, 1)
	mountClaim(&pod.Spec, "c")
	said := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "measured", Name: "e"}, Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed", Message: "no pool"}
	said.InvolvedObject = corev1.ObjectReference{Kind: "PersistentVolumeClaim", Name: "c"}
	c := &Cluster{Namespace: "measured", API: kubetest.API(t, claim, said)}
	ask := func(waited time.Duration, vain bool, want string) {
		t.Helper()
		hopeless, why := c.pending(t.Context(), pod, waited)
		if hopeless != vain || want == "" && why != nil || want != "" && (why == nil || !strings.Contains(why.Error(), want)) {
			t.Errorf("after %v: %v, %v, want %v, %q", waited, hopeless, why, vain, want)
		}
	}
	ask(claimWithin/2, false, "no pool")
	ask(2*claimWithin, true, "no pool")
	// What the scheduler waits for is only worth telling where it is not the claim itself.
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "pod has " + unboundYet}}
	ask(unscheduledWithin+time.Second, false, "no pool")
	pod.Status.Conditions[0].Message = "node(s) didn't find available persistent volumes to bind"
	ask(unscheduledWithin/2, false, "the scheduler says: node(s) didn't find")
	ask(unscheduledWithin+time.Second, true, "--nodes")
	claim.Status.Phase = corev1.ClaimLost
	c.API = kubetest.API(t, claim)
	ask(0, true, "has lost its volume")
	claim.Status.Phase = corev1.ClaimBound
	c.API = kubetest.API(t, claim)
	ask(claimWithin*2, false, "")
	c.API = kubetest.API(t)
	ask(0, true, "deleted by somebody else")
}
