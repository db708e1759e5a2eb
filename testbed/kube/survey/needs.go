package survey

import (
	"slices"
	"strings"

	"netdelta/internal/gather"
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
