package kube

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/testbed"
	"netdelta/testbed/kube/kubetest"
)

// node is one that takes pods, unless it is changed.
func node(name, zone string, change ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, f := range change {
		f(&n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
}
func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }
func unready(n *corev1.Node)  { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
func windows(n *corev1.Node)  { n.Labels[corev1.LabelOSStable] = "windows" }

func TestCandidates(t *testing.T) {
	nodes := []corev1.Node{
		node("w3", "b"), node("w1", "a"), node("cp", "a", tainted), node("w2", "a"), node("w4", "c", cordoned), node("w5", "c", unready), node("w6", "c", windows),
	}
	for _, c := range []struct {
		o       Options
		able    string
		refused string
	}{
		{Options{}, "w1 w2 w3", "cp: tainted node-role.kubernetes.io/control-plane; w4: cordoned; w5: not ready; w6: runs windows"},
		{Options{Nodes: []string{"w3", "w1"}}, "w3 w1", ""},
		{Options{Nodes: []string{"w1", "w9", "w4"}}, "w1", "w9: there is no such node; w4: cordoned"},
		{Options{Zones: []string{"b", "a"}}, "w3 w1", "cp: tainted node-role.kubernetes.io/control-plane"},
	} {
		able, refused := candidates(slices.Clone(nodes), c.o)
		if got := strings.Join(able, " "); got != c.able {
			t.Errorf("%+v: got %q", c.o, got)
		}
		if got := strings.Join(refused, "; "); got != c.refused {
			t.Errorf("%+v: refused %q", c.o, got)
		}
	}
}

// TestChoose: all testbeds of a run take the same nodes, as long as these take pods.
func TestChoose(t *testing.T) {
	w1, w2, w3 := node("w1", ""), node("w2", ""), node("w3", "")
	d := &Driver{cluster: &Cluster{API: kubetest.API(t, &w1, &w2, &w3)}, launcher: launcherWith(t, Options{})}
	for range 2 {
		if got, err := d.Choose(t.Context(), 2); err != nil || !slices.Equal(got, []string{"w1", "w2"}) {
			t.Errorf("got %v, %v", got, err)
		}
	}
	unready(&w1)
	if _, err := d.cluster.API.Nodes.Update(t.Context(), &w1, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Choose(t.Context(), 2); err != nil || !slices.Equal(got, []string{"w2", "w3"}) {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := d.Choose(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "w1: not ready") || !strings.Contains(err.Error(), "same-node") {
		t.Errorf("three of two nodes: %v", err)
	}
}

// Nodes that are named and take no pods are refused by their names before anything is measured, and placements for which there are too few.
func TestNodesAreRefusedByName(t *testing.T) {
	cp, w1, w2 := node("cp", "", tainted), node("w1", ""), node("w2", "", unready)
	for name, c := range map[string]struct {
		o             Options
		named, across string // parts of the errors
	}{
		"any":       {Options{}, "", "of which there are 1 (cp: tainted node-role.kubernetes.io/control-plane; w2: not ready)"},
		"no node":   {Options{Nodes: []string{"w1", "w9"}}, "w9: there is no such node; those that take pods are w1", "w9: there is no such node"},
		"not ready": {Options{Nodes: []string{"w2"}}, "w2: not ready", "w2: not ready"},
		"tainted":   {Options{Nodes: []string{"cp", "w1"}}, "--tolerate", "--tolerate"},
		"tolerated": {Options{Nodes: []string{"cp", "w1"}, PodSpec: PodSpec{Tolerate: []string{"node-role.kubernetes.io/control-plane"}}}, "", ""},
	} {
		d := &Driver{cluster: &Cluster{API: kubetest.API(t, &cp, &w1, &w2)}, launcher: launcherWith(t, c.o)}
		for what, got := range map[string]struct {
			err  error
			says string
		}{"named": {d.CheckNodes(t.Context()), c.named}, "across": {d.Places(t.Context(), 2), c.across}} {
			if (got.err != nil) != (got.says != "") || got.err != nil && !strings.Contains(got.err.Error(), got.says) {
				t.Errorf("%s, %s: got %v, want %q", name, what, got.err, got.says)
			}
		}
		if err := d.Places(t.Context(), 2); err != nil && !errors.Is(err, testbed.ErrUnsupported) {
			t.Errorf("%s: %v is no lack of the cluster", name, err)
		}
	}
}

// TestSlots: pods that share their nodes' ports have ranges that no other run shows, each in its turn.
func TestSlots(t *testing.T) {
	l := launcherWith(t, Options{Ports: 9})
	other := podWith(corev1.PodStatus{})
	other.Labels = RunID("ffffffff").Labels(RoleServer)
	d := &Driver{cluster: l.cluster, launcher: l, slots: map[int]bool{}}
	start := int(uint64(0x0a1b2c3d) % uint64(d.slotCount()))
	first := uint16(firstHostPort + start*10)
	other.Annotations = map[string]string{annotationPorts: portsText(first, first+9)}
	foreign := other.DeepCopy()
	foreign.Namespace = "another"
	foreign.Annotations = map[string]string{annotationPorts: portsText(first+10, first+19)}
	api := kubetest.NewServer(other, foreign)
	l.cluster.API = api.API(t)
	take := func() int {
		t.Helper()
		slot, err := d.takeSlot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slot
	}
	got := map[int]bool{}
	for range 3 {
		slot := take()
		if got[slot] || slot == start || slot == start+1 {
			t.Errorf("slot %d is taken", slot)
		}
		got[slot] = true
	}
	// Who may not look into other namespaces looks into his own.
	api.Refuse = func(_, _, namespace string) error {
		if namespace == "" {
			return apierrors.NewForbidden(corev1.Resource("pods"), "", nil)
		}
		return nil
	}
	if slot := take(); slot != start+1 {
		t.Errorf("slot %d, want the one that a run in another namespace has", slot)
	}
	for _, text := range []string{"", "21000", "21000-", "1-2", "21000-99999", "21010-21000", "x-y"} {
		if first, last, ok := portRange(text); ok {
			t.Errorf("%q: got %d to %d", text, first, last)
		}
	}
}
