package network

// Made is a device that an operation makes, or gives to a namespace.
type Made struct {
	Device
	Role Role
	// MAC is the device's address: zero where it has none, and where Shares or Chosen says what it has.
	MAC MAC
	// Shares is the device whose MAC this one has, zero where it has one of its own or none.
	Shares Device
	// Chosen says that something else than the plan chooses the MAC.
	Chosen bool
	// Wraps is the protocol of the packets in which it sends those of pods to other nodes, 0 where it wraps none.
	Wraps Protocol
	// Card says that its packets cross real network cards, not the links of the lab.
	Card bool
}

// one is a single device with a MAC of its own.
func one(d Device, r Role, addr MAC) []Made { return []Made{{Device: d, Role: r, MAC: addr}} }

func (o Veth) makes() []Made {
	return []Made{{Device: o.A.Device, Role: o.A.Role, MAC: o.A.MAC}, {Device: o.B.Device, Role: o.B.Role, MAC: o.B.MAC}}
}

func (o Netkit) makes() []Made {
	if o.Layer == 3 {
		return []Made{{Device: o.Primary.Device, Role: o.Primary.Role}, {Device: o.Peer.Device, Role: o.Peer.Role}}
	}
	return []Made{{Device: o.Primary.Device, Role: o.Primary.Role, MAC: o.Primary.MAC}, {Device: o.Peer.Device, Role: o.Peer.Role, MAC: o.Peer.MAC}}
}

func (o Bridge) makes() []Made  { return one(o.Device, o.Role, o.MAC) }
func (o Macvlan) makes() []Made { return one(o.Device, o.Role, o.MAC) }
func (o Bond) makes() []Made    { return one(o.Device, o.Role, o.MAC) }
func (o Uplink) makes() []Made  { return one(o.Device, o.Role, o.MAC) }
func (o IPVlan) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, Shares: o.Parent}}
}
func (o Card) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, Chosen: true, Card: true}}
}
func (o Function) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, MAC: o.MAC, Card: true}}
}
func (o Attach) makes() []Made { // a plugin need not take the MAC that it is offered
	return []Made{{Device: o.Device, Role: o.Role, Chosen: true}}
}
func (o Vxlan) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, MAC: o.MAC, Wraps: UDP}}
}
func (o Geneve) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, MAC: o.MAC, Wraps: UDP}}
}
func (o Tunnel) makes() []Made {
	return []Made{{Device: o.Device, Role: o.Role, Wraps: o.Protocol()}}
}
func (o UDPTunnel) makes() []Made { return []Made{{Device: o.Device, Role: o.Role, Wraps: UDP}} }
func (o WireGuard) makes() []Made { return []Made{{Device: o.Device, Role: o.Role, Wraps: UDP}} }
func (o Datapath) makes() []Made { // it stays down, and nothing is sent to it
	return []Made{{Device: o.Device, Chosen: true}}
}

func (Sysctl) makes() []Made         { return nil }
func (Address) makes() []Made        { return nil }
func (Route) makes() []Made          { return nil }
func (Neighbour) makes() []Made      { return nil }
func (LocalRoute) makes() []Made     { return nil }
func (Enslave) makes() []Made        { return nil }
func (Forward) makes() []Made        { return nil }
func (Shape) makes() []Made          { return nil }
func (Impair) makes() []Made         { return nil }
func (Features) makes() []Made       { return nil }
func (Steer) makes() []Made          { return nil }
func (Protect) makes() []Made        { return nil }
func (Rules) makes() []Made          { return nil }
func (IPTables) makes() []Made       { return nil }
func (ServiceMap) makes() []Made     { return nil }
func (IPVS) makes() []Made           { return nil }
func (Redirection) makes() []Made    { return nil }
func (Guard) makes() []Made          { return nil }
func (Balance) makes() []Made        { return nil }
func (JoinSockets) makes() []Made    { return nil }
func (XDPRedirection) makes() []Made { return nil }

// Made lists the devices that the plan makes, in the order in which it does.
func (p Plan) Made() []Made {
	var all []Made
	for _, op := range p.all() {
		all = append(all, op.makes()...)
	}
	return all
}
