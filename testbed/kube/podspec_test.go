package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// What a cluster asks of pods is read, refused with what is wrong, and given to all of them.
func TestPodSpec(t *testing.T) {
	for text, want := range map[string]string{
		"gpu": "", "gpu=a100": "", "gpu:NoSchedule": "", "*": "", "example.com/gpu=a:NoExecute": "",
		"gpu:NoShedule": `did you mean "NoSchedule"`, "": "need KEY", "=x": "need KEY", "a b": "need KEY",
	} {
		_, err := toleration(text)
		if got := err != nil; got != (want != "") || got && !strings.Contains(err.Error(), want) {
			t.Errorf("taint %q: got %v, want %q", text, err, want)
		}
	}
	for name, c := range map[string]struct {
		s    PodSpec
		says string
	}{
		"no value":  {PodSpec{Labels: []string{"team"}}, "KEY=VALUE"},
		"own label": {PodSpec{Labels: []string{"netdelta.dev/run=x"}}, "netdelta sets it itself"},
		"no label":  {PodSpec{Labels: []string{"a b=c"}}, `"a b=c"`},
		"secret":    {PodSpec{PullSecrets: []string{"My_Secret"}}, `pull secret "My_Secret"`},
		"account":   {PodSpec{ServiceAccount: "A"}, `service account "A"`},
	} {
		if _, err := NewLauncher(&Cluster{}, Options{Image: "a", PodSpec: c.s}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	l := launcherWith(t, Options{PodSpec: PodSpec{Tolerate: []string{"gpu=a100:NoSchedule", "spot"}, PullSecrets: []string{"registry"}, ServiceAccount: "bench", Labels: []string{"team=net"}}})
	pod := l.Manifest(Wish{Name: "p", Role: RoleServer})
	if pod.Labels["team"] != "net" || pod.Labels[LabelManagedBy] != ManagedBy || pod.Spec.ServiceAccountName != "bench" || len(pod.Spec.Tolerations) != 2 ||
		len(pod.Spec.ImagePullSecrets) != 1 || pod.Spec.ImagePullSecrets[0].Name != "registry" {
		t.Errorf("the pod has labels %v and is %+v", pod.Labels, pod.Spec)
	}
	for _, c := range []struct {
		taint corev1.Taint
		out   bool
	}{
		{corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoSchedule}, false},
		{corev1.Taint{Key: "gpu", Value: "h100", Effect: corev1.TaintEffectNoSchedule}, true},
		{corev1.Taint{Key: "gpu", Value: "a100", Effect: corev1.TaintEffectNoExecute}, true},
		{corev1.Taint{Key: "spot", Value: "true", Effect: corev1.TaintEffectNoExecute}, false},
		{corev1.Taint{Key: "other", Effect: corev1.TaintEffectPreferNoSchedule}, false},
	} {
		if got := l.KeptOut(c.taint); got != c.out {
			t.Errorf("%+v keeps pods out: %v", c.taint, got)
		}
	}
}
