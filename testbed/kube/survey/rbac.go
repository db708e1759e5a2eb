package survey

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
)

// serviceAccounts is how the API server names accounts of pods, before their namespace and name.
const serviceAccounts = "system:serviceaccount:"

// grant is a set of rights with a name of its own.
type grant struct {
	name    string
	about   string // a comment
	needs   []Need
	cluster bool // of the whole cluster
	where   string
}

// RBAC is the manifest that grants a user what runs in a namespace take, no more: first what all runs take, with NodeAgent what
// node agents take, and with doctor what only the survey reads. It is for those who may grant rights: kubectl apply -f -.
func RBAC(user User, namespace string, nodeAgent, doctor bool) string {
	needs := Needs(namespace)
	var b strings.Builder
	for _, g := range grants(needs, namespace, doctor) {
		g.write(&b, user, namespace)
	}
	if nodeAgent {
		writeLevel(&b, namespace)
	}
	return b.String()
}

// grants sorts needs into roles: needs of runs and needs of the survey alone, of each namespace and of the cluster.
func grants(needs []Need, namespace string, doctor bool) []grant {
	var all []grant
	add := func(name, where, about string, is func(Need) bool) {
		g := grant{name: name, about: about, where: where, cluster: where == ""}
		for _, n := range needs {
			if n.Namespace == where && is(n) {
				g.needs = append(g.needs, n)
			}
		}
		if len(g.needs) > 0 {
			all = append(all, g)
		}
	}
	runs := func(n Need) bool { return n.For != ForDoctor }
	add("netdelta", namespace, "What runs take: pods, a way into them, services in front of them, and the lease that says that a run is under way.", runs)
	add("netdelta", "", "Nodes belong to no namespace: to place pods, and to record what was measured on. Nor do storage classes and volumes.", runs)
	if !doctor {
		return all
	}
	surveys := func(n Need) bool { return n.For == ForDoctor }
	about := "What only `netdelta doctor` reads. No run needs it."
	places := []string{"", leaseNamespace, systemNamespace, namespace}
	slices.Sort(places) // a run may be in one of the system's own
	for _, where := range slices.Compact(places) {
		add("netdelta-doctor", where, about, surveys)
		about = ""
	}
	return all
}

// write prints a role and its binding to a user.
func (g grant) write(b *strings.Builder, user User, namespace string) {
	kind := "Role"
	if g.cluster {
		kind = "ClusterRole"
	}
	if g.about != "" {
		fmt.Fprintf(b, "# %s\n", g.about)
	}
	head := func(kind, name string) {
		fmt.Fprintf(b, "apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s\n", kind, name)
		if !g.cluster {
			fmt.Fprintf(b, "  namespace: %s\n", strconv.Quote(g.where))
		}
	}
	head(kind, g.name)
	b.WriteString("rules:\n")
	for _, r := range rules(g.needs) {
		fmt.Fprintf(b, "  - apiGroups: [%q]\n    resources: [%s]\n    verbs: [%s]\n", r.Group, r.resources, r.verbs)
		if len(r.Names) > 0 {
			fmt.Fprintf(b, "    resourceNames: [%s]\n", quoted(r.Names))
		}
	}
	b.WriteString("---\n")
	// Each user has a binding, so that what one is granted is not taken from another.
	who := subject(user, namespace)
	head(kind+"Binding", fmt.Sprintf("%s-%08x", g.name, crc32.ChecksumIEEE([]byte(who))))
	fmt.Fprintf(b, "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}\nsubjects:\n  - %s\n---\n", kind, g.name, who)
}

// rule is what one or more resources have in common.
type rule struct {
	Need
	resources, verbs string
}

// rules gathers needs: the verbs of each resource, and the resources that share them.
func rules(needs []Need) []rule {
	type key struct{ group, resource, names string }
	verbs := map[key][]string{}
	var order []key
	first := map[key]Need{}
	for _, n := range needs {
		k := key{n.Group, n.Resource, strings.Join(n.Names, ",")}
		if _, seen := verbs[k]; !seen {
			order = append(order, k)
			first[k] = n
		}
		if !slices.Contains(verbs[k], n.Verb) {
			verbs[k] = append(verbs[k], n.Verb)
		}
	}
	var all []rule
	for _, k := range order {
		text := quoted(verbs[k])
		if last := len(all) - 1; last >= 0 && all[last].Group == k.group && all[last].verbs == text && strings.Join(all[last].Names, ",") == k.names {
			all[last].resources += ", " + strconv.Quote(k.resource)
			continue
		}
		all = append(all, rule{Need: first[k], resources: strconv.Quote(k.resource), verbs: text})
	}
	return all
}

// quoted is a list for between brackets.
func quoted(all []string) string {
	list := make([]string, len(all))
	for i, s := range all {
		list[i] = strconv.Quote(s)
	}
	return strings.Join(list, ", ")
}

// subject is who is bound: the user who asked, or, where the API server does not tell who that is, an account of the namespace.
func subject(user User, namespace string) string {
	account := func(namespace, name string) string {
		return fmt.Sprintf("{kind: ServiceAccount, namespace: %s, name: %s}", strconv.Quote(namespace), strconv.Quote(name))
	}
	if rest, ok := strings.CutPrefix(user.Name, serviceAccounts); ok {
		if where, name, ok := strings.Cut(rest, ":"); ok {
			return account(where, name)
		}
	}
	if user.Name == "" {
		return account(namespace, "netdelta")
	}
	return fmt.Sprintf("{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}", strconv.Quote(user.Name))
}

// writeLevel prints the Pod Security level that pods in their node's network take.
func writeLevel(b *strings.Builder, namespace string) {
	fmt.Fprintf(b, `# What node agents need besides: no further rights, but a namespace that admits pods in their node's network, with
# NET_ADMIN and NET_RAW. The network host, the baseline, takes it as well. Whoever may create pods in this namespace may then create
# such pods too: let it be one of its own.
apiVersion: v1
kind: Namespace
metadata:
  name: %s
  labels:
    pod-security.kubernetes.io/enforce: privileged
---
`, strconv.Quote(namespace))
}
