package network

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"

	"netdelta/internal/gather"
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
	if len(Of[JoinSockets](p.Ops)) > 0 {
		return p, &NotPossibleError{
			Network: p.Network, Condition: "service=" + c.Service,
			Why: "it joins sockets by the addresses of their pods, and one that calls a virtual address has another at its far end",
		}
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

// ebpfService resolves virtual addresses at the device of each pod, and gives the pods a way to them: where two pods are on
// one link, a virtual address is the neighbour that its backend is.
func ebpfService(p Plan, services func(client Endpoint) []VirtualAddress) ([]Op, error) {
	var ops []Op
	made := p.Made()
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
			if k < 0 || k == j {
				continue // no client calls it
			}
			if routed && !onOneBridge(p, dev, Device{p.Pods[k].In, p.Pods[k].Device}) {
				continue // the gateway knows the way
			}
			ops = append(ops, Route{Device: dev, To: alone(s.Virtual)})
			hw, known := macOf(made, Device{p.Pods[k].In, p.Pods[k].Device})
			if !known {
				return nil, &NotPossibleError{
					Network: p.Network, Condition: "service=ebpf",
					Why: "a virtual address is the neighbour that its backend is, and the plan does not know the MACs of its pods",
				}
			}
			if hw != (MAC{}) {
				ops = append(ops, Neighbour{Device: dev, Address: s.Virtual, MAC: hw})
			}
		}
	}
	return ops, nil
}

// onOneBridge says whether two pods' devices are joined by one bridge of their node: packets between them don't pass the gateway.
func onOneBridge(p Plan, a, b Device) bool {
	bridge := func(d Device) Device {
		for _, v := range Of[Veth](p.Ops) {
			end := v.B.Device
			if v.B.Device == d {
				end = v.A.Device
			} else if v.A.Device != d {
				continue
			}
			if e, joined := gather.First(Of[Enslave](p.Ops), func(e Enslave) bool { return e.Device == end }); joined {
				return Device{e.In, e.Bridge}
			}
		}
		return Device{}
	}
	found := bridge(a)
	return found != Device{} && found == bridge(b)
}

// podWith is the pod that has an address, -1 if none has.
func podWith(p Plan, a netip.Addr) int {
	return slices.IndexFunc(p.Pods, func(e Endpoint) bool { return e.Address == a })
}

// hasDefaultRoute tells whether a plan leads everything that a device's namespace has no other way for out of the device.
func hasDefaultRoute(p Plan, d Device) bool {
	return slices.ContainsFunc(Of[Route](p.Ops), func(r Route) bool { return r.Device == d && r.To.Bits() == 0 })
}

// macOf is the MAC of a device that a plan makes; known is false where something else chooses it. A device without link addresses has the
// zero MAC.
func macOf(made []Made, d Device) (addr MAC, known bool) {
	m, found := gather.First(made, func(m Made) bool { return m.Device == d })
	switch {
	case !found || m.Chosen:
		return MAC{}, false
	case m.Shares != Device{}:
		return macOf(made, m.Shares)
	}
	return m.MAC, true
}
