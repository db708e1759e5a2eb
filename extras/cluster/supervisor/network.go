package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"netdelta/extras/cluster/node"
)

const (
	// overhead is what VXLAN adds to a packet over IPv4.
	overhead = 50
	// plainMTU is the MTU of the links between nodes.
	plainMTU = 1500

	vxlanDevice = "flannel.1"
	// annotation is where flanneld keeps what the others must know of a node.
	annotation        = "flannel.alpha.coreos.com/"
	annotationBackend = annotation + "backend-type"
)

// podsMTU is the largest packet that pods may send under a CNI.
func (c CNI) podsMTU() int {
	if c == FlannelVXLAN {
		return plainMTU - overhead
	}
	return plainMTU
}

// peerDevice is the device by which packets leave a node for the pods of another.
func (c CNI) peerDevice() string {
	if c == FlannelVXLAN {
		return vxlanDevice
	}
	return uplink
}

// conflist configures the plugins of a node whose pods have these prefixes. Its name is always the same: addresses of pods are recorded
// under it, and pods outlive a change of the CNI.
func (c CNI) conflist(prefixes ...*net.IPNet) node.File {
	// The flannel plugin speaks no newer version than the file's.
	words := map[string]any{"cni": c, "bridge": podBridge, "prefixes": prefixes}
	return node.File{Path: cniConf + "/10-pods.conflist", Mode: 0o644, Content: rendered("pods.conflist", words)}
}

// prefixes are the prefixes of the node's pods.
func (m *member) prefixes() []*net.IPNet {
	if m.pods6 == nil {
		return []*net.IPNet{m.pods}
	}
	return []*net.IPNet{m.pods, m.pods6}
}

// flannelFile says to flanneld how packets travel.
func (c CNI) flannelFile() node.File {
	return node.File{Path: settings + "/flannel.json", Mode: 0o644,
		Content: fmt.Appendf(nil, "{\"Network\": %q, \"Backend\": {\"Type\": %q}}\n", podsPrefix, c.backend())}
}

// enterNetwork brings a CNI into effect on nodes on which none runs, and returns when each reaches the pods of all others by it.
func (s *supervisor) enterNetwork(ctx context.Context, c CNI) error {
	switch c.Product() {
	case Calico:
		return s.enterCalico(ctx, c)
	case Cilium:
		return s.enterCilium(ctx, c)
	}
	if s.config.Multus == MultusOn {
		if err := s.define(ctx); err != nil {
			return err
		}
	}
	if err := s.each(func(m *member) error {
		err := m.node.Write(append(m.cniFiles(c, s.config.Multus), c.flannelFile())...)
		if err != nil {
			return err
		}
		if c == Bridge {
			err = m.space.Do(func() error { return s.routePeers(m) })
		} else {
			err = s.startAgents(c, m)
		}
		if err != nil {
			return fmt.Errorf("bring %s into effect on node %s: %w", c, m.name, err)
		}
		return nil
	}); err != nil {
		return err
	}
	return s.await(ctx, "node %s to reach the pods of the others by "+string(c), func(ctx context.Context, m *member) error {
		return s.inEffect(ctx, m, c)
	})
}

// peers calls do with each prefix of the pods of the other nodes, and the address of its node in the same family.
func (s *supervisor) peers(m *member, do func(peer *member, pods *net.IPNet, by net.IP) error) error {
	return s.each(func(peer *member) error {
		if peer == m {
			return nil
		}
		for _, pods := range peer.prefixes() {
			by := peer.address
			if pods.IP.To4() == nil {
				by = nodeAddress6(peer.number)
			}
			if err := do(peer, pods, by.AsSlice()); err != nil {
				return err
			}
		}
		return nil
	})
}

// routePeers leads packets for the pods of the other nodes to these nodes. It is called in a node's namespace.
func (s *supervisor) routePeers(m *member) error {
	return s.peers(m, func(peer *member, pods *net.IPNet, by net.IP) error {
		if err := netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: by}); err != nil {
			return fmt.Errorf("add the route to the pods of %s: %w", peer.name, err)
		}
		return nil
	})
}

// inEffect says what is still missing until a node is on a CNI.
func (s *supervisor) inEffect(ctx context.Context, m *member, c CNI) error {
	if c != Bridge {
		n, err := s.api.Nodes.Get(ctx, m.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if got := n.Annotations[annotationBackend]; got != c.backend() {
			return fmt.Errorf("flanneld says %q", got)
		}
		if _, err := m.node.Run("sh", "-c", masked); err != nil {
			return err
		}
	}
	return m.space.Do(func() error {
		if err := setBridgeMTU(c.podsMTU()); err != nil {
			return err
		}
		return s.peers(m, func(_ *member, pods *net.IPNet, _ net.IP) error {
			if pods.IP.To4() == nil {
				return nil
			}
			return leavesBy(host(pods, 2), c.peerDevice())
		})
	})
}

// leavesBy says so unless packets for an address leave this namespace by a device, and not by where those go that have no route.
func leavesBy(address net.IP, device string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("%s: %w", device, err)
	}
	routes, err := netlink.RouteGet(address)
	if err != nil {
		return fmt.Errorf("no route to %s: %w", address, err)
	}
	viaDefault := net.ParseIP(gateway)
	if len(routes) == 0 || routes[0].LinkIndex != link.Attrs().Index || routes[0].Gw.Equal(viaDefault) {
		return fmt.Errorf("packets for %s do not leave by %s", address, device)
	}
	return nil
}

