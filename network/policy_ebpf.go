package network

import "net/netip"

// ebpfPolicy guards each pod of a plan by one lookup among a number of rules that never match and those that let the pods,
// and the nodes that may stand in for them, in. It is stateless: answers come from where requests go to.
func ebpfPolicy(t Topology, p Plan, rules int) []Op {
	entries := make([]GuardEntry, 0, rules+1+len(t.Nodes))
	for _, r := range unmatched(t.Family, rules) {
		entries = append(entries, GuardEntry{From: r.From, Do: Drop})
	}
	entries = append(entries, GuardEntry{From: allPods(t), Do: Accept})
	for _, n := range t.Nodes {
		entries = append(entries, GuardEntry{From: alone(n.Address.Addr()), Do: Accept})
	}
	if t.Conditions.Service != "" {
		entries = append(entries, GuardEntry{From: serviceRange(t.Family), Do: Accept}) // as with policyRules
	}
	var ops []Op
	for _, e := range ending(p) {
		devices := []string{e.Device}
		if e.In.Kind == NodeSpace {
			devices = append(devices, "lo")
		}
		ops = append(ops, Guard{In: e.In, Devices: devices, Entries: entries})
	}
	return ops
}

// allPods is the range that holds the pods of all nodes.
func allPods(t Topology) netip.Prefix {
	return netip.PrefixFrom(t.Pods[0].Address, podBits(t.Family)).Masked()
}
