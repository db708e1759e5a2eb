package kube

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/result"
)

// front is a Service in front of a server's pod.
type front struct {
	name    string
	address netip.Addr        // its own, not valid where it has none
	ports   map[uint16]uint16 // of the node, by the pod's
}

// serviceManifest is the Service of a network for all ports of a pod, by TCP and UDP. It selects the pod by the labels.
func serviceManifest(namespace, name, networkName string, family result.Family, run RunID, selector map[string]string, first, last uint16) *corev1.Service {
	ip := corev1.IPv4Protocol
	if family == result.IPv6 {
		ip = corev1.IPv6Protocol
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: run.Labels(RoleService)},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: selector,
			IPFamilyPolicy: new(corev1.IPFamilyPolicySingleStack), IPFamilies: []corev1.IPFamily{ip},
		},
	}
	switch networkName {
	case NodePort:
		s.Spec.Type = corev1.ServiceTypeNodePort
	case Headless:
		s.Spec.ClusterIP = corev1.ClusterIPNone
		return s // its ports mean nothing
	}
	for port := int32(first); port <= int32(last); port++ {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
				Name: serviceName(protocol, port), Protocol: protocol, Port: port, TargetPort: intstr.FromInt32(port),
			})
		}
	}
	return s
}

// serviceName is the name of a Service's port.
func serviceName(protocol corev1.Protocol, port int32) string {
	return map[corev1.Protocol]string{corev1.ProtocolTCP: "t", corev1.ProtocolUDP: "u"}[protocol] + strconv.Itoa(int(port))
}

// frontOf reads what the cluster gave a Service.
func frontOf(s *corev1.Service) (*front, error) {
	f := &front{name: s.Name, ports: map[uint16]uint16{}}
	if at, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
		f.address = at
	}
	for _, p := range s.Spec.Ports {
		given := f.ports[uint16(p.Port)]
		if given != 0 && given != uint16(p.NodePort) {
			return nil, fmt.Errorf("port %d has the node's port %d by one protocol and %d by the other; have the ports of nodes freed, or measure other networks", p.Port, given, p.NodePort)
		}
		f.ports[uint16(p.Port)] = uint16(p.NodePort)
	}
	return f, nil
}

// makeService makes a Service, and waits until its endpoint is the given address.
func (c *Cluster) makeService(ctx context.Context, s *corev1.Service, endpoint netip.Addr, within time.Duration) (*front, error) {
	services := c.API.Services(s.Namespace)
	made, err := create(ctx, services, "service", s)
	if err != nil {
		return nil, err
	}
	f, err := frontOf(made)
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", s.Name, err)
	}
	for waited := range Polling(ctx, apiPause) {
		ready, err := c.hasEndpoint(ctx, s.Namespace, s.Name, endpoint)
		switch {
		case ready:
			return f, nil
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("wait for the endpoint of service %s: %w", s.Name, withFix(err))
		case waited > within && err != nil:
			return nil, fmt.Errorf("wait for the endpoint of service %s: %w", s.Name, err)
		case waited > within:
			return nil, fmt.Errorf("service %s has no endpoint %s after %s; does the cluster's controller manager run?", s.Name, endpoint, within)
		}
	}
	return nil, context.Cause(ctx)
}

// hasEndpoint says whether a Service leads to an address.
func (c *Cluster) hasEndpoint(ctx context.Context, namespace, service string, endpoint netip.Addr) (bool, error) {
	slices, err := c.API.EndpointSlices(namespace).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		return false, err
	}
	for _, slice := range slices.Items {
		for _, e := range slice.Endpoints {
			for _, a := range e.Addresses {
				if at, err := netip.ParseAddr(a); err == nil && at == endpoint && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
					return true, nil
				}
			}
		}
	}
	return false, nil
}
