package experiment

import (
	"fmt"
	"strings"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
)

// refuseUncut takes out cells whose datagrams IPVS would have to cut up: under IPv6 it refuses what is larger than the path's
// MTU, since only the sender may cut (RFC 8200, section 5), and the sender has left that to the device behind.
func (p *Plan) refuseUncut(networks []network.Network, s *study.Study) {
	for i, c := range p.Cells {
		on := c.Params.Conditions.Plain()
		if c.Unsupported != "" || on.Service != result.ServiceIPVS || c.Params.Family != result.IPv6 || !strings.HasPrefix(c.Workload, "udp-") {
			continue
		}
		mtu, err := p.pathMTU(networks, s, c)
		if err != nil {
			continue // there is no such network over these links: building it will say so
		}
		const headers = 48 // of IPv6 and UDP
		if c.Params.Message+headers > mtu {
			p.Cells[i].Unsupported = fmt.Sprintf("datagrams of %d bytes are unsupported with service=ipvs under IPv6: IPVS refuses packets that are larger than the path's MTU of %d",
				int64(c.Params.Message), int64(mtu))
		}
	}
}

// pathMTU is that of a cell, from its client to its server.
func (p *Plan) pathMTU(networks []network.Network, s *study.Study, c result.Cell) (unit.Bytes, error) {
	n, err := network.Find(networks, c.Network)
	if err != nil {
		return 0, err
	}
	mtu := s.Testbed.Link.MTU
	if c.Params.MTU != 0 {
		mtu = c.Params.MTU
	}
	t, err := network.NewTopology(network.Layout{
		Nodes: 2, PodsPerNode: 2, Family: c.Params.Family, MTU: mtu, PodsOutlive: p.Blocks, Conditions: c.Params.Conditions,
	})
	if err != nil {
		return 0, err
	}
	plan, err := n.Plan(t)
	if err != nil {
		return 0, err
	}
	const client, sameNode, crossNode = 0, 1, 2 // pods
	if c.Placement == result.SameNode {
		return plan.PathMTU(client, sameNode), nil
	}
	return plan.PathMTU(client, crossNode), nil
}
