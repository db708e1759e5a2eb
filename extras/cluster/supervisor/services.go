package supervisor

import (
	"crypto/sha256"
	"fmt"
	"net"

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
	s.admin, err = authority.Client("admin", "system:masters")
	return s, err
}

// apiAddress is where nodes reach the API server.
func apiAddress() string { return net.JoinHostPort(nodeAddress(0).String(), apiPort) }

// kubeconfig is the file by which a program of a node reaches the API server as user.
func (s *secrets) kubeconfig(program, user string, groups ...string) (node.File, error) {
	pair, err := s.authority.Client(user, groups...)
	if err != nil {
		return node.File{}, err
	}
	content, err := s.authority.Kubeconfig("https://"+apiAddress(), pair)
	return node.File{Path: kubeconfigOf(program), Mode: 0o600, Content: content}, err
}

func kubeconfigOf(program string) string { return settings + "/" + program + ".kubeconfig" }

// nodeFiles are the files of every node; group is its control group.
func (s *secrets) nodeFiles(name, group string, c Config) ([]node.File, error) {
	kubelet, err := s.kubeconfig(serviceKubelet, "system:node:"+name, "system:nodes")
	if err != nil {
		return nil, err
	}
	proxyUser, err := s.kubeconfig(serviceProxy, "system:kube-proxy")
	if err != nil {
		return nil, err
	}
	flannel, err := s.kubeconfig(serviceFlannel, "flannel", "system:masters")
	if err != nil {
		return nil, err
	}
	policy, err := s.kubeconfig(servicePolicy, "policy", "system:masters")
	if err != nil {
		return nil, err
	}
	multus, err := s.kubeconfig(serviceMultus, "multus", "system:masters")
	if err != nil {
		return nil, err
	}
	return []node.File{
		kubelet, proxyUser, flannel, multus, policy,
		{Path: settings + "/ca.crt", Mode: 0o644, Content: s.authority.Certificate()},
		{Path: settings + "/containerd.toml", Mode: 0o644, Content: []byte(containerdConfig())},
		{Path: settings + "/kubelet.yaml", Mode: 0o644, Content: []byte(kubeletConfig(group))},
		c.proxyFile(c.Proxy),
		{Path: "/run/resolv.conf", Mode: 0o644, Content: []byte("nameserver 127.0.0.1\n")},
		{Path: "/etc/machine-id", Mode: 0o444, Content: machineID(name)},
	}, nil
}

// machineID is what tells a node from the others that share its machine.
func machineID(name string) []byte {
	sum := sha256.Sum256([]byte(name))
	return fmt.Appendf(nil, "%x\n", sum[:16])
}

// controlFiles are those of the node of the control plane, beside nodeFiles.
func (s *secrets) controlFiles() ([]node.File, error) {
	manager, err := s.kubeconfig(serviceManager, "system:kube-controller-manager")
	if err != nil {
		return nil, err
	}
	scheduler, err := s.kubeconfig(serviceScheduler, "system:kube-scheduler")
	if err != nil {
		return nil, err
	}
	return []node.File{
		manager, scheduler,
		{Path: settings + "/apiserver.crt", Mode: 0o644, Content: s.server.Certificate},
		{Path: settings + "/apiserver.key", Mode: 0o600, Content: s.server.Key},
		{Path: settings + "/admin.crt", Mode: 0o644, Content: s.admin.Certificate},
		{Path: settings + "/admin.key", Mode: 0o600, Content: s.admin.Key},
		{Path: settings + "/tokens.key", Mode: 0o600, Content: s.signing},
	}, nil
}

func etcd() node.Service {
	const at = "http://127.0.0.1:2379"
	return node.Service{Name: serviceEtcd, Args: []string{
		"etcd", "--data-dir=/var/lib/etcd", "--listen-client-urls=" + at, "--advertise-client-urls=" + at,
		// The cluster ends with its only member: there is nothing to be had back from the disk.
		"--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync", "--log-level=warn",
	}}
}

func apiServer(c Config) node.Service {
	return node.Service{Name: serviceAPI, Args: []string{
		"kube-apiserver", "--etcd-servers=http://127.0.0.1:2379",
		"--advertise-address=" + nodeAddress(0).String(), "--bind-address=0.0.0.0", "--secure-port=" + apiPort,
		"--client-ca-file=" + settings + "/ca.crt",
		"--tls-cert-file=" + settings + "/apiserver.crt", "--tls-private-key-file=" + settings + "/apiserver.key",
		"--kubelet-client-certificate=" + settings + "/admin.crt", "--kubelet-client-key=" + settings + "/admin.key",
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + settings + "/tokens.key", "--service-account-signing-key-file=" + settings + "/tokens.key",
		"--service-cluster-ip-range=" + c.both(servicesPrefix, servicesPrefix6), "--authorization-mode=Node,RBAC", "--allow-privileged=true",
		"--endpoint-reconciler-type=lease",
	}}
}

