package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/extras/cluster/node"
)

const (
	serviceFelix = "calico-felix"
	// serviceTunnels keeps an address for the node's end of tunnels.
	serviceTunnels = "calico-tunnel-addresses"

	calicoHealth = "http://127.0.0.1:9099/readiness"
	calicoDevice = "vxlan.calico"
	// calicoPool is the pool of addresses of pods, which says how their packets travel.
	calicoPool = "/apis/crd.projectcalico.org/v1/ippools/default-ipv4-ippool"
	// annotationTunnel is where Calico notes the address of a node's end of tunnels, which is one of the node's pods' addresses.
	annotationTunnel = "projectcalico.org/IPv4VXLANTunnelAddr"
)

// encapsulates is Calico's word for when packets are encapsulated. The nodes are in one subnet.
func (c CNI) encapsulates() string {
	if c == CalicoVXLAN {
		return "Always"
	}
	return "CrossSubnet"
}

// calicoSettings are the settings of Calico's programs on a node. Some are what its own manifest has for VXLAN.
func calicoSettings(m *member) []string {
	return []string{
		"DATASTORE_TYPE=kubernetes", "KUBECONFIG=" + kubeconfigOf(agentUser), "WAIT_FOR_DATASTORE=true", "NODENAME=" + m.name,
		"CALICO_NETWORKING_BACKEND=vxlan", "CLUSTER_TYPE=k8s", "IP=autodetect", "IP_AUTODETECTION_METHOD=interface=" + uplink,
		"CALICO_IPV4POOL_CIDR=" + podsPrefix, "CALICO_IPV4POOL_IPIP=Never", "CALICO_DISABLE_FILE_LOGGING=true",
		"FELIX_DEFAULTENDPOINTTOHOSTACTION=ACCEPT", "FELIX_IPV6SUPPORT=false", "FELIX_HEALTHENABLED=true", "FELIX_USAGEREPORTINGENABLED=false",
		// Without C it has no programs of eBPF, and ends itself where it would take them away.
		"FELIX_DebugSkipCTLBCleanup=true", "FELIX_XDPENABLED=false",
		"FELIX_LOGSEVERITYFILE=none", "FELIX_LOGSEVERITYSYS=none", "FELIX_VXLANMTU=0",
	}
}

// calicoAgents are Calico's programs on a node. The first ends itself when its configuration changes, and wants to be started again.
func calicoAgents(m *member) []node.Service {
	return []node.Service{
		{Name: serviceFelix, Env: calicoSettings(m), Args: []string{productFolder + "/calico-node", "-felix"}},
		{Name: serviceTunnels, Env: calicoSettings(m), Args: []string{productFolder + "/calico-node", "-allocate-tunnel-addrs"}},
	}
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
		command := append([]string{"env", "CALICO_IPV4POOL_VXLAN=" + c.encapsulates()}, calicoSettings(m)...)
		if _, err := m.node.Run(append(command, productFolder+"/calico-node", "-startup")...); err != nil {
			return fmt.Errorf("have Calico know node %s: %w", m.name, err)
		}
		return m.node.Write(files)
	})
}
