package provider

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/plugin"
	"netdelta/testbed/vm"
)

// cards is how many network cards with virtual functions a guest needs: one for each node, where a network gives them to
// pods.
func cards(s testbed.GuestSpec) int {
	for _, name := range s.Networks {
		if p, ok := planned(s, name); ok && slices.ContainsFunc(p.Ops, func(op network.Op) bool { _, is := op.(network.Card); return is }) {
			return s.Spec.Nodes
		}
	}
	return 0
}

// files returns the files of this machine that networks need.
func files(s testbed.GuestSpec) []vm.File {
	var all []vm.File
	for _, n := range s.Networks {
		if name, is := strings.CutPrefix(n, network.CNIPrefix); is {
			all = append(all, vm.File{Host: name, Guest: filepath.Join("/", name)})
			all = append(all, pluginFiles(s, n)...)
		}
	}
	return all
}

// pluginFiles are the programs of this machine by which a network of CNI plugins attaches its pods. Those that are missing here
// are missing in the guest too, which says so.
func pluginFiles(s testbed.GuestSpec, name string) []vm.File {
	p, ok := planned(s, name)
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

// planned plans a network as far as it is the same under all conditions.
func planned(s testbed.GuestSpec, name string) (network.Plan, bool) {
	n, err := network.Find(network.Catalogue(), name)
	if err != nil {
		return network.Plan{}, false // the guest says so
	}
	t, err := network.NewTopology(network.Layout{Nodes: s.Spec.Nodes, PodsPerNode: s.Spec.PodsPerNode, Family: result.IPv4, MTU: s.Spec.Link.MTU})
	if err != nil {
		return network.Plan{}, false
	}
	p, err := n.Plan(t)
	return p, err == nil
}
