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

// refuse marks the cells for which there is a reason not to measure them, in addition to those that have one already.
func (p *Plan) refuse(reason func(result.Cell) (string, error)) error {
	for i, c := range p.Cells {
		if c.Unsupported != "" {
			continue
		}
		why, err := reason(c)
		if err != nil {
			return err
		}
		p.Cells[i].Unsupported = why
	}
	return nil
}

// note adds a sentence, once.
func (p *Plan) note(sentence string) {
	if !slices.Contains(p.Notes, sentence) {
		p.Notes = append(p.Notes, sentence)
	}
}

// notOwned is why the provider can't give a cell its processors or links, "" where it can.
func notOwned(driver testbed.Provider, c result.Cell) string {
	switch able := driver.Capabilities(); {
	case !able.PinsCPUs && c.Params.CPU != "" && c.Params.CPU != "any":
		asked, fix := "cpu="+c.Params.CPU, "say cpu: any"
		if regime := c.Setting().Regime(); regime != "" {
			asked, fix = "regime="+regime, "leave it out"
		}
		return fmt.Sprintf("%s is unsupported on testbed %s: needs processors that are not shared with others; %s, or run it with --testbed %s", asked, driver.Kind(), fix, here)
	case !able.BuildsLinks && c.Params.MTU != 0:
		return fmt.Sprintf("mtu=%d is unsupported on testbed %s: needs links that netdelta builds itself; set it in the cluster's network, or run it with --testbed %s", int64(c.Params.MTU), driver.Kind(), here)
	}
	return ""
}

// unreachable is why a cell's client can't reach its external target from where its placement says, "" where it can.
func (p *Plan) unreachable(ctx context.Context, driver testbed.Provider, c result.Cell) (string, error) {
	host, targets := measure.TargetHost(c.Params), driver.Capabilities().Targets
	if host == "" {
		return "", nil
	}
	if targets == nil {
		return fmt.Sprintf("target %s is unsupported on testbed %s: needs a way out of it to the endpoint; run it with --testbed kubernetes, or leave the target out", c.Params.Target, driver.Kind()), nil
	}
	site, err := targets.Locate(ctx, host)
	switch {
	case err != nil:
		return "", fmt.Errorf("target %s: %w", c.Params.Target, err)
	case c.Placement == result.SameNode && site.NoSameNode != "":
		return fmt.Sprintf("clients on the node of target %s are unsupported: %s; measure placement %s", c.Params.Target, site.NoSameNode, result.CrossNode), nil
	case c.Placement == result.SameNode:
		p.note(fmt.Sprintf("target %s stands on node %s: clients on the same node are there", c.Params.Target, site.Nodes[0]))
	case c.Placement == result.CrossNode && site.MaybeSameNode != "":
		p.note(fmt.Sprintf("clients of target %s that are to stand on another node than it may stand on its own: %s", c.Params.Target, site.MaybeSameNode))
	}
	return "", nil
}

// volumeOf is the volume that a cell's client needs, which may be none.
func (p *Plan) volumeOf(c result.Cell) testbed.Volume {
	return testbed.Volume{Class: c.Params.StorageClass, Size: p.demands[c.ID].Volume}
}

// unstored is why a cell's client can't have its volume, "" where it can. The error says what is wrong with a storage class.
func (p *Plan) unstored(ctx context.Context, driver testbed.Provider) func(result.Cell) (string, error) {
	asked := map[string]bool{"": true}
	return func(c result.Cell) (string, error) {
		class, stored := c.Params.StorageClass, driver.Capabilities().Stored
		switch {
		case class == "":
			return "", nil
		case stored == nil:
			return fmt.Sprintf("storage class %s is unsupported on testbed %s: needs a cluster that makes volumes of it; run it with --testbed kubernetes, or measure a store of netdelta's own", class, driver.Kind()), nil
		case c.Placement != result.SameNode:
			return fmt.Sprintf("a volume of storage class %s across nodes is unsupported: it is mounted on the node of the pod that uses it, and where its blocks are is up to its class; measure placement %s", class, result.SameNode), nil
		case asked[class]:
			return "", nil
		}
		asked[class] = true
		notes, err := stored(ctx, p.volumeOf(c))
		if err != nil {
			return "", fmt.Errorf("storage class %s: %w", class, err)
		}
		for _, sentence := range notes {
			p.note(sentence)
		}
		return "", nil
	}
}

// unpinned is why a cell's class of service lacks processors here, "" where it does not.
func (p *Plan) unpinned(driver testbed.Provider) func(result.Cell) (string, error) {
	measuring, others, err := shareCPUs(p.Cells)
	shared := slices.ContainsFunc(others, func(cpu int) bool { return slices.Contains(measuring, cpu) })
	return func(c result.Cell) (string, error) {
		switch qos := c.Params.Conditions.QoS; {
		case qos == "" || !driver.Capabilities().PinsCPUs:
		case err != nil:
			return "", err
		case c.Params.CPU == "any":
			return fmt.Sprintf("qos=%s is unsupported with cpu=any: it is about the processors that the workload is pinned to; say cpu: same or two", qos), nil
		case qos == result.Guaranteed && shared:
			return fmt.Sprintf("qos=%s is unsupported here: needs more processors than the %d that this program may use, for the neighbours and itself; run it on a machine with more", qos, len(measuring)), nil
		}
		return "", nil
	}
}

// oversized is why IPVS drops the datagrams of a cell: under IPv6 it refuses what is larger than the path's MTU, since only the sender
// may fragment (RFC 8200, section 5), and the sender has left that to the device.
func (p *Plan) oversized(networks []network.Network, s *study.Study, c result.Cell) string {
	if c.Params.Conditions.Plain().Service != result.ServiceIPVS || c.Params.Family != result.IPv6 || !strings.HasPrefix(c.Workload, "udp-") {
		return ""
	}
	mtu, err := p.pathMTU(networks, s, c)
	const headers = 48 // of IPv6 and UDP
	if err != nil || c.Params.Message+headers <= mtu {
		return "" // if there is no such network over these links, building it will say so
	}
	return fmt.Sprintf("datagrams of %d bytes are unsupported with service=ipvs under IPv6: IPVS refuses packets that are larger than the path's MTU of %d",
		int64(c.Params.Message), int64(mtu))
}

// pathMTU is the MTU of a cell's path from its client to its server.
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
