package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/extras/cluster/node"
)

const (
	serviceFelix = "calico-felix"
	// serviceTunnels keeps an address for the node's end of tunnels.
	serviceTunnels = "calico-tunnel-addresses"
	// serviceConfd tells serviceBird, which exchanges routes with the other nodes, what it is to do.
	serviceConfd = "calico-confd"
	serviceBird  = "bird"

	birdSocket = "/run/calico/bird.ctl"
	confdFiles = "/etc/calico/confd"

	calicoHealth = "http://127.0.0.1:9099/readiness"
	calicoDevice = "vxlan.calico"
	// calicoPool is the pool of addresses of pods, which says how their packets travel.
	calicoPool = "/apis/crd.projectcalico.org/v1/ippools/default-ipv4-ippool"
	// annotationTunnel is where Calico notes the address of a node's end of tunnels, which is one of the node's pods' addresses.
	annotationTunnel = "projectcalico.org/IPv4VXLANTunnelAddr"
)

// encapsulates is Calico's word for when packets are encapsulated. The nodes are in one subnet.
func (c CNI) encapsulates() string {
	switch c {
	case CalicoVXLAN:
		return "Always"
	case CalicoBGP:
		return "Never"
	}
	return "CrossSubnet"
}

// calicoSettings are the settings of Calico's programs on a node. Some are what its own manifest has for VXLAN.
func calicoSettings(c CNI, m *member) []string {
	backend, tunnels := "vxlan", "true"
	if c == CalicoBGP {
		backend, tunnels = "bird", "false"
	}
	return []string{
		"DATASTORE_TYPE=kubernetes", "KUBECONFIG=" + kubeconfigOf(agentUser), "WAIT_FOR_DATASTORE=true", "NODENAME=" + m.name,
		"CALICO_NETWORKING_BACKEND=" + backend, "FELIX_VXLANENABLED=" + tunnels, "CLUSTER_TYPE=k8s", "IP=autodetect", "IP_AUTODETECTION_METHOD=interface=" + uplink,
		"CALICO_IPV4POOL_CIDR=" + podsPrefix, "CALICO_IPV4POOL_IPIP=Never", "CALICO_DISABLE_FILE_LOGGING=true",
		"FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT", "FELIX_IPV6SUPPORT=false", "FELIX_HEALTHENABLED=true", "FELIX_USAGEREPORTINGENABLED=false",
		// Without C it has no programs of eBPF, and ends itself where it would take them away.
		"FELIX_DebugSkipCTLBCleanup=true", "FELIX_XDPENABLED=false",
		"FELIX_LOGSEVERITYFILE=none", "FELIX_LOGSEVERITYSYS=none", "FELIX_VXLANMTU=0",
	}
}

// calicoAgents are Calico's programs on a node. The first ends itself when its configuration changes, and wants to be started again.
func calicoAgents(c CNI, m *member) []node.Service {
	one := func(name, part string) node.Service {
		return node.Service{Name: name, Env: calicoSettings(c, m), Args: []string{productFolder + "/calico-node", part}}
	}
	felix := one(serviceFelix, "-felix")
	if c != CalicoBGP {
		return []node.Service{felix, one(serviceTunnels, "-allocate-tunnel-addrs")}
	}
	// Until its files are written it ends, and is started again.
	bird := node.Service{Name: serviceBird, Args: []string{"bird", "-R", "-d", "-s", birdSocket, "-P", "/run/bird.pid", "-c", confdFiles + "/config/bird.cfg"}}
	return []node.Service{felix, one(serviceConfd, "-confd"), bird}
}

