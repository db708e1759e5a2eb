package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/daemon"
	"netdelta/internal/gather"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// here is the testbed that sentences offer in place of one that lacks something.
const here = "lab"

// findDemands notes what the cells need, and refuses those that can't have it: programs that are not installed, memory that is not
// free, a way to their servers that the testbed lacks.
func (p *Plan) findDemands(ctx context.Context, workloads []workload.Workload, driver testbed.Provider) error {
	p.demands = map[string]workload.Demand{}
	free, err := machine.FreeMemory()
	if err != nil {
		return err
	}
	lacking := map[string]string{} // by workload and its programs: apt takes its time to answer
	return p.refuse(func(c result.Cell) (why string, err error) {
		d := measure.DemandOf(workloads, c)
		p.demands[c.ID] = d
		if why, err = unmet(ctx, c, d, driver, free); why != "" || err != nil || driver.Capabilities().Lacking != nil {
			return why, err
		}
		key := fmt.Sprint(c.Workload, d.Programs)
		why, known := lacking[key]
		if !known {
			why, err = lackingPrograms(c.Workload, d)
			lacking[key] = why
		}
		return why, err
	})
}

// unmet is why a cell can't have what it needs apart from programs of this machine, "" where it can.
func unmet(ctx context.Context, c result.Cell, d workload.Demand, driver testbed.Provider, free unit.Bytes) (string, error) {
	on := c.Params.Conditions.Plain()
	able := driver.Capabilities()
	switch {
	case len(d.Programs) > 0 && !able.SharesMachine && able.Lacking == nil:
		return fmt.Sprintf("workload %s is unsupported on testbed %s: it runs programs, which can't be looked for in pods on other machines; run it with --testbed %s", c.Workload, driver.Kind(), here), nil
	case d.Cluster != nil && c.Placement == result.SameNode:
		return fmt.Sprintf("workload %s on one node is unsupported: its servers (%d) stand on a node each; measure it across nodes (placement: [%s])", c.Workload, d.Cluster.Pods, result.CrossNode), nil
	case d.Cluster != nil && on.Service != "" && on.Service != result.ServicePod:
		return fmt.Sprintf("workload %s is unsupported with service=%s: its servers are reached by their own addresses; say service: %s", c.Workload, on.Service, result.ServicePod), nil
	case d.Memory > 0 && able.SharesMachine && d.Memory+daemon.Spare > free:
		return fmt.Sprintf("workload %s is unsupported: needs %v of memory for its servers, %v are free; end other programs or run it on a machine with more", c.Workload, d.Memory, free), nil
	}
	if able.Lacking != nil {
		return lackingElsewhere(ctx, c.Workload, d, able)
	}
	return "", nil
}

// clustered says whether some cell that can be measured is served by a cluster: one that is started once, and has the networks
// swapped beneath it.
func (p *Plan) clustered() bool {
	return slices.ContainsFunc(plan.Measured(p.Cells), func(c result.Cell) bool { return p.demands[c.ID].Cluster != nil })
}

// crowded is why the daemons that serve a cell can't start in the pods of others that were met before, "" where they can: both take the same
// ports there. So it is with what a cell has put into an endpoint of the user's: it has one name.
func (p *Plan) crowded() func(result.Cell) (string, error) {
	type place struct {
		measure.Underlay
		port uint16
	}
	taken := map[place]string{} // by the key of a cluster
	full := map[string]string{} // what is put into endpoints
	return func(c result.Cell) (string, error) {
		k := p.demands[c.ID].Cluster
		if put, url := p.demands[c.ID].Put, c.Params.Target; put.Key != "" {
			if was := full[url]; was != "" && was != put.Key {
				return fmt.Sprintf("workload %s is unsupported in a run with others of its levels: %s has %s; measure %s in a run of its own", c.Workload, url, was, put.Key), nil
			}
			full[url] = put.Key
			if put.Disk > 0 {
				p.note(fmt.Sprintf("%s are made in %s before anything is measured, up to %v on its disk, and given up if that takes longer than %s; %s",
					put.Key, url, put.Disk, unit.FormatDuration(put.Within), put.After))
			} else {
				p.note(fmt.Sprintf("%s are there already in %s; %s", put.Key, url, put.After))
			}
		}
		if k == nil {
			return "", nil
		}
		for _, port := range k.Ports {
			at := place{measure.GroupOf(c).Underlay, port}
			if was := taken[at]; was != "" && was != k.Key {
				return fmt.Sprintf("workload %s is unsupported in a run with others of its levels: %s and %s would be in the same pods and both take port %d; measure it in a run of its own", c.Workload, was, k.Key, port), nil
			}
			taken[at] = k.Key
		}
		return "", nil
	}
}

// measurable are the cells that are measured, and those that may come in.
func (p *Plan) measurable() []result.Cell {
	if p.Admits {
		return append(plan.Measured(p.Cells), plan.Waiting(p.Cells)...)
	}
	return plan.Measured(p.Cells)
}

// peersOf is what a testbed has to know of the pods that serve as one.
func peersOf(d workload.Demand) testbed.Peers {
	if d.Cluster == nil {
		return testbed.Peers{}
	}
	p := testbed.Peers{Count: d.Cluster.Pods, Clients: d.Clients, Memory: d.Memory / unit.Bytes(d.Cluster.Pods)}
	copy(p.Ports[:], d.Cluster.Ports)
	return p
}

