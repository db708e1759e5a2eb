package supervisor

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/node"
	"netdelta/extras/cluster/pki"
)

// Folders and files of nodes.
const (
	settings   = "/etc/kubernetes"
	cniConf    = "/run/cni/net.d"
	cniPlugins = "/run/cni/bin"
	socket     = "/run/containerd/containerd.sock"
)

// Names of services.
const (
	serviceEtcd       = "etcd"
	serviceAPI        = "kube-apiserver"
	serviceManager    = "kube-controller-manager"
	serviceScheduler  = "kube-scheduler"
	serviceContainerd = "containerd"
	serviceKubelet    = "kubelet"
	serviceProxy      = "kube-proxy"
	serviceFlannel    = "flanneld"
	servicePolicy     = "kube-network-policies"
)

// masters is the group that may do anything.
const masters = "system:masters"

// secrets are what the programs of a cluster know each other by.
type secrets struct {
	authority *pki.Authority
	server    pki.Pair // of the API server
	signing   []byte   // of tokens
	admin     pki.Pair
}

func newSecrets(authority *pki.Authority) (*secrets, error) {
	s := &secrets{authority: authority}
	var err error
	addresses := []net.IP{net.IPv4(127, 0, 0, 1), nodeAddress(0).AsSlice(), net.ParseIP(apiService)}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	if s.server, err = authority.Server("kube-apiserver", names, addresses); err != nil {
		return nil, err
	}
	if s.signing, err = pki.SigningKey(); err != nil {
		return nil, err
	}
	s.admin, err = authority.Client("admin", masters)
	return s, err
}

// apiAddress is where nodes reach the API server.
func apiAddress() string { return net.JoinHostPort(nodeAddress(0).String(), apiPort) }

// user is a program of a node, and the user and group that the API server knows it as.
type user struct{ program, name, group string }

// kubeconfigs are the files by which programs of a node reach the API server.
func (s *secrets) kubeconfigs(users ...user) ([]node.File, error) {
	var files []node.File
	for _, u := range users {
		pair, err := s.authority.Client(u.name, strings.Fields(u.group)...)
		if err != nil {
			return nil, err
		}
		content, err := s.authority.Kubeconfig("https://"+apiAddress(), pair)
		if err != nil {
			return nil, err
		}
		files = append(files, node.File{Path: kubeconfigOf(u.program), Mode: 0o600, Content: content})
	}
	return files, nil
}

func kubeconfigOf(program string) string { return settings + "/" + program + ".kubeconfig" }

// nodeFiles are the files of every node; group is its control group.
func (s *secrets) nodeFiles(name, group string, c Config) ([]node.File, error) {
	files, err := s.kubeconfigs(
		user{serviceKubelet, "system:node:" + name, "system:nodes"}, user{serviceProxy, "system:kube-proxy", ""},
		user{agentUser, agentUser, masters}, user{serviceMultus, "multus", masters}, user{servicePolicy, "policy", masters},
	)
	return append(files, []node.File{
		{Path: settings + "/ca.crt", Mode: 0o644, Content: s.authority.Certificate()},
		{Path: settings + "/containerd.toml", Mode: 0o644, Content: []byte(containerdConfig())},
		{Path: settings + "/kubelet.yaml", Mode: 0o644, Content: []byte(kubeletConfig(group))},
		c.proxyFile(c.Proxy),
		{Path: "/run/resolv.conf", Mode: 0o644, Content: []byte("nameserver 127.0.0.1\n")},
		{Path: "/etc/machine-id", Mode: 0o444, Content: machineID(name)},
	}...), err
}

// machineID is what tells a node from the others that share its machine.
func machineID(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return fmt.Appendf(nil, "%x\n", sum[:16])
}

// controlFiles are what the node of the control plane has in addition to nodeFiles.
func (s *secrets) controlFiles() ([]node.File, error) {
	files, err := s.kubeconfigs(
		user{serviceManager, "system:kube-controller-manager", ""}, user{serviceScheduler, "system:kube-scheduler", ""}, user{serviceDNS, "coredns", masters},
	)
	return append(files, []node.File{
		{Path: settings + "/apiserver.crt", Mode: 0o644, Content: s.server.Certificate},
		{Path: settings + "/apiserver.key", Mode: 0o600, Content: s.server.Key},
		{Path: settings + "/admin.crt", Mode: 0o644, Content: s.admin.Certificate},
		{Path: settings + "/admin.key", Mode: 0o600, Content: s.admin.Key},
		{Path: settings + "/tokens.key", Mode: 0o600, Content: s.signing},
		{Path: settings + "/Corefile", Mode: 0o644, Content: []byte(corefile())},
	}...), err
}

// lostAfter is after what time without a word a node is taken to be lost, and wordsEvery four times the seconds between its words:
// both less than usual, so that tests need not wait for a minute.
const (
	lostAfter  = "20s"
	wordsEvery = "16"
)