// calicoConflist configures the plugins of a node. Calico finds the MTU out.
func calicoConflist(m *member) (node.File, error) {
	content, err := json.MarshalIndent(map[string]any{"cniVersion": "0.3.1", "name": "k8s-pod-network", "plugins": []any{
		map[string]any{
			"type": "calico", "log_level": "info", "log_file_path": node.LogFolder + "/calico-cni.log", "datastore_type": "kubernetes",
			"nodename": m.name, "mtu": 0, "ipam": map[string]string{"type": "calico-ipam"}, "policy": map[string]string{"type": "k8s"},
			"kubernetes": map[string]string{"kubeconfig": kubeconfigOf(agentUser)},
		},
		map[string]any{"type": "portmap", "snat": true, "capabilities": map[string]bool{"portMappings": true}},
	}}, "", "  ")
	return node.File{Path: cniConf + "/10-calico.conflist", Mode: 0o644, Content: append(content, '\n')}, err
}

// enterCalico brings a mode of Calico into effect.
func (s *supervisor) enterCalico(ctx context.Context, c CNI) error {
	fresh, err := s.poolCalico(ctx, c)
	if err != nil {
		return err
	}
	if fresh {
		if err := s.installCalico(c); err != nil {
			return err
		}
	}
	if err := s.each(func(m *member) error { return s.startAgents(c, m) }); err != nil {
		return err
	}
	device := uplink
	if c == CalicoVXLAN {
		device = calicoDevice
	}
	return s.await(ctx, "node %s to reach the pods of the others by "+string(c), func(ctx context.Context, m *member) error {
		if _, err := get(ctx, m.space, calicoHealth); err != nil {
			return err
		}
		if c == CalicoBGP {
			return s.meshed(m)
		}
		return s.each(func(peer *member) error {
			if peer == m {
				return nil
			}
			n, err := s.api.CoreV1().Nodes().Get(ctx, peer.name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			address := net.ParseIP(n.Annotations[annotationTunnel])
			if address == nil {
				return errors.New(peer.name + " has no address for its end of tunnels yet")
			}
			return m.space.Do(func() error { return leavesBy(address, device) })
		})
	})
}

// meshed says so unless a node exchanges routes with all others. It has one to another's pods when that has some.
func (s *supervisor) meshed(m *member) error {
	said, err := m.node.Run("birdc", "-s", birdSocket, "show", "protocols")
	if err != nil {
		return err
	}
	if n := strings.Count(said, "Established"); n != len(s.members)-1 {
		return fmt.Errorf("it exchanges routes with %d of %d nodes", n, len(s.members)-1)
	}
	return nil
}

// poolCalico has the pool of addresses say how packets travel in a mode. It reports whether there is none yet.
func (s *supervisor) poolCalico(ctx context.Context, c CNI) (fresh bool, err error) {
	patch := fmt.Sprintf(`{"spec":{"vxlanMode":%q}}`, c.encapsulates())
	err = s.api.CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(calicoPool).Body([]byte(patch)).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("have Calico's pool of addresses say %s: %w", c.encapsulates(), err)
	}
	return false, nil
}

// installCalico defines Calico's kinds of objects, makes the nodes' and the pool, and has the plugins called.
func (s *supervisor) installCalico(c CNI) error {
	control := s.members[0].node
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-f", productFolder + "/crds.yaml"},
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", productFolder + "/crds.yaml"},
	} {
		if _, err := control.Run(append([]string{"kubectl", "--kubeconfig=" + kubeconfigOf(agentUser)}, arguments...)...); err != nil {
			return fmt.Errorf("define Calico's objects: %w", err)
		}
	}
	return s.each(func(m *member) error {
		files, err := calicoConflist(m)
		if err != nil {
			return err
		}
		command := append([]string{"env", "CALICO_IPV4POOL_VXLAN=" + c.encapsulates()}, calicoSettings(c, m)...)
		if _, err := m.node.Run(append(command, productFolder+"/calico-node", "-startup")...); err != nil {
			return fmt.Errorf("have Calico know node %s: %w", m.name, err)
		}
		if _, err := m.node.Run("sh", "-c", "mkdir -p /run/calico /etc/calico && cp -r "+productFolder+"/confd "+confdFiles+" && mkdir -p "+confdFiles+"/config"); err != nil {
			return fmt.Errorf("copy the templates of Calico: %w", err)
		}
		return m.node.Write(files)
	})
}