// peers is the same for all cells together, which share pods.
func (p *Plan) peers() testbed.Peers {
	var all testbed.Peers
	var ports []uint16
	counted := map[string]bool{}
	for _, c := range p.measurable() {
		d := p.demands[c.ID]
		one := peersOf(d)
		all.Clients = max(all.Clients, one.Clients) // cells that share a cluster may differ in them
		if d.Cluster == nil || counted[d.Cluster.Key] {
			continue
		}
		counted[d.Cluster.Key] = true
		all.Count, all.Memory = max(all.Count, one.Count), all.Memory+one.Memory
		ports = append(ports, d.Cluster.Ports...)
	}
	copy(all.Ports[:], ports)
	return all
}

// memory is what the servers of cells take together at most.
func (p *Plan) memory(cells []result.Cell) unit.Bytes {
	var clusters unit.Bytes
	counted := map[clusterStart]bool{}
	alone := map[measure.GroupKey]unit.Bytes{}
	for _, c := range cells {
		d := p.demands[c.ID]
		if d.Cluster == nil {
			alone[measure.GroupOf(c)] += d.Memory
		} else if s := clusterStartOf(c, d); !counted[s] {
			counted[s] = true
			clusters += d.Memory
		}
	}
	var sum, most unit.Bytes
	for _, m := range alone {
		sum, most = sum+m, max(most, m)
	}
	if p.Blocks {
		return clusters + most // the other networks are not there meanwhile
	}
	return clusters + sum
}

// fitMemory leaves out the settings that were chosen last, until the servers of the others fit into the memory that is free.
func (p *Plan) fitMemory() error {
	free, err := machine.FreeMemory()
	if err != nil {
		return err
	}
	kept := plan.Measured(p.Cells)
	whole := p.memory(kept)
	if whole == 0 {
		return nil // no servers of programs
	}
	settings := slices.DeleteFunc(result.Settings(kept), func(s result.Setting) bool {
		return !slices.ContainsFunc(kept, func(c result.Cell) bool { return c.Setting() == s && p.demands[c.ID].Memory > 0 })
	})
	for len(settings) > 1 && p.memory(kept)+daemon.Spare > free {
		last := settings[len(settings)-1]
		settings = settings[:len(settings)-1]
		kept = slices.DeleteFunc(kept, func(c result.Cell) bool { return c.Setting() == last })
		for i, c := range p.Cells {
			if c.Setting() == last {
				p.Cells[i].Skipped = cmp.Or(c.Skipped, fmt.Sprintf("left out: the servers of all workload settings take %v of memory together, %v are free", whole, free))
			}
		}
	}
	if p.memory(kept)+daemon.Spare <= free {
		return nil
	}
	return fmt.Errorf("%w: the servers of even one workload setting take %v of memory on all networks together, %v are free; measure fewer networks, or swap them under the same pods with --blocks",
		record.ErrNothing, p.memory(kept), free)
}

// refuse marks the cells for which there is a reason not to measure them, in addition to those that have one already. That the testbed
// does not support a cell is such a reason, and no error.
func (p *Plan) refuse(reason func(result.Cell) (string, error)) error {
	for i, c := range p.Cells {
		if c.Unsupported != "" {
			continue
		}
		why, err := reason(c)
		var u *testbed.UnsupportedError
		var n *network.NotPossibleError
		switch {
		case errors.As(err, &u):
			why, p.Cells[i].InGuest = u.Error(), u.InGuest
		case errors.As(err, &n):
			why = n.Error()
		case err != nil:
			return err
		}
		p.Cells[i].Unsupported = why
	}
	return nil
}

// note adds a sentence, once.
func (p *Plan) note(sentence string) {
	p.Notes = gather.Once(p.Notes, sentence)
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

// tooFewProcessors is why a cell's ends can't have a processor each where this program may use so many, "" where they can: on one processor
// its figures would be those of regime=saturated.
func tooFewProcessors(c result.Cell, cpus int) string {
	regime := c.Setting().Regime()
	if cpus >= 2 || regime == "" || c.Params.CPU != "two" {
		return ""
	}
	return fmt.Sprintf("regime=%s is unsupported: needs two processors, and this program may use one (taskset, or a container's set of processors); allow it a second one, or measure regime=%s", regime, result.RegimeSaturated)
}

// unreachable is why a cell's client can't reach its external target from where its placement says, "" where it can.
func (p *Plan) unreachable(ctx context.Context, driver testbed.Provider, c result.Cell) (string, error) {
	host, targets := measure.TargetHost(c.Params), driver.Capabilities().Targets
	if host == "" {
		return "", nil
	}
	if targets == nil {
		return fmt.Sprintf("target %s is unsupported on testbed %s: needs a way out of it to the endpoint; run it with --testbed kubernetes or ssh, or leave the target out", c.Params.Target, driver.Kind()), nil
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
	return testbed.Volume{Class: c.Params.StorageClass, Size: p.demands[c.ID].Volume, Clients: p.demands[c.ID].Clients}
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
	mtu := cmp.Or(c.Params.MTU, s.Testbed.Link.MTU)
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
