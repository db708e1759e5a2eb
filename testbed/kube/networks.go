package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"netdelta/internal/gather"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// The networks of a cluster, by their names in studies.
const (
	Host      = "host"
	Pod       = "pod"
	ClusterIP = "clusterip"
	NodePort  = "nodeport"
	Headless  = "headless"
	// MultusPrefix begins the name of a secondary network: "multus:NAMESPACE/NAME", of a NetworkAttachmentDefinition.
	MultusPrefix = "multus:"
)

// Networks are those that every cluster has, in the order in which they are listed: ways to reach a server's pod. They have no plan.
func Networks() []network.Network {
	return []network.Network{
		{Name: Host, Summary: "pods in their nodes' own network namespaces: what the machines can do", UsedBy: []string{"hostNetwork pods"}, Reach: network.ByNode, OwnPods: true},
		{Name: Pod, Summary: "from pod to pod, at the server's own address, over whatever joins the pods of the cluster", UsedBy: []string{"every CNI plugin"}},
		{Name: ClusterIP, Summary: "through the virtual address of a Service", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}},
		{Name: NodePort, Summary: "through a port of the server's node", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}, Reach: network.ByNode},
		{Name: Headless, Summary: "at the address that the cluster's name service gives for a Service without one of its own", UsedBy: []string{"StatefulSets"}},
	}
}

// Named is the network of a name: one of Networks, or a secondary network of Multus.
func Named(name string) (network.Network, error) {
	if rest, is := strings.CutPrefix(name, MultusPrefix); is {
		if _, _, err := attachment(rest); err != nil {
			return network.Network{}, err
		}
		return network.Network{Name: name, Summary: "a secondary network that Multus attaches", UsedBy: []string{"Multus"}}, nil
	}
	known := Networks()
	if n, is := gather.First(known, func(n network.Network) bool { return n.Name == name }); is {
		return n, nil
	}
	names := network.Names(known)
	near, _ := suggest.Nearest(name, names)
	return network.Network{}, &network.UnknownError{Name: name, Nearest: near, Known: append(names, MultusPrefix+"NAMESPACE/NAME")}
}

// serviced says whether a network goes through a Service.
func serviced(network string) bool {
	return network == ClusterIP || network == NodePort || network == Headless
}

// isSecondary says whether a network is one that Multus attaches pods to, in addition to the cluster's own.
func isSecondary(networkName string) bool { return strings.HasPrefix(networkName, MultusPrefix) }

// errAttachment is the error of what names no secondary network.
var errAttachment = errors.New("need multus:NAMESPACE/NAME, of a NetworkAttachmentDefinition")

// attachment splits the name of a NetworkAttachmentDefinition.
func attachment(text string) (namespace, name string, err error) {
	namespace, name, ok := strings.Cut(text, "/")
	for _, part := range []string{namespace, name} {
		ok = ok && part != "" && strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
	}
	if !ok {
		return "", "", fmt.Errorf("network %q: %w", MultusPrefix+text, errAttachment)
	}
	return namespace, name, nil
}

// attachmentOf is the part of a NetworkAttachmentDefinition that matters here.
type attachmentOf struct {
	Metadata struct {
		Namespace   string            `json:"namespace"`
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

const (
	attachmentGroup = "/apis/k8s.cni.cncf.io/v1"
	attachments     = "network-attachment-definitions"
	// attachmentsShown bounds how many networks an error lists.
	attachmentsShown = 10
)

// attach asks for a NetworkAttachmentDefinition, and returns the resource that a pod needs for it, "" for none.
func (c *Cluster) attach(ctx context.Context, networkName string) (device string, err error) {
	namespace, name, err := attachment(strings.TrimPrefix(networkName, MultusPrefix))
	if err != nil {
		return "", err
	}
	var raw []byte
	err = persist(ctx, func() error {
		answer := c.API.REST.Get().AbsPath(attachmentGroup, "namespaces", namespace, attachments, name).Do(ctx)
		raw, _ = answer.Raw() // whose error says less
		return answer.Error()
	})
	if err != nil {
		return "", c.unattachable(ctx, networkName, namespace, err)
	}
	var found attachmentOf
	if err := json.Unmarshal(raw, &found); err != nil {
		return "", fmt.Errorf("read the secondary network %s: %w", networkName, err)
	}
	return found.Metadata.Annotations[annotationOfResource], nil
}

// unattachable says what is missing where a NetworkAttachmentDefinition could not be had.
func (c *Cluster) unattachable(ctx context.Context, networkName, namespace string, err error) error {
	e := &testbed.UnsupportedError{Feature: "network " + networkName}
	switch {
	case apierrors.IsForbidden(err):
		e.Need = "the right to read it: " + err.Error()
		e.Fix = fmt.Sprintf("have it granted: kubectl --namespace %s create role netdelta-networks --verb get --resource %s.k8s.cni.cncf.io, and a rolebinding to it", namespace, attachments)
	case apierrors.IsNotFound(err) && apierrors.IsUnexpectedServerError(err): // the whole kind is
		e.Need = "Multus: the cluster knows no NetworkAttachmentDefinitions"
		e.Fix = "have Multus installed, or measure other networks"
	case apierrors.IsNotFound(err):
		e.Need = "a NetworkAttachmentDefinition of that name"
		e.Fix = c.attachable(ctx, networkName, namespace)
	default:
		return fmt.Errorf("look for the secondary network %s: %w", networkName, withFix(err))
	}
	return e
}

// attachable says which secondary networks there are: of the cluster, or of the namespace to those who may not see more.
func (c *Cluster) attachable(ctx context.Context, networkName, namespace string) string {
	var list struct {
		Items []attachmentOf `json:"items"`
	}
	for _, at := range [][]string{{attachmentGroup, attachments}, {attachmentGroup, "namespaces", namespace, attachments}} {
		raw, err := c.API.REST.Get().AbsPath(at...).DoRaw(ctx)
		if err == nil && json.Unmarshal(raw, &list) == nil {
			break
		}
	}
	var names, here []string // with and without their namespace
	for _, a := range list.Items {
		names = append(names, MultusPrefix+a.Metadata.Namespace+"/"+a.Metadata.Name)
		if a.Metadata.Namespace == namespace {
			here = append(here, a.Metadata.Name)
		}
	}
	slices.Sort(names)
	within := MultusPrefix + namespace + "/"
	if near, is := suggest.Nearest(strings.TrimPrefix(networkName, within), here); is {
		return "did you mean " + within + near + "?"
	}
	if len(names) == 0 {
		return "none is to be seen: look with kubectl get " + attachments + " --all-namespaces"
	}
	return "there are: " + Some(names, ", ", attachmentsShown)
}

// Some writes the first names, at most so many, and how many more there are.
func Some(names []string, separator string, most int) string {
	if len(names) <= most {
		return strings.Join(names, separator)
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], separator), len(names)-most)
}

