package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/kubetest"
)

// TestLocate finds endpoints by the names and addresses that they have.
func TestLocate(t *testing.T) {
	yes, no, w1, w2, hostname := true, false, "w1", "w2", "db-0"
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	}
	c := &Cluster{Name: "test", Namespace: "own", API: kubetest.API(t,
		&corev1.Service{ObjectMeta: named("web")}, &corev1.Service{ObjectMeta: named("db")}, &corev1.Service{ObjectMeta: named("idle")},
		&corev1.Service{ObjectMeta: named("away"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"}},
		&discoveryv1.EndpointSlice{ObjectMeta: named("web"), Endpoints: []discoveryv1.Endpoint{{NodeName: &w1}, {NodeName: &w2, Conditions: discoveryv1.EndpointConditions{Ready: &no}}}},
		&discoveryv1.EndpointSlice{ObjectMeta: named("db"), Endpoints: []discoveryv1.Endpoint{{NodeName: &w1, Hostname: &hostname}, {NodeName: &w2, Conditions: discoveryv1.EndpointConditions{Ready: &yes}}}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w2"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Address: "10.0.0.2"}}}},
	)}
	for host, want := range map[string]string{
		"web.shop.svc": "w1", "web.shop": "w1", "web.shop.svc.cluster.local": "w1", "db.shop.svc": "w1,w2", "db-0.db.shop.svc": "w1", "10.0.0.2": "w2",
	} {
		got, err := c.locate(t.Context(), host)
		if err != nil || strings.Join(got.nodes, ",") != want {
			t.Errorf("%s: got %+v, %v", host, got, err)
		}
	}
	for host, want := range map[string]string{
		"away.shop.svc": "leads out of the cluster", "www.example.com": "does not name a service", "example.com": "there is no service example in namespace com",
	} {
		if got, err := c.locate(t.Context(), host); err != nil || !strings.Contains(got.unknown, want) {
			t.Errorf("%s: got %+v, %v", host, got, err)
		}
	}
	for host, want := range map[string]string{
		"wep.shop.svc": `did you mean "web"?`, "web": `no service "web" in namespace "own"`, "idle.shop.svc": "has no endpoint that is ready", "db-9.db.shop.svc": `by the name of pod "db-9"`,
	} {
		if _, err := c.locate(t.Context(), host); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

// TestMoved: another pod in the place of one is another server, and so is one whose program was started again.
func TestMoved(t *testing.T) {
	at := func(all ...server) located { return located{servers: all} }
	starved := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "db", RestartCount: 2, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}},
	}}}}
	one, two := server{"db-0", "w1", "a", ""}, server{"db-1", "w2", "b", "db ended with Error and was started again, 1 times in all"}
	for want, now := range map[string]located{
		"":                                    at(one, two),
		"pod db-1 on node w2 no longer serve": at(one),
		"pod db-2 on node w3 has begun":       at(one, two, server{"db-2", "w3", "c", ""}),
		"it was moved: pod db-1 on node w2 served it first, and pod db-1 on node w3 in the end": at(one, server{"db-1", "w3", "d", ""}),
		"it was moved: pod db-1 on node w2 served it first, and pod db-1 on node w2 in the end": at(one, server{"db-1", "w2", "e", ""}),
		"pod db-1 on node w2 is there still, but db ended with OOMKilled":                       at(one, server{"db-1", "w2", "b", again(starved)}),
	} {
		if got := at(one, two).moved(now); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestPossibleFor: only where the client stands can be chosen.
func TestPossibleFor(t *testing.T) {
	for _, spec := range []testbed.Spec{{Network: Host}, {Network: Pod}, {Network: Pod, Conditions: result.Conditions{From: result.FromNode}}} {
		spec.Target = "web"
		if err := possible(spec); err != nil {
			t.Errorf("%+v: %v", spec, err)
		}
	}
	for _, spec := range []testbed.Spec{{Network: ClusterIP}, {Network: "multus:a/b"}, {Network: Pod, PodsOutlive: true}, {Network: Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes}}} {
		spec.Target = "web"
		if err := possible(spec); err == nil || !strings.Contains(err.Error(), "target") {
			t.Errorf("%+v: got %v", spec, err)
		}
	}
}
