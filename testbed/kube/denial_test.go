package kube

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"netdelta/testbed/kube/kubetest"
)

// policy reads the spec of a NetworkPolicy.
func policy(t *testing.T, name, spec string) *networkingv1.NetworkPolicy {
	t.Helper()
	p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "measured"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &p.Spec); err != nil {
		t.Fatal(err)
	}
	return p
}

// Policies that keep a client from a server are named, and no others.
func TestDenials(t *testing.T) {
	const deny = "{podSelector: {}, policyTypes: [Ingress, Egress]}"
	for name, c := range map[string]struct {
		specs map[string]string
		want  string
	}{
		"none":    {nil, ""},
		"all":     {map[string]string{"default-deny": deny}, "default-deny in namespace measured (ingress); default-deny in namespace measured (egress)"},
		"others":  {map[string]string{"web": "{podSelector: {matchLabels: {app: web}}}"}, ""},
		"usual":   {map[string]string{"default-deny": "{podSelector: {}}"}, "default-deny in namespace measured (ingress)"},
		"egress":  {map[string]string{"out": "{podSelector: {}, egress: [{ports: [{port: 53, protocol: UDP}]}], policyTypes: [Egress]}"}, "out in namespace measured (egress)"},
		"allowed": {map[string]string{"default-deny": "{podSelector: {}}", "allow": "{podSelector: {}, ingress: [{}]}"}, ""},
		"by others": {
			map[string]string{"b": "{podSelector: {}}", "a": "{podSelector: {}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}"},
			"a, b in namespace measured (ingress)",
		},
		"own namespace": {map[string]string{"a": "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {team: net}}}]}]}"}, ""},
		"another namespace": {
			map[string]string{"a": "{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}}]}]}"},
			"a in namespace measured (ingress)",
		},
		"addresses":        {map[string]string{"a": "{podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.0/8}}]}]}"}, ""},
		"ports":            {map[string]string{"a": "{podSelector: {}, ingress: [{ports: [{port: 1024, endPort: 65535}]}]}"}, ""},
		"ports of others":  {map[string]string{"a": "{podSelector: {}, ingress: [{ports: [{port: 80}, {port: http}]}]}"}, "a in namespace measured (ingress)"},
		"clients selected": {map[string]string{"a": "{podSelector: {matchLabels: {netdelta.dev/role: client}}}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "measured", Labels: map[string]string{"team": "net"}}}}
			for name, spec := range c.specs {
				objects = append(objects, policy(t, name, spec))
			}
			l := launcherWith(t, Options{})
			l.cluster.API = kubetest.API(t, objects...)
			found, err := l.Denials(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, d.String())
			}
			if strings.Join(got, "; ") != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// netdelta's own policies are not what keeps its pods apart, and the policy of the fix lets them through.
func TestDenialsAreFixed(t *testing.T) {
	deny := policy(t, "default-deny", "{podSelector: {}, policyTypes: [Ingress, Egress]}")
	own := admitting(testRun, "own", metav1.LabelSelector{}, []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}, firstPort, firstPort)
	own.Namespace = "measured"
	l := launcherWith(t, Options{})
	l.cluster.API = kubetest.API(t, own)
	if found, err := l.Denials(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("own policies: %v, %v", found, err)
	}
	l.cluster.API = kubetest.API(t, deny)
	found, err := l.Denials(t.Context())
	if err != nil || len(found) != 2 {
		t.Fatalf("got %v, %v", found, err)
	}
	_, rest, _ := strings.Cut(CommandToAdmit(found), "echo '")
	text, command, _ := strings.Cut(rest, "'")
	fixed := &networkingv1.NetworkPolicy{}
	if err := yaml.UnmarshalStrict([]byte(text), fixed); err != nil || !strings.Contains(command, "kubectl --namespace measured apply -f -") {
		t.Fatalf("the fix is %q: %v", CommandToAdmit(found), err)
	}
	fixed.Namespace = "measured"
	l.cluster.API = kubetest.API(t, deny, fixed)
	if found, err := l.Denials(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("with the fix: %v, %v", found, err)
	}
}
