package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/internal/gather"
)

// Denial is NetworkPolicies, of others than netdelta, that keep the pods of a run from each other: they select them, and none lets in, or
// out, what a client and a server send each other. Where nothing enforces policies they have no effect.
type Denial struct {
	Namespace string `json:"namespace"`
	// Direction is "ingress" where the server is not reached, and "egress" where the client may not send.
	Direction string `json:"direction"`
	// Names are the policies' names, sorted.
	Names []string `json:"names"`
}

// The directions of denials.
const (
	directionIn  = "ingress"
	directionOut = "egress"
)

// String names the policies: "default-deny in namespace x (ingress)".
func (d Denial) String() string {
	return fmt.Sprintf("%s in namespace %s (%s)", strings.Join(d.Names, ", "), d.Namespace, d.Direction)
}

// Denials finds the NetworkPolicies of the run's namespace that keep clients from servers.
func (l *Launcher) Denials(ctx context.Context) ([]Denial, error) {
	return l.denials(ctx, Wish{Role: RoleClient}, Wish{Role: RoleServer})
}

// denials is Denials of two pods. What depends on addresses is taken to admit.
func (l *Launcher) denials(ctx context.Context, from, to Wish) ([]Denial, error) {
	c := l.cluster
	list, err := c.API.NetworkPolicies(c.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return nil, err
	}
	own := labels.Set{corev1.LabelMetadataName: c.Namespace} // which every namespace has, whoever may read the others
	if n, err := c.API.Namespaces.Get(ctx, c.Namespace, metav1.GetOptions{}); err == nil {
		own = labels.Merge(n.Labels, own)
	} else if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		return nil, err
	}
	client, server := labels.Set(l.Manifest(from).Labels), labels.Set(l.Manifest(to).Labels)
	last := int32(firstPort + l.options.Ports) // the port of trials
	return slices.Concat(
		denies(c.Namespace, list.Items, networkingv1.PolicyTypeIngress, server, client, own, last),
		denies(c.Namespace, list.Items, networkingv1.PolicyTypeEgress, client, server, own, last),
	), nil
}

// CommandToAdmit is what to do about denials: the command that makes a policy by which runs' pods reach each other, beside those that there are.
func CommandToAdmit(all []Denial) string {
	own := metav1.LabelSelector{MatchLabels: map[string]string{LabelManagedBy: ManagedBy}}
	peers := []networkingv1.NetworkPolicyPeer{{PodSelector: &own}}
	p := networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: ManagedBy},
		Spec:       networkingv1.NetworkPolicySpec{PodSelector: own},
	}
	namespace := ""
	for _, d := range all {
		namespace = d.Namespace
		switch d.Direction {
		case directionIn:
			p.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{From: peers}}
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
		case directionOut:
			p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{To: peers}}
			p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	text, _ := json.Marshal(p) // it never fails
	return fmt.Sprintf("echo '%s' | kubectl --namespace %s apply -f -   # netdelta's pods reach each other then; or measure in another namespace, with --namespace", text, namespace)
}

// denies are the policies that select a pod for a direction, where none of them admits another pod of the namespace by the ports up to the
// last; nothing where one does, or none selects it.
func denies(namespace string, all []networkingv1.NetworkPolicy, direction networkingv1.PolicyType, pod, other, own labels.Set, last int32) []Denial {
	var names []string
	for _, p := range all {
		if !selects(&p.Spec.PodSelector, pod) || !slices.Contains(typesOf(p), direction) {
			continue
		}
		for _, r := range rulesOf(p, direction) {
			if r.admits(other, own, last) {
				return nil
			}
		}
		if p.Labels[LabelManagedBy] != ManagedBy {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []Denial{{Namespace: namespace, Direction: strings.ToLower(string(direction)), Names: names}}
}

// typesOf are the directions that a policy is about: those that it names, else ingress, and egress where it has rules for that.
func typesOf(p networkingv1.NetworkPolicy) []networkingv1.PolicyType {
	switch {
	case len(p.Spec.PolicyTypes) > 0:
		return p.Spec.PolicyTypes
	case len(p.Spec.Egress) > 0:
		return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	}
	return []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
}

// policyRule is a rule of a policy in either direction.
type policyRule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(p networkingv1.NetworkPolicy, direction networkingv1.PolicyType) []policyRule {
	if direction == networkingv1.PolicyTypeIngress {
		return gather.Each(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) policyRule { return policyRule{r.From, r.Ports} })
	}
	return gather.Each(p.Spec.Egress, func(r networkingv1.NetworkPolicyEgressRule) policyRule { return policyRule{r.To, r.Ports} })
}

// admits says whether a rule may let through what a run sends: from or to a pod of its namespace, by any of its ports.
func (r policyRule) admits(other, own labels.Set, last int32) bool {
	peer := len(r.peers) == 0 || slices.ContainsFunc(r.peers, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.IPBlock != nil || (p.PodSelector == nil || selects(p.PodSelector, other)) && (p.NamespaceSelector == nil || selects(p.NamespaceSelector, own))
	})
	port := len(r.ports) == 0 || slices.ContainsFunc(r.ports, func(p networkingv1.NetworkPolicyPort) bool {
		switch {
		case p.Port == nil:
			return true
		case p.Port.Type == intstr.String:
			return false // the ports of a run's pods have no names
		case p.EndPort != nil:
			return p.Port.IntVal <= last && *p.EndPort >= firstPort
		}
		return p.Port.IntVal >= firstPort && p.Port.IntVal <= last
	})
	return peer && port
}

// selects says whether a selector of labels matches; one that can't be read does not.
func selects(s *metav1.LabelSelector, of labels.Set) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && selector.Matches(of)
}
