package cli

import (
	"path"
	"slices"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed/lab/plugin"
	"netdelta/testbed/vm"
)

// guestCards is how many network cards with virtual functions a guest needs: one for each node, where a network gives them to
// pods.
func guestCards(s *study.Study) int {
	for _, name := range append([]string{s.Baseline}, s.Networks...) {
		if p, ok := guestPlan(s, name); ok && slices.ContainsFunc(p.Ops, func(op network.Op) bool { _, is := op.(network.Card); return is }) {
			return s.Testbed.Nodes
		}
	}
	return 0
}

// pluginFiles are the programs of this machine by which a network of CNI plugins attaches its pods. Those that are missing here
// are missing in the guest too, which says so.
func pluginFiles(s *study.Study, name string) []vm.File {
	p, ok := guestPlan(s, name)
	if !ok {
		return nil
	}
	var files []vm.File
	for _, op := range p.Ops {
		a, is := op.(network.Attach)
		if !is {
			continue
		}
		for _, one := range a.Plugins {
			file := vm.File{Host: plugin.Find(one, plugin.Path()), Guest: path.Join("/opt/cni/bin", one)}
			if file.Host != "" && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// guestPlan plans a network as far as it is the same under all conditions.
func guestPlan(s *study.Study, name string) (network.Plan, bool) {
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		return network.Plan{}, false // the guest says so
	}
	t, err := network.NewTopology(network.Layout{Nodes: s.Testbed.Nodes, PodsPerNode: s.Testbed.Pods, Family: result.IPv4, MTU: s.Testbed.Link.MTU})
	if err != nil {
		return network.Plan{}, false
	}
	p, err := n.Plan(t)
	return p, err == nil
}
