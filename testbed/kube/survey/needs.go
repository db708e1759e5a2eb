package survey

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"netdelta/internal/gather"
	"netdelta/testbed/kube"
)

// Purpose is what a right is for.
type Purpose string

// The purposes, in the order in which they are printed.
const (
	// ForRuns: without these no run is possible.
	ForRuns Purpose = "runs"
	// ForServices: the networks clusterip, nodeport and headless.
	ForServices Purpose = "services"
	// ForPeers: workloads that are served by daemons in several pods.
	ForPeers Purpose = "peers"
	// ForFleets: many pods that send at once.
	ForFleets Purpose = "fleets"
	// ForPolicies: what NetworkPolicies cost.
	ForPolicies Purpose = "policies"
	// ForTargets: endpoints of the user's own, in the same namespace. Endpoints in other namespaces take the same rights there.
	ForTargets Purpose = "targets"
	// ForVolumes: volumes of the user's own storage classes.
	ForVolumes Purpose = "volumes"
	// ForMultus: the networks multus:NAME, where Multus is.
	ForMultus Purpose = "multus"
	// ForDoctor: what only the survey reads. A run needs none of it.
	ForDoctor Purpose = "doctor"
)

// Need is a right that something takes.
type Need struct {
	For      Purpose `json:"for"`
	Group    string  `json:"group"`    // of the API; "" is the core's
	Resource string  `json:"resource"` // with its subresource: "pods/exec"
	Verb     string  `json:"verb"`
	// Namespace is where; "" is the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Names are the objects that it is about; none is all.
	Names []string `json:"names,omitempty"`
}

// String is the right as people say it: "create pods/exec in measurements".
func (n Need) String() string {
	text := n.Verb + " " + n.Resource
	if n.Group != "" {
		text += "." + n.Group
	}
	if len(n.Names) > 0 {
		text += " " + strings.Join(n.Names, ", ")
	}
	if n.Namespace != "" {
		return text + " in " + n.Namespace
	}
	return text + " of the cluster"
}

// Right is a need and the answer to it.
type Right struct {
	Need
	Allowed bool `json:"allowed"`
	// Unknown says why the question could not be answered.
	Unknown string `json:"unknown,omitempty"`
}

// systemNamespace is where clusters keep their own configuration, and leaseNamespace where kubelets renew their leases.
const (
	systemNamespace = "kube-system"
	leaseNamespace  = "kube-node-lease"
)

// want writes several verbs on several resources of one API group as needs.
func want(purpose Purpose, namespace, group, resources, verbs string, names ...string) []Need {
	var all []Need
	for _, resource := range strings.Fields(resources) {
		for _, verb := range strings.Fields(verbs) {
			all = append(all, Need{For: purpose, Group: group, Resource: resource, Verb: verb, Namespace: namespace, Names: names})
		}
	}
	return all
}

// multusGroup is the API group of secondary networks.
const multusGroup = "k8s.cni.cncf.io"

// Needs are the rights that runs in a namespace take, each for its purpose. Node agents take no others: they are pods, which the
// namespace admits or does not.
func Needs(namespace string) []Need {
	all := slices.Concat(
		want(ForRuns, namespace, "", "pods", "create get list delete"),
		// Exec streams are opened by a GET that becomes a WebSocket, or by a POST that becomes SPDY. Newer API servers ask for both.
		want(ForRuns, namespace, "", "pods/exec", "create get"),
		want(ForRuns, namespace, "", "events", "list"),
		// The Lease that says that a run is under way, so that a cleanup leaves its pods alone.
		want(ForRuns, namespace, "coordination.k8s.io", "leases", "create get list update delete"),
		want(ForRuns, "", "", "nodes", "get list"),
		want(ForServices, namespace, "", "services", "create list delete"),
		want(ForServices, namespace, "discovery.k8s.io", "endpointslices", "list"),
		want(ForPeers, namespace, "apps", "statefulsets", "create list delete"),
		want(ForFleets, namespace, "batch", "jobs", "create patch list delete"),
		want(ForPolicies, namespace, "networking.k8s.io", "networkpolicies", "create list delete"),
		want(ForTargets, namespace, "", "services", "get"),
		want(ForVolumes, namespace, "", "persistentvolumeclaims", "create get list delete"),
		want(ForVolumes, "", "storage.k8s.io", "storageclasses", "get list"),
		want(ForVolumes, "", "", "persistentvolumes", "get"),
		want(ForMultus, namespace, multusGroup, "network-attachment-definitions", "get"),
	)
	return slices.Concat(all,
		want(ForDoctor, namespace, "", "resourcequotas limitranges", "list"),
		// A namespace is within itself, to those who decide on rights.
		want(ForDoctor, namespace, "", "namespaces", "get", namespace),
		want(ForDoctor, "", "", "pods services", "list"),
		want(ForDoctor, "", "apps", "daemonsets", "list"),
		want(ForDoctor, leaseNamespace, "coordination.k8s.io", "leases", "list"),
		want(ForDoctor, systemNamespace, "", "configmaps", "get", configNames()...),
		// Its namespace may not be there, where a role could be.
		want(ForDoctor, "", "", "configmaps", "get", flannelConfig),
		want(ForDoctor, "", calicoGroup, "ippools felixconfigurations", "list"),
	)
}

