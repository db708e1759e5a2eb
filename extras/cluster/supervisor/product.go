package supervisor

import (
	"errors"
	"os/exec"
	"path/filepath"

	"netdelta/extras/cluster/node"
)

const (
	// productFolder is where nodes see the programs of the CNI's product.
	productFolder = "/opt/netdelta/cni"
	// agentUser is the user by which agents of CNIs are known to the API server.
	agentUser = "cni"
)

// plugins are the names of a product's own plugins.
func (p Product) plugins() []string {
	switch p {
	case Calico:
		return []string{"calico", "calico-ipam"}
	case Cilium:
		return []string{"cilium-cni"}
	}
	return nil
}

// agents are the programs by which a CNI is in effect on a node.
func (s *supervisor) agents(c CNI, m *member) []node.Service {
	switch c.Product() {
	case Calico:
		return calicoAgents(c, m)
	case Cilium:
		return ciliumAgents(m)
	}
	if c == Bridge {
		return nil
	}
	return []node.Service{{Name: serviceFlannel, Env: []string{"NODE_NAME=" + m.name}, Args: []string{
		"flanneld", "--kube-subnet-mgr", "--kubeconfig-file=" + kubeconfigOf(agentUser), "--iface=" + uplink,
		"--ip-masq", "--iptables-forward-rules=false", "--net-config-path=" + settings + "/flannel.json",
	}}}
}

// startAgents starts the programs of a CNI on a node.
func (s *supervisor) startAgents(c CNI, m *member) error {
	for _, a := range s.agents(c, m) {
		if err := m.node.StartService(a); err != nil {
			return err
		}
	}
	return nil
}

// endAgents ends those that run. They are killed, as when their node loses its power: what they left, they take up.
func (s *supervisor) endAgents(c CNI, m *member) error {
	var names []string
	for _, a := range s.agents(c, m) {
		names = append(names, a.Name)
	}
	return m.node.EndServices(names...)
}

// equip adds to a node what the cluster's product needs there.
func (s *supervisor) equip(m *member, spec *node.Spec) error {
	product := s.config.CNI.Product()
	if product == NoProduct {
		return nil
	}
	spec.Binds = append(spec.Binds, node.Bind{From: s.product, To: productFolder, ReadOnly: true})
	for _, name := range product.plugins() {
		// Calico's plugins are one program, which looks at its name.
		program := name
		if product == Calico {
			program = "calico"
		}
		spec.Links[filepath.Join(cniPlugins, name)] = filepath.Join(productFolder, program)
	}
	if product != Cilium {
		return nil
	}
	compiler, err := clang()
	if err != nil {
		return err
	}
	spec.Links[ciliumTools+"/clang"] = compiler
	// What Cilium attaches to control groups is attached to the node's own, and never to the machine's, which a new mount would show.
	group, err := unifiedGroup(s.folder.Mark(), m.name)
	if err != nil {
		return err
	}
	spec.Binds = append(spec.Binds, node.Bind{From: group, To: ciliumGroups})
	return nil
}

// clang is the compiler of eBPF programs on this machine.
func clang() (string, error) {
	for _, name := range []string{"clang", "clang-14"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", errors.New("find clang, by which Cilium compiles for its devices: it is missing; 'make setup' installs it")
}
