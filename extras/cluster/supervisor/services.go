package supervisor

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"net"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v4"

	"netdelta/extras/cluster/image"
	"netdelta/extras/cluster/node"
	"netdelta/extras/cluster/pki"
)

// Folders and files of nodes.
const (
	settings   = "/etc/kubernetes"
	cniConf    = "/run/cni/net.d"
	cniPlugins = "/run/cni/bin"
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
		// What it has in addition it takes where the right to raise priorities in the face of want of memory is missing.
		{Path: settings + "/containerd.toml", Mode: 0o644, Content: rendered("containerd.toml", map[string]any{"image": image.Reference})},
		// It keeps a kubelet to its control group, and from writing settings of the machine. Images are never removed for want of room: there
		// is no registry from which they would come back. A node's prefix has addresses for 253 pods.
		{Path: settings + "/kubelet.yaml", Mode: 0o644, Content: rendered("kubelet.yaml", map[string]any{"group": group})},
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
		// A name server that knows no names but the cluster's, and the service that leads to it.
		{Path: settings + "/Corefile", Mode: 0o644, Content: rendered("Corefile", nil)},
		{Path: settings + "/kube-dns.yaml", Mode: 0o644, Content: rendered("kube-dns.yaml", map[string]any{"address": nodeAddress(0)})},
	}...), err
}

// files are the configurations of the programs of nodes, some of them templates. They name the folders and addresses of this package.
//
//go:embed files
var files embed.FS

// rendered is one of the files, with words in the places of their names.
func rendered(name string, words map[string]any) []byte {
	var b bytes.Buffer
	t := template.Must(template.ParseFS(files, "files/"+name))
	if err := t.Option("missingkey=error").Execute(&b, words); err != nil {
		panic(err) // a mistake in the file, which its test finds
	}
	return b.Bytes()
}

// programs are the services of a node, in the order in which they are told. Agents are those by which a CNI is in effect.
type programs struct{ First, Agents, Last []node.Service }

// programs are those that a node can run under a CNI.
func (s *supervisor) programs(c CNI, m *member) (p programs) {
	err := yaml.Load(rendered("services.yaml", map[string]any{
		"node": m.name, "control": m.number == 0, "cni": c, "product": c.Product(), "path": node.Path, "api": nodeAddress(0), "pool": podsPrefix,
		"address": s.config.both(nodeAddress(m.number).String(), nodeAddress6(m.number).String()),
		"pods":    s.config.both(podsPrefix, podsPrefix6), "services": s.config.both(servicesPrefix, servicesPrefix6),
	}), &p, yaml.WithKnownFields())
	if err != nil {
		panic(err) // as above
	}
	return p
}

// services are the programs that a node can run under the present CNI.
func (s *supervisor) services(m *member) []node.Service {
	p := s.programs(s.config.CNI, m)
	return slices.Concat(p.First, p.Agents, p.Last)
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

// proxyFile configures kube-proxy to leave the machine's connection tracking as it is.
func (c Config) proxyFile(mode Proxy) node.File {
	words := map[string]any{"mode": mode, "pods": c.both(podsPrefix, podsPrefix6)}
	return node.File{Path: settings + "/kube-proxy.yaml", Mode: 0o644, Content: rendered("kube-proxy.yaml", words)}
}

const (
	serviceDNS = "coredns"
	dnsReady   = "http://127.0.0.1:8181/ready"
)

// startDNS starts the name server on the control plane's node, and a service that leads to it.
func (s *supervisor) startDNS(ctx context.Context) error {
	control := s.members[0]
	if err := s.start(control, serviceDNS); err != nil {
		return err
	}
	if err := s.kubectl("create", "-f", settings+"/kube-dns.yaml"); err != nil {
		return fmt.Errorf("make the service of the name server: %w", err)
	}
	return until(ctx, "the name server", func(ctx context.Context) error {
		_, err := get(ctx, control.space, dnsReady)
		return err
	})
}

// kubectl has the control plane's node carry a command out as a user that may do anything.
func (s *supervisor) kubectl(arguments ...string) error {
	_, err := s.members[0].node.Run(append([]string{"kubectl", "--kubeconfig=" + kubeconfigOf(agentUser)}, arguments...)...)
	return err
}
