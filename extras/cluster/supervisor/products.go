package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/extras/cluster/node"
)

const (
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
			n, err := s.api.Nodes.Get(ctx, peer.name, metav1.GetOptions{})
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
	err = s.api.REST.Patch(types.MergePatchType).AbsPath(calicoPool).Body([]byte(patch)).Do(ctx).Error()
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
	for _, arguments := range [][]string{
		{"apply", "--server-side", "-f", productFolder + "/crds.yaml"},
		{"wait", "--for=condition=Established", "--timeout=60s", "-f", productFolder + "/crds.yaml"},
	} {
		if err := s.kubectl(arguments...); err != nil {
			return fmt.Errorf("define Calico's objects: %w", err)
		}
	}
	return s.each(func(m *member) error {
		command := append([]string{"env", "CALICO_IPV4POOL_VXLAN=" + c.encapsulates()}, s.programs(c, m).Agents[0].Env...)
		if _, err := m.node.Run(append(command, productFolder+"/calico-node", "-startup")...); err != nil {
			return fmt.Errorf("have Calico know node %s: %w", m.name, err)
		}
		if _, err := m.node.Run("sh", "-c", "mkdir -p /run/calico /etc/calico && cp -r "+productFolder+"/confd "+confdFiles+" && mkdir -p "+confdFiles+"/config"); err != nil {
			return fmt.Errorf("copy the templates of Calico: %w", err)
		}
		// It configures the plugins. Calico finds the MTU out.
		conf := rendered("calico.conflist", map[string]any{"node": m.name})
		return m.node.Write(node.File{Path: cniConf + "/10-calico.conflist", Mode: 0o644, Content: conf})
	})
}

const (
	// ciliumConfig is the ConfigMap with the options of its agents.
	ciliumConfig = "cilium-config"
	// ciliumGroups is where a node's agent finds the control groups that it may attach programs to.
	ciliumGroups = "/run/cilium/cgroupv2"
	// ciliumTools are programs that the agent looks for under other names than the machine has them.
	ciliumTools   = "/run/cilium/tools"
	ciliumPlugins = cniConf + "/05-cilium.conflist"
	ciliumHealth  = "http://127.0.0.1:9879/healthz"
	// ciliumDevice is by what packets leave a node for the pods of another where they are encapsulated: a program of it does that.
	ciliumDevice = "cilium_host"
)

// ciliumOptions are the options of Cilium's agents for a mode. The file has those where packets are encapsulated; what it leaves out needs a kernel or a
// program that is not there.
func ciliumOptions(c CNI) map[string]string {
	options := map[string]string{}
	for line := range strings.Lines(string(rendered("cilium.conf", nil))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		options[name] = value
	}
	if c != CiliumVXLAN {
		delete(options, "tunnel-protocol")
		maps.Copy(options, map[string]string{
			"routing-mode": "native", "auto-direct-node-routes": "true", "ipv4-native-routing-cidr": podsPrefix,
		})
	}
	if c == CiliumEBPF {
		maps.Copy(options, map[string]string{
			"kube-proxy-replacement": "true", "bpf-lb-sock": "true", "enable-bpf-masquerade": "true",
		})
	}
	return options
}

// enterCilium brings a mode of Cilium into effect.
func (s *supervisor) enterCilium(ctx context.Context, c CNI) error {
	if err := s.publish(ctx, ciliumConfig, ciliumOptions(c)); err != nil {
		return err
	}
	// The agent writes what it finds out of the kernel into the folder of the sources that it compiles.
	const sources = "test -e /var/lib/cilium/bpf || { mkdir -p /var/lib/cilium && cp -r " + productFolder + "/bpf /var/lib/cilium/bpf; }"
	if err := s.each(func(m *member) error {
		if _, err := m.node.Run("sh", "-c", sources); err != nil {
			return fmt.Errorf("copy the sources of Cilium's programs: %w", err)
		}
		return s.startAgents(c, m)
	}); err != nil {
		return err
	}
	device := uplink
	if c == CiliumVXLAN {
		device = ciliumDevice
	}
	return s.await(ctx, "node %s to reach the pods of the others by "+string(c), func(ctx context.Context, m *member) error {
		if _, err := get(ctx, m.space, ciliumHealth); err != nil {
			return err
		}
		if _, err := m.node.Run("test", "-s", ciliumPlugins); err != nil {
			return err
		}
		if err := m.regenerated(); err != nil {
			return err
		}
		return m.space.Do(func() error {
			return s.peers(m, func(_ *member, pods *net.IPNet, _ net.IP) error { return leavesBy(host(pods, 2), device) })
		})
	})
}

// regenerated says so unless all pods of a node have the programs of the agent's present options. The agent calls itself healthy before.
func (m *member) regenerated() error {
	states, err := m.node.Run(productFolder+"/cilium-dbg", "endpoint", "list", "-o", "jsonpath={[*].status.state}")
	if err != nil {
		return err
	}
	all := strings.Fields(states)
	if len(all) == 0 || slices.ContainsFunc(all, func(state string) bool { return state != "ready" }) {
		return fmt.Errorf("the endpoints of Cilium are %q", all)
	}
	return nil
}
