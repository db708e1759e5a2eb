package network

import (
	"net/netip"
	"slices"
)

// ebpfService resolves virtual addresses at the device of each pod, and gives the pods a way to them: where the pods are on
// one link without a gateway, a virtual address is the neighbour that its backend is.
func ebpfService(p Plan, services []VirtualAddress) ([]Op, error) {
	var ops []Op
	for j, e := range p.Pods {
		if e.In.Kind != PodSpace {
			return nil, &NotPossibleError{
				Network: p.Network, Condition: "service=ebpf",
				Why: "its pods have no device of their own at which their addresses could be translated",
			}
		}
		dev := Device{e.In, e.Device}
		ops = append(ops, Balance{Device: dev, Services: services})
		if hasDefaultRoute(p, dev) {
			continue
		}
		for _, s := range services {
			k := podWith(p, s.Backend)
			if k < 0 || k == j {
				continue // no client calls it
			}
			ops = append(ops, Route{Device: dev, To: alone(s.Virtual)})
			if hw, ok := macOf(p, Device{p.Pods[k].In, p.Pods[k].Device}); ok {
				ops = append(ops, Neighbour{Device: dev, Address: s.Virtual, MAC: hw})
			}
		}
	}
	return ops, nil
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
