package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"netdelta/internal/netns"
)

// Addresses of a cluster. They mean something in its own namespaces only, and may be in use elsewhere.
const (
	nodesPrefix    = "10.77.0.0/24"
	podsPrefix     = "10.244.0.0/16"
	servicesPrefix = "10.96.0.0/16"
	// apiService is the first of servicesPrefix, which Kubernetes gives to the API server.
	apiService = "10.96.0.1"
	apiPort    = "6443"
)

// uplink is what the link to the other nodes is called in each node, and podBridge the bridge of its pods.
const (
	uplink    = "eth0"
	podBridge = "cni0"
)

// nodeAddress is that of the node with this number: 0 is the control plane's.
func nodeAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(10 + number)})
}

// gateway is where nodes send what they have no route for. Nothing answers there, but without a route there the first packet to a
// service would be refused before kube-proxy's rules see it.
const gateway = "10.77.0.1"

// nodeName is that of the node with this number.
func nodeName(number int) string {
	if number == 0 {
		return "cp"
	}
	return fmt.Sprintf("w%d", number)
}

// fabric is what connects the nodes: a bridge in a namespace of its own.
type fabric struct {
	space  *netns.Namespace
	bridge int // index of the bridge
}

func newFabric() (*fabric, error) {
	f := &fabric{}
	space, err := netns.New(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "nodes"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("make the bridge between the nodes: %w", err)
		}
		f.bridge = bridge.Index
		address, err := netlink.ParseAddr(gateway + "/24")
		if err != nil {
			return err
		}
		return errors.Join(netlink.AddrAdd(bridge, address), netlink.LinkSetUp(bridge))
	})
	f.space = space
	return f, err
}

// attach makes the network namespace of a node, connected to the others.
func (f *fabric) attach(name string, address netip.Addr) (*netns.Namespace, error) {
	space, err := netns.New(nil)
	if err != nil {
		return nil, err
	}
	err = space.WithFD(func(fd int) error {
		return f.space.Do(func() error {
			link := &netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: name, MasterIndex: f.bridge},
				PeerName:  uplink, PeerNamespace: netlink.NsFd(fd),
			}
			if err := netlink.LinkAdd(link); err != nil {
				return err
			}
			return netlink.LinkSetUp(link)
		})
	})
	if err == nil {
		err = space.Do(func() error { return configure(address) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect node %s: %w", name, err), space.Close())
	}
	return space, nil
}

// configure gives the node that this thread is in its address.
func configure(address netip.Addr) error {
	for _, name := range []string{"lo", uplink} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if name == uplink {
			a, err := netlink.ParseAddr(address.String() + "/24")
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(link, a); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)})
}
