package survey

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"

	"netdelta/internal/golden"
	"netdelta/internal/require"
)

// documents reads the objects of a manifest as the API server would, refusing fields that there are not.
func documents(t *testing.T, manifest string) []runtime.Object {
	t.Helper()
	known := runtime.NewScheme()
	require.NoError(t, errors.Join(rbacv1.AddToScheme(known), corev1.AddToScheme(known)))
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for part := range bytes.SplitSeq([]byte(manifest), []byte("\n---\n")) {
		text, err := yaml.ToJSON(part)
		if err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		if string(text) == "null" {
			continue
		}
		o, _, err := decoder.Decode(text, nil, nil)
		if err != nil {
			t.Fatalf("%v in\n%s", err, part)
		}
		all = append(all, o)
	}
	return all
}

// granted are the rights that a manifest grants a user, in the words of Need.
func granted(t *testing.T, text, user string) []string {
	t.Helper()
	rules, bound := map[string][]rbacv1.PolicyRule{}, map[string]bool{}
	var where = map[string]string{}
	for _, o := range documents(t, text) {
		switch o := o.(type) {
		case *rbacv1.Role:
			rules["Role "+o.Namespace+"/"+o.Name], where["Role "+o.Namespace+"/"+o.Name] = o.Rules, o.Namespace
		case *rbacv1.ClusterRole:
			rules["ClusterRole /"+o.Name] = o.Rules
		case *rbacv1.RoleBinding:
			bound[o.RoleRef.Kind+" "+o.Namespace+"/"+o.RoleRef.Name] = len(o.Subjects) == 1 && o.Subjects[0].Kind == "User" && o.Subjects[0].Name == user
		case *rbacv1.ClusterRoleBinding:
			bound[o.RoleRef.Kind+" /"+o.RoleRef.Name] = len(o.Subjects) == 1 && o.Subjects[0].Kind == "User" && o.Subjects[0].Name == user
		default:
			t.Errorf("%T has no place there", o)
		}
	}
	var all []string
	for name, list := range rules {
		if !bound[name] {
			t.Errorf("%s is not bound", name)
		}
		for _, r := range list {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, Need{Group: r.APIGroups[0], Resource: resource, Verb: verb, Namespace: where[name], Names: r.ResourceNames}.String())
				}
			}
		}
	}
	slices.Sort(all)
	return all
}

// manifest is what RBAC prints.
func manifest(t *testing.T, user User, namespace string, nodeAgent, doctor bool) string {
	t.Helper()
	var b strings.Builder
	if err := RBAC(&b, Subject(user, namespace), namespace, nodeAgent, doctor); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestRBAC: what is printed for each user.
func TestRBAC(t *testing.T) {
	for name, got := range map[string]string{
		"runs.yaml":    manifest(t, User{Name: "alice"}, "measurements", false, false),
		"all.yaml":     manifest(t, User{Name: "alice"}, "measurements", true, true),
		"account.yaml": manifest(t, User{Name: "system:serviceaccount:ci:nightly"}, "measurements", false, false),
	} {
		golden.Check(t, filepath.Join("testdata/rbac", name), got)
		documents(t, got)
	}
}

// Rights are granted to whom the flag names; what names nobody is refused.
func TestFor(t *testing.T) {
	for text, want := range map[string]rbacv1.Subject{
		"alice":                          {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "alice"},
		"oidc:alice":                     {APIGroup: "rbac.authorization.k8s.io", Kind: "User", Name: "oidc:alice"},
		"group:devs":                     {APIGroup: "rbac.authorization.k8s.io", Kind: "Group", Name: "devs"},
		"account:bench":                  {Kind: "ServiceAccount", Namespace: "measurements", Name: "bench"},
		"account:ci/bench":               {Kind: "ServiceAccount", Namespace: "ci", Name: "bench"},
		"system:serviceaccount:ci:bench": {Kind: "ServiceAccount", Namespace: "ci", Name: "bench"},
	} {
		if got, err := For(text, "measurements"); err != nil || got != want {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " ", "group:", "account:", "account:A_b", "account:a/b/c"} {
		if got, err := For(text, "measurements"); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// TestRBACQuotes: names are data, whatever is in them.
func TestRBACQuotes(t *testing.T) {
	hostile := "a\"\n  - {kind: Group, name: \"system:masters\"}\n# \x1b[2J\u202e"
	for _, o := range documents(t, manifest(t, User{Name: hostile}, "ns\": {", true, true)) {
		switch o := o.(type) {
		case *rbacv1.RoleBinding:
			if len(o.Subjects) != 1 || o.Subjects[0].Name != hostile {
				t.Errorf("bound are %+v", o.Subjects)
			}
		case *corev1.Namespace:
			if o.Name != "ns\": {" {
				t.Errorf("namespace %q", o.Name)
			}
		}
	}
	if got := Subject(User{}, "measurements"); got != (rbacv1.Subject{Kind: "ServiceAccount", Namespace: "measurements", Name: "netdelta"}) {
		t.Errorf("nobody is %v", got)
	}
}
