package survey

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube"
)

// serviceAccounts is how the API server names accounts of pods, before their namespace and name.
const serviceAccounts = "system:serviceaccount:"

// RBAC prints the manifest that grants a user what runs in a namespace take, no more: first what all runs take, with NodeAgent what
// node agents take, and with doctor what only the survey reads. It is for those who may grant rights: kubectl apply -f -.
func RBAC(w io.Writer, user User, namespace string, nodeAgent, doctor bool) error {
	who := subject(user, namespace)
	write := func(name, where, about string, needs []Need) error {
		rules := Rules(needs, where)
		if len(rules) == 0 {
			return nil
		}
		if about != "" {
			if _, err := fmt.Fprintf(w, "# %s\n", about); err != nil {
				return err
			}
		}
		// Each user has a binding, so that what one is granted is not taken from another.
		binding := fmt.Sprintf("%s-%08x", name, crc32.ChecksumIEEE([]byte(who.String())))
		return kube.WriteManifest(w, Grant(metav1.ObjectMeta{Name: name, Namespace: where}, binding, who, rules)...)
	}
	survey := func(n Need) bool { return n.For == ForDoctor }
	runs := slices.DeleteFunc(Needs(namespace), survey)
	err := write("netdelta", namespace, "What runs take: pods, a way into them, services in front of them, and the lease that says that a run is under way.", runs)
	if err == nil {
		err = write("netdelta", "", "Nodes belong to no namespace: to place pods, and to record what was measured on. Nor do storage classes and volumes.", runs)
	}
	if doctor {
		reads := slices.DeleteFunc(Needs(namespace), func(n Need) bool { return !survey(n) })
		about := "What only `netdelta doctor` reads. No run needs it."
		places := []string{"", leaseNamespace, systemNamespace, namespace}
		slices.Sort(places) // a run may be in one of the system's own
		for _, where := range slices.Compact(places) {
			if err == nil {
				err = write("netdelta-doctor", where, about, reads)
			}
			about = ""
		}
	}
	if nodeAgent && err == nil {
		_, err = fmt.Fprint(w, `# What node agents need besides: no further rights, but a namespace that admits pods in their node's network, with
# NET_ADMIN and NET_RAW. The network host, the baseline, takes it as well. Whoever may create pods in this namespace may then create
# such pods too: let it be one of its own.
`)
		if err != nil {
			return err
		}
		err = kube.WriteManifest(w, &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}},
		})
	}
	return err
}

// Grant is a role with these rules and its binding to a subject: of a namespace or, without one, of the cluster.
func Grant(role metav1.ObjectMeta, binding string, to rbacv1.Subject, rules []rbacv1.PolicyRule) []runtime.Object {
	kind := func(name string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: name}
	}
	bound := role
	bound.Name = binding
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}
	if role.Namespace != "" {
		return []runtime.Object{
			&rbacv1.Role{TypeMeta: kind(ref.Kind), ObjectMeta: role, Rules: rules},
			&rbacv1.RoleBinding{TypeMeta: kind("RoleBinding"), ObjectMeta: bound, Subjects: []rbacv1.Subject{to}, RoleRef: ref},
		}
	}
	ref.Kind = "ClusterRole"
	return []runtime.Object{
		&rbacv1.ClusterRole{TypeMeta: kind(ref.Kind), ObjectMeta: role, Rules: rules},
		&rbacv1.ClusterRoleBinding{TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: bound, Subjects: []rbacv1.Subject{to}, RoleRef: ref},
	}
}

// Rules gathers the needs in a namespace, "" for those in none: a rule for each resource.
func Rules(needs []Need, namespace string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	at := map[string]int{}
	for _, n := range needs {
		if n.Namespace != namespace {
			continue
		}
		key := n.Group + "/" + n.Resource + "/" + strings.Join(n.Names, ",")
		i, found := at[key]
		if !found {
			i = len(all)
			at[key] = i
			all = append(all, rbacv1.PolicyRule{APIGroups: []string{n.Group}, Resources: []string{n.Resource}, ResourceNames: n.Names})
		}
		if !slices.Contains(all[i].Verbs, n.Verb) {
			all[i].Verbs = append(all[i].Verbs, n.Verb)
		}
	}
	return all
}

// subject is who is bound: the user who asked, or, where the API server does not tell who that is, an account of the namespace.
func subject(user User, namespace string) rbacv1.Subject {
	rest, isAccount := strings.CutPrefix(user.Name, serviceAccounts)
	where, name, ok := strings.Cut(rest, ":")
	switch {
	case isAccount && ok:
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: where, Name: name}
	case user.Name == "":
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "netdelta"}
	}
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user.Name}
}
