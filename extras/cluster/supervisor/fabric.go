package supervisor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

// Addresses of a cluster. They mean something in its own namespaces only, and may be in use elsewhere.
const (
	podsPrefix     = "10.244.0.0/16"
	servicesPrefix = "10.96.0.0/16"

	podsPrefix6     = "fd77:244::/48"
	servicesPrefix6 = "fd77:96::/112"

	// apiService is the first of servicesPrefix, which Kubernetes gives to the API server.
	apiService = "10.96.0.1"
	apiPort    = "6443"
)

// uplink is what the link to the other nodes is called in each node, and podBridge the bridge of its pods.
const (
	uplink    = "eth0"
	podBridge = "cni0"
)

// nodeAddress is the address of the node with this number: 0 is the control plane's.
func nodeAddress(number int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(10 + number)})
}

// nodeAddress6 is its address of IPv6, where the cluster has both families.
func nodeAddress6(number int) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfd, 1: 0x77, 15: byte(10 + number)})
}

// gateway is where nodes send what they have no route for. Nothing answers there, but without a route there the first packet to a
// service would be refused before kube-proxy's rules see it.
const (
	gateway  = "10.77.0.1"
	gateway6 = "fd77::1"
)

// nodeName is the name of the node with this number.
func nodeName(number int) string {
	if number == 0 {
		return "cp"
	}
	return fmt.Sprintf("w%d", number)
}

// fabric is what connects the nodes: a bridge in a namespace of its own.
type fabric struct {
	both   bool // families of addresses
	space  *netns.Namespace
	bridge int // index of the bridge
}

func newFabric(both bool) (*fabric, error) {
	f := &fabric{both: both}
	space, err := netns.New(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "nodes"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return fmt.Errorf("make the bridge between the nodes: %w", err)
		}
		f.bridge = bridge.Index
		if err := f.address(bridge, gateway, gateway6); err != nil {
			return err
		}
		return netlink.LinkSetUp(bridge)
	})
	f.space = space
	return f, err
}

// address gives a link its addresses of the families that the cluster has.
func (f *fabric) address(link netlink.Link, four, six string) error {
	texts := []string{four + "/24"}
	if f.both {
		texts = append(texts, six+"/64")
	}
	for _, text := range texts {
		a, err := netlink.ParseAddr(text)
		if err != nil {
			return err
		}
		if a.IP.To4() == nil {
			a.Flags = unix.IFA_F_NODAD // the address is surely free, and checking takes a second
		}
		if err := netlink.AddrAdd(link, a); err != nil {
			return fmt.Errorf("give %s the address %s: %w", link.Attrs().Name, text, err)
		}
	}
	return nil
}

// attach makes the network namespace of a node, connected to the others.
func (f *fabric) attach(name string, number int) (*netns.Namespace, error) {
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
		err = space.Do(func() error { return f.configure(number) })
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect node %s: %w", name, err), space.Close())
	}
	return space, nil
}

// configure gives the node that this thread is in its addresses.
func (f *fabric) configure(number int) error {
	for _, name := range []string{"lo", uplink} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if name == uplink {
			if err := f.address(link, nodeAddress(number).String(), nodeAddress6(number).String()); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	gateways := []string{gateway}
	if f.both {
		gateways = append(gateways, gateway6)
	}
	for _, g := range gateways {
		if err := netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(g)}); err != nil {
			return fmt.Errorf("add the default route by %s: %w", g, err)
		}
	}
	return nil
}

// dialPatience is how long a connection inside the cluster may take to come about.
const dialPatience = 5 * time.Second

// dial connects to an address of a namespace, HOST:PORT with a numerical host: a socket stays where it was made.
func dial(space *netns.Namespace, address string) (net.Conn, error) {
	var c net.Conn
	err := space.Do(func() error {
		var err error
		c, err = net.DialTimeout("tcp", address, dialPatience)
		return err
	})
	return c, err
}

// forward listens on the machine's loopback, as long as the program runs, and passes each connection on to an address of a
// namespace. It returns where it listens.
func forward(space *netns.Namespace, address string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen for the API server's clients: %w", err)
	}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				// Out of descriptors, say: some are given back in a while.
				time.Sleep(pause)
				continue
			}
			go pass(client.(*net.TCPConn), space, address)
		}
	}()
	return l.Addr().String(), nil
}

// pass passes on what either side of a connection says, until both have ended.
func pass(client *net.TCPConn, space *netns.Namespace, address string) {
	defer func() { _ = client.Close() }()
	c, err := dial(space, address)
	if err != nil {
		return // the client sees its connection closed, as it would without a server
	}
	server := c.(*net.TCPConn)
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client) // an end is an end
		_ = server.CloseWrite()
	}()
	_, _ = io.Copy(client, server)
	_ = client.CloseWrite()
	<-done
}