// offered says so unless a node has a device of the kind that a network needs. It is silent where this user may not look at nodes.
func (c *Cluster) offered(ctx context.Context, networkName, device string) error {
	if device == "" {
		return nil
	}
	nodes, err := c.API.Nodes.List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look which nodes have %s: %w", device, err)
	}
	for _, n := range nodes.Items {
		if amount, has := n.Status.Allocatable[corev1.ResourceName(device)]; has && amount.Sign() > 0 {
			return nil
		}
	}
	return &testbed.UnsupportedError{
		Feature: "network " + networkName, Need: "devices " + device + ", which it names and no node has",
		Fix: "see that the device plugin runs on the nodes that have such cards: kubectl describe nodes lists what they offer",
	}
}

// status is one entry of what Multus says of a pod's networks.
type status struct {
	Name string   `json:"name"`
	IPs  []string `json:"ips"`
}

// secondary is a pod's address in a secondary network, as Multus notes it in an annotation.
func secondary(annotation, networkName string, family result.Family) (netip.Addr, error) {
	if annotation == "" {
		return netip.Addr{}, fmt.Errorf("the pod has no annotation %s, in which Multus notes its addresses: does Multus run on its node?", annotationStatus)
	}
	var all []status
	if err := json.Unmarshal([]byte(annotation), &all); err != nil {
		return netip.Addr{}, fmt.Errorf("the pod's annotation %s is not what Multus writes: %w; is Multus running on its node?", annotationStatus, err)
	}
	wanted := strings.TrimPrefix(networkName, MultusPrefix)
	i := slices.IndexFunc(all, func(s status) bool { return s.Name == wanted })
	if i < 0 {
		return netip.Addr{}, fmt.Errorf("the pod is not attached to %s by Multus", wanted)
	}
	var addresses []netip.Addr
	for _, ip := range all[i].IPs {
		if at, err := netip.ParseAddr(ip); err == nil {
			addresses = append(addresses, at)
		}
	}
	at := ofFamily(addresses, family)
	if !at.IsValid() {
		return at, fmt.Errorf("the pod has no address of %s in %s: its addresses are %q", family, wanted, all[i].IPs)
	}
	return at, nil
}

// attached is the address of a pod in a secondary network. Multus writes it when the pod is up already.
func (t *Testbed) attached(ctx context.Context, p *pod) (netip.Addr, error) {
	for waited := range Polling(ctx, apiPause) {
		now, err := t.driver.cluster.API.Pods(t.driver.cluster.Namespace).Get(ctx, p.Name(), metav1.GetOptions{})
		if err == nil {
			var at netip.Addr
			if at, err = secondary(now.Annotations[annotationStatus], t.spec.Network, t.family()); err == nil {
				return at, nil
			}
		}
		if waited > statusWithin {
			return netip.Addr{}, fmt.Errorf("%s after it was up: %w", statusWithin, err)
		}
	}
	return netip.Addr{}, context.Cause(ctx)
}

// statusWithin is how long Multus may take to note a pod's addresses: it does so before the pod's programs begin.
const statusWithin = 10 * time.Second

// reach notes a pod's address in a network.
func (p *pod) reach(networkName string, at netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reached == nil {
		p.reached = map[string]netip.Addr{}
	}
	p.reached[networkName] = at
}

// addressIn is the pod's address in a network: its own, but for those that give it another.
func (p *pod) addressIn(networkName string) netip.Addr {
	if isSecondary(networkName) && !p.host {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.reached[networkName]
	}
	return p.Address()
}
