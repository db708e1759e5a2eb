package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"netdelta/result"
)

// served gives the pods virtual addresses as the conditions ask for, and has each namespace with pods resolve them for its
// clients, as kube-proxy does on a node. There are as many services as asked for, but at least one for each pod; the pods' own
// come last, so that a search from the front passes all others. The others lead to addresses that no pod has.
func served(p Plan, t Topology) (Plan, error) {
	c := t.Conditions
	if c.Service == "" {
		return p, nil
	}
	services := func(client Endpoint) []VirtualAddress { return virtualAddresses(t, p, client, c.Services) }
	switch c.Service {
	case result.ServiceIPTables:
		p = resolving(p, t, func(c Endpoint) Op { return iptablesServices(c.In, t.Family, services(c)) })
	case result.ServiceNFTables:
		p = resolving(p, t, func(c Endpoint) Op { return ServiceMap{In: c.In, Family: t.Family, Services: services(c)} })
	case result.ServiceIPVS:
		p = resolving(p, t, func(c Endpoint) Op { return IPVS{In: c.In, Family: t.Family, Services: services(c)} })
		for _, e := range ending(p) {
			// As kube-proxy has it: without it packets of connections whose server is gone are dropped, also after a swap.
			p.Ops = append(p.Ops, Sysctl{In: e.In, Name: "net.ipv4.vs.expire_nodest_conn", Value: "1"})
		}
	case result.ServiceEBPF:
		ops, err := ebpfService(p, services)
		if err != nil {
			return p, err
		}
		p.Ops = append(slices.Clip(p.Ops), ops...)
	default:
		return p, fmt.Errorf("plan network %s: unknown service %q", p.Network, c.Service)
	}
	virtual := services(p.Pods[0]) // the same for all clients
	for _, s := range virtual[len(virtual)-len(p.Pods):] {
		p.Services = append(p.Services, s.Virtual)
	}
	return withLocalServices(p), nil
}

// resolving adds an operation to each namespace with pods, and a way out for packets to virtual addresses where there is
// none: what they are translated to decides later which way they go, but without a way none would be sent at all.
func resolving(p Plan, t Topology, resolve func(client Endpoint) Op) Plan {
	all := slices.Clip(p.Ops)
	for _, e := range ending(p) {
		if dev := (Device{e.In, e.Device}); !hasDefaultRoute(p, dev) {
			all = append(all, Route{Device: dev, To: serviceRange(t.Family)})
		}
		all = append(all, resolve(e))
	}
	p.Ops = all
	return p
}

// withLocalServices has namespaces that pods share take the virtual addresses of their own pods for local, as kube-proxy has
// all of IPVS: where a server is in the client's own namespace, the way there is lo from the start. IPVS, for one, translates the
// address but leaves the packet on the way that it was on.
func withLocalServices(p Plan) Plan {
	p.Ops = slices.Clip(p.Ops)
	for j, e := range p.Pods {
		if e.In.Kind == NodeSpace {
			p.Ops = append(p.Ops, LocalRoute{In: e.In, To: p.Services[j], From: e.Address})
		}
	}
	return p
}

// virtualAddresses are the services as a client has them resolved, the pods' own last and in their order.
func virtualAddresses(t Topology, p Plan, client Endpoint, count int) []VirtualAddress {
	others := max(0, count-len(p.Pods))
	nowhere := unmatched(t.Family, others)
	services := make([]VirtualAddress, 0, others+len(p.Pods))
	for _, r := range nowhere {
		services = append(services, VirtualAddress{serviceAddress(t.Family, len(services)), r.From.Addr()})
	}
	for j := range p.Pods {
		services = append(services, VirtualAddress{serviceAddress(t.Family, len(services)), p.backend(client, j)})
	}
	return services
}

// serviceRange holds the virtual addresses: half of the range for benchmarks whose other half the nodes have, or under IPv6 a
// part of a subnet that no node has.
func serviceRange(f result.Family) netip.Prefix {
	first := serviceAddress(f, 0)
	return netip.PrefixFrom(first, first.BitLen()-byFamily(f, 15, 16)) // the bits that number a service
}

