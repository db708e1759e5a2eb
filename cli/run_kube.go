package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/testbed/kube"
)

// driverOptions are what the flags say to the driver.
func (o runOptions) driverOptions() kube.Options {
	options := o.cluster.Options
	for name := range strings.SplitSeq(o.nodes, ",") {
		if name = strings.TrimSpace(name); name != "" {
			options.Nodes = append(options.Nodes, name)
		}
	}
	return options
}

// toCluster has a study that was made for another testbed run on a cluster, and says what was changed: of networks that netdelta would
// build itself, those that every cluster has take the place. What was asked for by a flag stays.
func toCluster(s *study.Study, o study.Overrides) (note string) {
	foreign := func(name string) bool { _, err := kube.Named(name); return err != nil }
	if i := slices.IndexFunc(s.Networks, foreign); len(o.Networks) == 0 && i >= 0 {
		note = fmt.Sprintf("the study's networks (%s, ...) are built by netdelta; the cluster's own are measured in their place", s.Networks[i])
		s.Networks, s.Changes = nil, nil
		for _, n := range kube.Networks() {
			if n.Name != kube.Headless { // the address is a pod's own: it only differs in how it was found
				s.Networks = append(s.Networks, n.Name)
			}
		}
	}
	if o.Baseline == "" && foreign(s.Baseline) {
		s.Baseline = kube.Host
	}
	s.Testbed.Link = study.Link{MTU: study.DefaultMTU}
	return note
}

// clusterNetworks are the networks of a cluster, as studies may name them.
func clusterNetworks() study.KnownTestbed {
	return study.KnownTestbed{Changes: true, Names: network.Names(kube.Networks()), Read: func(name string) (is bool, err error) {
		if !strings.HasPrefix(name, kube.MultusPrefix) {
			return false, nil
		}
		if _, err = kube.Named(name); err != nil {
			err = cmp.Or(errors.Unwrap(err), err) // the study names the network itself
		}
		return true, err
	}}
}

// clusterNetworkEntry is a network of a cluster, for a list.
type clusterNetworkEntry struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	UsedBy  []string `json:"used_by"`
}

func clusterNetworkEntries(context.Context, *environment) ([]entry, error) {
	all := append(kube.Networks(), network.Network{
		Name: kube.MultusPrefix + "NAMESPACE/NAME", Summary: "a secondary network, by its NetworkAttachmentDefinition", UsedBy: []string{"Multus", "SR-IOV"},
	})
	var entries []entry
	for _, n := range all {
		entries = append(entries, entry{clusterNetworkEntry{n.Name, n.Summary, n.UsedBy}, []string{n.Name, strings.Join(n.UsedBy, ", ")}, []string{n.Summary}})
	}
	return entries, nil
}
