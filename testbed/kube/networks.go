package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
		{Name: Host, Summary: "pods in their nodes' own network namespaces: what the machines can do", UsedBy: []string{"hostNetwork pods"}, Reach: network.ByNode},
		{Name: Pod, Summary: "from pod to pod, at the server's own address, over whatever joins the pods of the cluster", UsedBy: []string{"every CNI plugin"}, SameNodeUnderSwap: true},
		{Name: ClusterIP, Summary: "through the virtual address of a Service", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}, SameNodeUnderSwap: true},
		{Name: NodePort, Summary: "through a port of the server's node", UsedBy: []string{"kube-proxy", "Cilium", "Calico eBPF"}, Reach: network.ByNode, SameNodeUnderSwap: true},
		{Name: Headless, Summary: "at the address that the cluster's name service gives for a Service without one of its own", UsedBy: []string{"StatefulSets"}, SameNodeUnderSwap: true},
	}
}

// Named is the network of a name: one of Networks, or a secondary network of Multus.
func Named(name string) (network.Network, error) {
	if rest, is := strings.CutPrefix(name, MultusPrefix); is {
		if _, _, err := attachment(rest); err != nil {
			return network.Network{}, err
		}
		return network.Network{Name: name, Summary: "a secondary network that Multus attaches", UsedBy: []string{"Multus"}, SameNodeUnderSwap: true}, nil
	}
	known := Networks()
	var names []string
	for _, n := range known {
		if n.Name == name {
			return n, nil
		}
		names = append(names, n.Name)
	}
	near, _ := suggest.Nearest(name, names)
	return network.Network{}, &network.UnknownError{Name: name, Nearest: near, Known: append(names, MultusPrefix+"NAMESPACE/NAME")}
}

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

// serviced says whether a network goes through a Service.
func serviced(network string) bool {
	return network == ClusterIP || network == NodePort || network == Headless
}

// attachmentOf is the part of a NetworkAttachmentDefinition that matters here.
type attachmentOf struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
}

// attach asks for a NetworkAttachmentDefinition, and returns the resource that a pod needs for it, "" for none.
func (c *Cluster) attach(ctx context.Context, networkName string) (device string, err error) {
	namespace, name, err := attachment(strings.TrimPrefix(networkName, MultusPrefix))
	if err != nil {
		return "", err
	}
	raw, err := c.API.CoreV1().RESTClient().Get().
		AbsPath("/apis/k8s.cni.cncf.io/v1/namespaces", namespace, "network-attachment-definitions", name).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return "", &testbed.UnsupportedError{
			Feature: "network " + networkName, Need: fmt.Sprintf("Multus, with a NetworkAttachmentDefinition %s in namespace %s", name, namespace),
			Mend: "look with kubectl get network-attachment-definitions --all-namespaces",
		}
	}
	if err != nil {
		return "", fmt.Errorf("look for the secondary network %s: %w", networkName, mendable(err))
	}
	var found attachmentOf
	if err := json.Unmarshal(raw, &found); err != nil {
		return "", fmt.Errorf("read the secondary network %s: %w", networkName, err)
	}
	return found.Metadata.Annotations[annotationOfResource], nil
}

// status is one entry of what Multus says of a pod's networks.
type status struct {
	Name string   `json:"name"`
	IPs  []string `json:"ips"`
}

// secondary is a pod's address in a secondary network, as Multus notes it in an annotation.
func secondary(annotation, networkName string, family result.Family) (netip.Addr, error) {
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