// lostAfter is after what time without a word a node is taken to be lost, and wordsEvery four times the seconds between its words:
// both less than usual, so that tests need not wait for a minute.
const (
	lostAfter  = "20s"
	wordsEvery = "16"
)

func controllerManager(c Config) node.Service {
	kubeconfig := kubeconfigOf(serviceManager)
	return node.Service{Name: serviceManager, Args: []string{
		"kube-controller-manager", "--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--use-service-account-credentials", "--service-account-private-key-file=" + settings + "/tokens.key",
		"--root-ca-file=" + settings + "/ca.crt",
		"--allocate-node-cidrs=true", "--cluster-cidr=" + c.both(podsPrefix, podsPrefix6),
		"--leader-elect=false", "--bind-address=127.0.0.1",
		"--node-monitor-grace-period=" + lostAfter,
	}}
}

func scheduler() node.Service {
	kubeconfig := kubeconfigOf(serviceScheduler)
	return node.Service{Name: serviceScheduler, Args: []string{
		"kube-scheduler", "--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1",
	}}
}

func containerd() node.Service {
	return node.Service{Name: serviceContainerd, Args: []string{"containerd", "--config", settings + "/containerd.toml"}}
}

func kubelet(c Config, number int) node.Service {
	args := []string{
		"kubelet", "--config=" + settings + "/kubelet.yaml", "--kubeconfig=" + kubeconfigOf(serviceKubelet),
		"--hostname-override=" + nodeName(number), "--node-ip=" + c.both(nodeAddress(number).String(), nodeAddress6(number).String()),
	}
	if number == 0 {
		args = append(args, "--register-with-taints=node-role.kubernetes.io/control-plane=:NoSchedule")
	}
	return node.Service{Name: serviceKubelet, Args: args}
}

func kubeProxy(name string) node.Service {
	return node.Service{Name: serviceProxy, Args: []string{
		"kube-proxy", "--config=" + settings + "/kube-proxy.yaml", "--hostname-override=" + name,
	}}
}

func flanneld(name string) node.Service {
	return node.Service{Name: serviceFlannel, Env: []string{"NODE_NAME=" + name}, Args: []string{
		"flanneld", "--kube-subnet-mgr", "--kubeconfig-file=" + kubeconfigOf(serviceFlannel), "--iface=" + uplink,
		"--ip-masq", "--iptables-forward-rules=false", "--net-config-path=" + settings + "/flannel.json",
	}}
}

// services are those of a node, under the present CNI.
func (s *supervisor) services(m *member) []node.Service {
	all := []node.Service{containerd(), kubelet(s.config, m.number), kubeProxy(m.name)}
	if m.number == 0 {
		all = append(all, etcd(), apiServer(s.config), controllerManager(s.config), scheduler(), coreDNS())
	}
	if s.config.CNI != Bridge {
		all = append(all, flanneld(m.name))
	}
	if s.config.Policy == KubeNetworkPolicies {
		all = append(all, policyEngine(m.name))
	}
	return all
}

// containerdConfig has what it takes where the right to raise priorities in the face of want of memory is missing.
func containerdConfig() string {
	return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "` + socket + `"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + image.Reference + `"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "` + cniPlugins + `"
    conf_dir = "` + cniConf + `"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`
}

// kubeletConfig keeps a kubelet to its control group, and from writing settings of the machine. Images are never removed for want
// of room: there is no registry from which they would come back. A node's prefix has addresses for 253 pods.
func kubeletConfig(group string) string {
	return `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: ` + settings + `/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: cgroupfs
cgroupRoot: ` + group + `
failCgroupV1: false
enforceNodeAllocatable: [pods]
clusterDomain: ` + clusterDomain + `
clusterDNS: [` + dnsAddress + `]
resolvConf: /run/resolv.conf
failSwapOn: false
maxPods: 250
nodeLeaseDurationSeconds: ` + wordsEvery + `
oomScoreAdj: 0
protectKernelDefaults: true
imageGCHighThresholdPercent: 100
evictionHard: {imagefs.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", memory.available: "50Mi"}
`
}

// proxyFile configures kube-proxy to leave the machine's connection tracking as it is.
func (c Config) proxyFile(mode Proxy) node.File {
	return node.File{Path: settings + "/kube-proxy.yaml", Mode: 0o644, Content: []byte(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection: {kubeconfig: ` + kubeconfigOf(serviceProxy) + `}
mode: ` + string(mode) + `
clusterCIDR: ` + c.both(podsPrefix, podsPrefix6) + `
oomScoreAdj: 0
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`)}
}