// serviceAddress is a virtual address.
func serviceAddress(f result.Family, k int) netip.Addr {
	number := binary.BigEndian.AppendUint16(nil, uint16(k))
	if f == result.IPv6 {
		const subnet = 0x8000
		a := benchmark6(subnet, 0).As16()
		copy(a[14:], number)
		return netip.AddrFrom16(a)
	}
	return netip.AddrFrom4([4]byte{198, 18, 128 + number[0], number[1]})
}

// iptablesServices are the chains that kube-proxy makes: one rule for each service, passed one after the other, that leads to
// a chain in which the destination is translated.
func iptablesServices(in Space, family result.Family, services []VirtualAddress) IPTables {
	lines := []Line{":PREROUTING ACCEPT [0:0]", ":INPUT ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]", ":KUBE-SERVICES - [0:0]"}
	add := func(format string, args ...any) { lines = append(lines, Line(fmt.Sprintf(format, args...))) }
	for k := range services {
		add(":KUBE-SVC-%d - [0:0]", k)
	}
	add("-A OUTPUT -j KUBE-SERVICES")
	for k, s := range services {
		add("-A KUBE-SERVICES -d %s -j KUBE-SVC-%d", alone(s.Virtual), k)
	}
	for k, s := range services {
		add("-A KUBE-SVC-%d -j DNAT --to-destination %s", k, s.Backend)
	}
	return IPTables{In: in, Family: family, Table: "nat", Lines: lines}
}

// ebpfService resolves virtual addresses at the device of each pod, and gives the pods a way to them: where the backend is
// on the pod's own link, the virtual address is the neighbour that its backend is.
func ebpfService(p Plan, services func(client Endpoint) []VirtualAddress) ([]Op, error) {
	var ops []Op
	for j, e := range p.Pods {
		if e.In.Kind != PodSpace {
			return nil, &NotPossibleError{
				Network: p.Network, Condition: "service=ebpf",
				Why: "its pods have no device of their own at which their addresses could be translated",
			}
		}
		dev := Device{e.In, e.Device}
		ops = append(ops, Balance{Device: dev, Services: services(e)})
		routed := hasDefaultRoute(p, dev)
		for _, s := range services(e) {
			k := podWith(p, s.Backend)
			if k < 0 || k == j || routed && !onLink(p, dev, s.Backend) {
				continue // no client calls it, or there is a way
			}
			ops = append(ops, Route{Device: dev, To: alone(s.Virtual)})
			if hw, ok := macOf(p, Device{p.Pods[k].In, p.Pods[k].Device}); ok {
				ops = append(ops, Neighbour{Device: dev, Address: s.Virtual, MAC: hw})
			}
		}
	}
	return ops, nil
}

// onLink tells whether an address is on the link of a device.
func onLink(p Plan, d Device, a netip.Addr) bool {
	return slices.ContainsFunc(Of[Address](p.Ops), func(o Address) bool { return o.Device == d && o.Prefix.Bits() < a.BitLen() && o.Prefix.Contains(a) })
}

// podWith is the pod that has an address, -1 if none has.
func podWith(p Plan, a netip.Addr) int {
	return slices.IndexFunc(p.Pods, func(e Endpoint) bool { return e.Address == a })
}

// hasDefaultRoute tells whether a plan leads everything that a device's namespace has no other way for out of the device.
func hasDefaultRoute(p Plan, d Device) bool {
	return slices.ContainsFunc(Of[Route](p.Ops), func(r Route) bool { return r.Device == d && r.To.Bits() == 0 })
}

// macOf is the MAC that a plan gives to a device; ok is false where it gives none.
func macOf(p Plan, d Device) (addr MAC, ok bool) {
	for _, op := range p.all() {
		switch op := op.(type) {
		case Veth:
			if op.A.Device == d {
				return op.A.MAC, true
			}
			if op.B.Device == d {
				return op.B.MAC, true
			}
		case Macvlan:
			if op.Device == d {
				return op.MAC, true
			}
		case IPVlan:
			if op.Device == d {
				return macOf(p, op.Parent)
			}
		}
	}
	return MAC{}, false
}