// controlServices are the programs of the control plane.
func (c Config) controlServices() []node.Service {
	const at = "http://127.0.0.1:2379"
	manager, scheduler := kubeconfigOf(serviceManager), kubeconfigOf(serviceScheduler)
	return []node.Service{
		{Name: serviceEtcd, Args: []string{
			"etcd", "--data-dir=/var/lib/etcd", "--listen-client-urls=" + at, "--advertise-client-urls=" + at,
			// The cluster ends with its only member: there is nothing to be had back from the disk.
			"--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=warn",
		}},
		{Name: serviceAPI, Args: []string{
			"kube-apiserver", "--etcd-servers=" + at,
			"--advertise-address=" + nodeAddress(0).String(), "--bind-address=0.0.0.0", "--secure-port=" + apiPort,
			"--client-ca-file=" + settings + "/ca.crt",
			"--tls-cert-file=" + settings + "/apiserver.crt", "--tls-private-key-file=" + settings + "/apiserver.key",
			"--kubelet-client-certificate=" + settings + "/admin.crt", "--kubelet-client-key=" + settings + "/admin.key",
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + settings + "/tokens.key", "--service-account-signing-key-file=" + settings + "/tokens.key",
			"--service-cluster-ip-range=" + c.both(servicesPrefix, servicesPrefix6), "--authorization-mode=Node,RBAC", "--allow-privileged=true",
			"--endpoint-reconciler-type=lease",
		}},
		{Name: serviceManager, Args: []string{
			"kube-controller-manager", "--kubeconfig=" + manager, "--authentication-kubeconfig=" + manager, "--authorization-kubeconfig=" + manager,
			"--use-service-account-credentials", "--service-account-private-key-file=" + settings + "/tokens.key",
			"--root-ca-file=" + settings + "/ca.crt",
			"--allocate-node-cidrs=true", "--cluster-cidr=" + c.both(podsPrefix, podsPrefix6),
			"--leader-elect=false", "--bind-address=127.0.0.1",
			"--node-monitor-grace-period=" + lostAfter,
		}},
		{Name: serviceScheduler, Args: []string{
			"kube-scheduler", "--kubeconfig=" + scheduler, "--authentication-kubeconfig=" + scheduler, "--authorization-kubeconfig=" + scheduler,
			"--leader-elect=false", "--bind-address=127.0.0.1",
		}},
		{Name: serviceDNS, Args: []string{"coredns", "-conf", settings + "/Corefile"}},
	}
}

// nodeServices are the programs that any node may run.
func (c Config) nodeServices(m *member) []node.Service {
	kubelet := []string{
		"kubelet", "--config=" + settings + "/kubelet.yaml", "--kubeconfig=" + kubeconfigOf(serviceKubelet),
		"--hostname-override=" + m.name, "--node-ip=" + c.both(nodeAddress(m.number).String(), nodeAddress6(m.number).String()),
	}
	if m.number == 0 {
		kubelet = append(kubelet, "--register-with-taints=node-role.kubernetes.io/control-plane=:NoSchedule")
	}
	return []node.Service{
		{Name: serviceContainerd, Args: []string{"containerd", "--config", settings + "/containerd.toml"}},
		{Name: serviceKubelet, Args: kubelet},
		{Name: serviceProxy, Args: []string{"kube-proxy", "--config=" + settings + "/kube-proxy.yaml", "--hostname-override=" + m.name}},
		{Name: servicePolicy, Args: []string{
			"kube-network-policies", "--kubeconfig=" + kubeconfigOf(servicePolicy), "--hostname-override=" + m.name,
		}},
	}
}

// services are the programs that a node can run under the present CNI.
func (s *supervisor) services(m *member) []node.Service {
	all := s.config.nodeServices(m)
	at := slices.IndexFunc(all, func(one node.Service) bool { return one.Name == servicePolicy })
	all = slices.Insert(all, at, s.agents(s.config.CNI, m)...)
	if m.number == 0 {
		all = append(all, s.config.controlServices()...)
	}
	return all
}

// running are the names of those that run with the present mode of kube-proxy and policy engine.
func (s *supervisor) running(m *member) (names []string) {
	for _, one := range s.services(m) {
		if (one.Name != serviceProxy || s.config.Proxy != NoProxy) && (one.Name != servicePolicy || s.config.Policy == KubeNetworkPolicies) {
			names = append(names, one.Name)
		}
	}
	return names
}

// start starts programs of a node.
func (s *supervisor) start(m *member, names ...string) error {
	for _, one := range s.services(m) {
		if slices.Contains(names, one.Name) {
			if err := m.node.StartService(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// containerdText has what it takes where the right to raise priorities in the face of want of memory is missing.
//
//go:embed files/containerd.toml
var containerdText string

func containerdConfig() string {
	return filled(containerdText, "{socket}", socket, "{image}", image.Reference, "{plugins}", cniPlugins, "{networks}", cniConf)
}

// filled is a text with words in the places of names.
func filled(text string, words ...string) string { return strings.NewReplacer(words...).Replace(text) }

// kubeletText keeps a kubelet to its control group, and from writing settings of the machine. Images are never removed for want
// of room: there is no registry from which they would come back. A node's prefix has addresses for 253 pods.
//
//go:embed files/kubelet.yaml
var kubeletText string

func kubeletConfig(group string) string {
	return filled(kubeletText, "{settings}", settings, "{socket}", socket, "{group}", group, "{domain}", clusterDomain, "{dns}", dnsAddress,
		"{lease}", wordsEvery)
}

//go:embed files/kube-proxy.yaml
var proxyText string

// proxyFile configures kube-proxy to leave the machine's connection tracking as it is.
func (c Config) proxyFile(mode Proxy) node.File {
	text := filled(proxyText, "{kubeconfig}", kubeconfigOf(serviceProxy), "{mode}", string(mode), "{pods}", c.both(podsPrefix, podsPrefix6))
	return node.File{Path: settings + "/kube-proxy.yaml", Mode: 0o644, Content: []byte(text)}
}

const (
	serviceDNS = "coredns"
	// dnsAddress is where pods ask for names.
	dnsAddress    = "10.96.0.10"
	clusterDomain = "cluster.local"
	dnsPort       = 53
	dnsReady      = "http://127.0.0.1:8181/ready"
)

//go:embed files/Corefile
var corefileText string

// corefile configures a name server that knows no names but the cluster's.
func corefile() string {
	return filled(corefileText, "{port}", strconv.Itoa(dnsPort), "{domain}", clusterDomain, "{kubeconfig}", kubeconfigOf(serviceDNS))
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
