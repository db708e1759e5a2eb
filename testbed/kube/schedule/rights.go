package schedule

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"netdelta/testbed/kube/survey"
)

// rights are the roles that a run takes and their bindings to the account: in the namespace, and for what belongs to none. Names of the
// latter hold the namespace, so that schedules in several don't take one another's.
func rights(o Options) []runtime.Object {
	needs := slices.DeleteFunc(survey.Needs(o.Namespace), func(n survey.Need) bool {
		return n.For == survey.ForDoctor || n.For == survey.ForFleets
	})
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: o.Name, Namespace: o.Namespace}
	of := metav1.ObjectMeta{Name: o.Namespace + "-" + o.Name, Labels: labels(o)}
	return append(
		survey.Grant(head(o), head(o).Name, account, survey.Rules(needs, o.Namespace)),
		survey.Grant(of, of.Name, account, survey.Rules(needs, ""))...)
}
