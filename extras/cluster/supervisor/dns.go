package supervisor

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	serviceDNS = "coredns"
	// dnsAddress is where pods ask for names.
	dnsAddress    = "10.96.0.10"
	clusterDomain = "cluster.local"
	dnsPort       = 53
	dnsReady      = "http://127.0.0.1:8181/ready"
)

// corefile configures a name server that knows no names but the cluster's.
func corefile() string {
	return fmt.Sprintf(`.:%d {
	ready 127.0.0.1:8181
	errors
	kubernetes %s in-addr.arpa ip6.arpa {
		kubeconfig %s
		pods insecure
	}
}
`, dnsPort, clusterDomain, kubeconfigOf(serviceDNS))
}

// startDNS starts the name server on the control plane's node, and a service that leads to it.
func (s *supervisor) startDNS(ctx context.Context) error {
	control := s.members[0]
	if err := s.start(control, serviceDNS); err != nil {
		return err
	}
	const name = "kube-dns"
	var ports []corev1.ServicePort
	var endpoints []discoveryv1.EndpointPort
	for _, p := range []struct {
		name     string
		protocol corev1.Protocol
	}{{"dns", corev1.ProtocolUDP}, {"dns-tcp", corev1.ProtocolTCP}} {
		port := int32(dnsPort)
		ports = append(ports, corev1.ServicePort{Name: p.name, Protocol: p.protocol, Port: port, TargetPort: intstr.FromInt32(port)})
		endpoints = append(endpoints, discoveryv1.EndpointPort{Name: &p.name, Protocol: &p.protocol, Port: &port})
	}
	_, err := s.api.CoreV1().Services(metav1.NamespaceSystem).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"k8s-app": name}},
		Spec:       corev1.ServiceSpec{ClusterIP: dnsAddress, Ports: ports},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make the service of the name server: %w", err)
	}
	_, err = s.api.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{control.address.String()}}},
		Ports:       endpoints,
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("make the endpoints of the name server: %w", err)
	}
	return until(ctx, "the name server", func(ctx context.Context) error {
		_, err := get(ctx, control.space, dnsReady)
		return err
	})
}