// lacking are the rights of a purpose that were asked for and are not there.
func lacking(rights []Right, purpose Purpose) []Right {
	return gather.Where(rights, func(r Right) bool { return r.For == purpose && !r.Allowed && r.Unknown == "" })
}

// questionsAtOnce is how many rights are asked for at the same time.
const questionsAtOnce = 8

// askRights asks the API server for each right that a run takes.
func (l *looker) askRights(ctx context.Context) {
	needs := Needs(l.cluster.Namespace)
	// Objects of extensions are asked for only where the extension is.
	needs = slices.DeleteFunc(needs, func(n Need) bool {
		return (n.Group == calicoGroup || n.Group == multusGroup) && !l.evidence.groups[n.Group]
	})
	rights := make([]Right, len(needs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(questionsAtOnce)
	for i, need := range needs {
		group.Go(func() error {
			rights[i] = l.askRight(ctx, need)
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	l.survey.Rights = rights
}

// askRight asks for one. One that is about several objects is there where it is for each.
func (l *looker) askRight(ctx context.Context, need Need) Right {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	right := Right{Need: need, Allowed: true}
	resource, sub, _ := strings.Cut(need.Resource, "/")
	names := need.Names
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: need.Namespace, Verb: need.Verb, Group: need.Group, Resource: resource, Subresource: sub, Name: name,
		}}}
		answer, err := l.cluster.API.SelfSubjectAccessReviews.Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return Right{Need: need, Unknown: err.Error()}
		}
		right.Allowed = right.Allowed && answer.Status.Allowed
	}
	return right
}

// serviceAccounts is how the API server names accounts of pods, before their namespace and name.
const serviceAccounts = "system:serviceaccount:"

// RBAC prints the manifest that grants somebody what runs in a namespace take, no more: first what all runs take, with NodeAgent what
// node agents take, and with doctor what only the survey reads. It is for those who may grant rights: kubectl apply -f -.
func RBAC(w io.Writer, who rbacv1.Subject, namespace string, nodeAgent, doctor bool) error {
	if _, err := fmt.Fprintf(w, "# Rights for %s %q. For another one: --for USER, --for group:NAME, --for account:NAME\n", strings.ToLower(who.Kind), fullName(who)); err != nil {
		return err
	}
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

// fullName is a subject's name, with its namespace where it has one.
func fullName(s rbacv1.Subject) string {
	if s.Namespace == "" {
		return s.Name
	}
	return s.Namespace + "/" + s.Name
}

// For reads who is to be granted rights: the name of a user, group:NAME, or account:NAME and account:NAMESPACE/NAME for an account of pods,
// without a namespace of the given one. The error says what can't be granted anything.
func For(text, namespace string) (rbacv1.Subject, error) {
	kind, name, given := strings.Cut(text, ":")
	switch {
	case given && kind == "group" && name != "":
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}, nil
	case given && kind == "account" && name != "":
		where, account, several := strings.Cut(name, "/")
		if !several {
			where, account = namespace, name
		}
		if wrong := slices.Concat(validation.IsDNS1123Label(where), validation.IsDNS1123Subdomain(account)); len(wrong) > 0 {
			return rbacv1.Subject{}, fmt.Errorf("account %q: %s", name, strings.Join(wrong, "; "))
		}
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: where, Name: account}, nil
	case strings.TrimSpace(text) == "" || given && name == "":
		return rbacv1.Subject{}, fmt.Errorf("%q names nobody: need a user's name, group:NAME or account:NAME", text)
	}
	return Subject(User{Name: text}, namespace), nil
}

// Subject is who is bound: the user who asked, or, where the API server does not tell who that is, an account of the namespace.
func Subject(user User, namespace string) rbacv1.Subject {
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
