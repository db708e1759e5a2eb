package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/measure"
	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// refuseLocal takes out cells that ask for processors or links that the provider can't give.
func (p *Plan) refuseLocal(driver testbed.Provider) {
	able := driver.Capabilities()
	for i, c := range p.Cells {
		switch {
		case c.Unsupported != "":
		case !able.PinsCPUs && c.Params.CPU != "" && c.Params.CPU != "any":
			p.Cells[i].Unsupported = fmt.Sprintf("cpu=%s is unsupported on testbed %s: needs processors that nobody else is given; say cpu: any, or run it with --testbed %s", c.Params.CPU, driver.Kind(), here)
		case !able.BuildsLinks && c.Params.MTU != 0:
			p.Cells[i].Unsupported = fmt.Sprintf("mtu=%d is unsupported on testbed %s: needs links that netdelta builds itself; set it in the cluster's network, or run it with --testbed %s", int64(c.Params.MTU), driver.Kind(), here)
		}
	}
}

// refuseUnreached takes out cells whose clients can't stand where their placement says, or that have a target on a testbed from
// which there is no way to it.
func (p *Plan) refuseUnreached(ctx context.Context, driver testbed.Provider) error {
	for i, c := range p.Cells {
		host := measure.TargetHost(c.Params)
		if host == "" || c.Unsupported != "" {
			continue
		}
		targets := driver.Capabilities().Targets
		if targets == nil {
			p.Cells[i].Unsupported = fmt.Sprintf("target %s is unsupported on testbed %s: needs a way out of it to the endpoint; run it with --testbed kubernetes, or leave the target out", c.Params.Target, driver.Kind())
			continue
		}
		site, err := targets.Locate(ctx, host)
		if err != nil {
			return fmt.Errorf("target %s: %w", c.Params.Target, err)
		}
		if c.Placement == result.SameNode && site.Apart != "" {
			p.Cells[i].Unsupported = fmt.Sprintf("clients on the node of target %s are unsupported: %s; measure placement %s", c.Params.Target, site.Apart, result.CrossNode)
		}
		if c.Placement == result.CrossNode && site.Mixed != "" {
			p.note(fmt.Sprintf("clients of target %s that are to stand on another node than it may stand on its own: %s", c.Params.Target, site.Mixed))
		}
		if c.Placement == result.SameNode && site.Apart == "" {
			p.note(fmt.Sprintf("target %s stands on node %s: clients on the same node are there", c.Params.Target, site.Nodes[0]))
		}
	}
	return nil
}

// note says something once.
func (p *Plan) note(sentence string) {
	if !slices.Contains(p.Notes, sentence) {
		p.Notes = append(p.Notes, sentence)
	}
}

// volumeOf is the volume that a cell's client needs, which may be none.
func (p *Plan) volumeOf(c result.Cell) testbed.Volume {
	return testbed.Volume{Class: c.Params.StorageClass, Size: p.demands[c.ID].Volume}
}

// refuseUnstored takes out cells whose client can't have its volume. The error says what is wrong with a class.
func (p *Plan) refuseUnstored(ctx context.Context, driver testbed.Provider) error {
	asked := map[string]bool{}
	for i, c := range p.Cells {
		class := c.Params.StorageClass
		if class == "" || c.Unsupported != "" {
			continue
		}
		stored := driver.Capabilities().Stored
		switch {
		case stored == nil:
			p.Cells[i].Unsupported = fmt.Sprintf("storage class %s is unsupported on testbed %s: needs a cluster that makes volumes of it; run it with --testbed kubernetes, or measure a store of netdelta's own", class, driver.Kind())
			continue
		case c.Placement != result.SameNode:
			p.Cells[i].Unsupported = fmt.Sprintf("a volume of storage class %s across nodes is unsupported: it is mounted on the node of the pod that uses it, and where its blocks are is up to its class; measure placement %s", class, result.SameNode)
			continue
		case asked[class]:
			continue
		}
		asked[class] = true
		says, err := stored(ctx, p.volumeOf(c))
		if err != nil {
			return fmt.Errorf("storage class %s: %w", class, err)
		}
		for _, sentence := range says {
			p.note(sentence)
		}
	}
	return nil
}

// refuseUnpinned takes out cells whose class of service needs processors that are not there.
func (p *Plan) refuseUnpinned() error {
	measuring, others, err := shareCPUs(p.Cells)
	if err != nil {
		return err
	}
	shared := slices.ContainsFunc(others, func(cpu int) bool { return slices.Contains(measuring, cpu) })
	for i, c := range p.Cells {
		qos := c.Params.Conditions.QoS
		switch {
		case qos == "" || c.Unsupported != "":
		case c.Params.CPU == "any":
			p.Cells[i].Unsupported = fmt.Sprintf("qos=%s is unsupported with cpu=any: it is about the processors that the workload is pinned to; say cpu: same or two", qos)
		case qos == result.Guaranteed && shared:
			p.Cells[i].Unsupported = fmt.Sprintf("qos=%s is unsupported here: needs more processors than the %d that this program may use, for the neighbours and itself; run it on a machine with more", qos, len(measuring))
		}
	}
	return nil
}

// refuseClustered takes out workloads whose servers are started once for all networks: they would have to live through the changes.
func (p *Plan) refuseClustered() {
	for i, c := range p.Cells {
		if p.demands[c.ID].Cluster != nil && c.Unsupported == "" {
			p.Cells[i].Unsupported = fmt.Sprintf("workload %s is unsupported in a study that changes the cluster: its servers are started once; measure it in a study of its own", c.Workload)
		}
	}
}

// refuseOversized takes out cells whose datagrams IPVS would have to cut up: under IPv6 it refuses what is larger than the path's
// MTU, since only the sender may cut (RFC 8200, section 5), and the sender has left that to the device behind.
func (p *Plan) refuseOversized(networks []network.Network, s *study.Study) {
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