// host is an address of a prefix of IPv4.
func host(prefix *net.IPNet, number byte) net.IP {
	ip := prefix.IP.To4()
	return net.IPv4(ip[0], ip[1], ip[2], ip[3]|number)
}

// setBridgeMTU has the bridge of a node's pods, once there is one, pass what the CNI can carry.
func setBridgeMTU(mtu int) error {
	link, err := netlink.LinkByName(podBridge)
	if missing := (netlink.LinkNotFoundError{}); errors.As(err, &missing) {
		return nil
	}
	if err != nil {
		return err
	}
	return netlink.LinkSetMTU(link, mtu)
}

// release gives back the addresses of pods that have ended: a plugin that did not attach a pod does not release its address. An
// address that is younger than a minute may belong to a pod that is about to begin.
const release = `cd /var/lib/cni/networks/pods 2>/dev/null || exit 0
live=$(ctr -n k8s.io containers list -q) || exit 1
find . -name '[0-9]*' -mmin +1 | while read -r address; do
	case $live in *"$(head -n 1 "$address" | tr -d '\r')"*) ;; *) rm -f "$address" ;; esac
done`

// Rules by which flanneld gives packets that leave the pods' network the node's address, which it leaves behind.
const (
	masked = `iptables -w -t nat -C POSTROUTING -m comment --comment 'flanneld masq' -j FLANNEL-POSTRTG`
	unmask = `rm -f /run/flannel/subnet.env
iptables -w -t nat -S FLANNEL-POSTRTG >/dev/null 2>&1 || exit 0
while iptables -w -t nat -D POSTROUTING -m comment --comment 'flanneld masq' -j FLANNEL-POSTRTG 2>/dev/null; do :; done
iptables -w -t nat -F FLANNEL-POSTRTG && iptables -w -t nat -X FLANNEL-POSTRTG`
)

// leaveNetwork ends the CNI of all nodes. Pods stay attached, and reach the pods of their own node, and under a product all others: its
// agents take up what they left.
func (s *supervisor) leaveNetwork(ctx context.Context, c CNI) error {
	if c.Product() != NoProduct {
		return s.each(func(m *member) error { return s.endAgents(c, m) })
	}
	return s.each(func(m *member) error {
		if _, err := m.node.Run("sh", "-c", release); err != nil {
			return err
		}
		if c != Bridge {
			if err := s.endAgents(c, m); err != nil {
				return err
			}
			if _, err := m.node.Run("sh", "-c", unmask); err != nil {
				return err
			}
			if err := s.forget(ctx, m.name); err != nil {
				return err
			}
		}
		if err := m.space.Do(func() error { return s.unroutePeers(m) }); err != nil {
			return fmt.Errorf("take %s away from node %s: %w", c, m.name, err)
		}
		return nil
	})
}

// unroutePeers removes what leads to the pods of other nodes. It is called in a node's namespace.
func (s *supervisor) unroutePeers(m *member) error {
	link, err := netlink.LinkByName(vxlanDevice)
	if err == nil {
		err = netlink.LinkDel(link)
	}
	if missing := (netlink.LinkNotFoundError{}); err != nil && !errors.As(err, &missing) {
		return err
	}
	return s.peers(m, func(peer *member, pods *net.IPNet, _ net.IP) error {
		if err := netlink.RouteDel(&netlink.Route{Dst: pods}); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("remove the route to the pods of %s: %w", peer.name, err)
		}
		return nil
	})
}

// forget removes what flanneld noted of a node.
func (s *supervisor) forget(ctx context.Context, name string) error {
	notes := map[string]any{}
	for _, key := range []string{"backend-type", "backend-data", "backend-v6-data", "public-ip", "kube-subnet-manager"} {
		notes[annotation+key] = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": notes}})
	if err != nil {
		return err
	}
	_, err = s.api.Nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// ready says so unless a node is ready for pods.
func (s *supervisor) ready(ctx context.Context, m *member) error {
	n, err := s.api.Nodes.Get(ctx, m.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return errors.New(c.Message)
		}
		if c.Type == corev1.NodeReady {
			return untainted(n)
		}
	}
	return errors.New("its kubelet has not said anything")
}

// untainted says so unless pods may be put on a node: the controller that takes a node's taint away does so a moment after the node is ready.
func untainted(n *corev1.Node) error {
	for _, t := range n.Spec.Taints {
		if t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable {
			return fmt.Errorf("it still has the taint %s", t.Key)
		}
	}
	return nil
}
