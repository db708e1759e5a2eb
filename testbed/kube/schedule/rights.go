package schedule

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube/survey"
)

const rbacGroup = "rbac.authorization.k8s.io"

// rights are the roles that a run takes and their bindings to the account: in the namespace, and for what belongs to none. Names of the
// latter hold the namespace, so that schedules in several don't take one another's.
func rights(o Options) []runtime.Object {
	needs := slices.DeleteFunc(survey.Needs(o.Namespace), func(n survey.Need) bool {
		return n.For == survey.ForDoctor || n.For == survey.ForFleets
	})
	inNamespace := head(o)
	ofCluster := metav1.ObjectMeta{Name: o.Namespace + "-" + o.Name, Labels: labels(o)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: o.Name, Namespace: o.Namespace}}
	kind := func(name string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: rbacGroup + "/v1", Kind: name} }
	return []runtime.Object{
		&rbacv1.Role{TypeMeta: kind("Role"), ObjectMeta: inNamespace, Rules: rules(needs, o.Namespace)},
		&rbacv1.RoleBinding{
			TypeMeta: kind("RoleBinding"), ObjectMeta: inNamespace, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "Role", Name: inNamespace.Name},
		},
		&rbacv1.ClusterRole{TypeMeta: kind("ClusterRole"), ObjectMeta: ofCluster, Rules: rules(needs, "")},
		&rbacv1.ClusterRoleBinding{
			TypeMeta: kind("ClusterRoleBinding"), ObjectMeta: ofCluster, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: ofCluster.Name},
		},
	}
}

// rules gathers the needs in a namespace, "" for those in none: a rule for each resource.
func rules(needs []survey.Need, namespace string) []rbacv1.PolicyRule {
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
		all[i].Verbs = append(all[i].Verbs, n.Verb)
	}
	return all
}
