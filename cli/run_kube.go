package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/testbed/kube"
)

// clusterOptions are the flags of run that are about a cluster.
type clusterOptions struct {
	clusterFlags
	image, baseImage string
	nodeAgent        bool
	zones            []string
	qos, cpu, memory string
}

func (c *clusterOptions) add(f *pflag.FlagSet) {
	c.clusterFlags.add(f)
	f.StringVar(&c.image, "image", "", "image of pods, with netdelta in it (netdelta image makes one)")
	f.StringVar(&c.baseImage, "base-image", "", "any image with a shell that the cluster's nodes can run: netdelta is streamed into its pods, without a registry")
	f.BoolVar(&c.nodeAgent, "node-agent", false, "a pod on each node looks at the devices there, which proves which way packets go; it takes NET_ADMIN and NET_RAW")
	f.StringSliceVar(&c.zones, "zones", nil, "zones of the cluster, of each of which one node is measured")
	f.StringVar(&c.qos, "qos", "", "class of service of pods: guaranteed, burstable or best-effort (default burstable)")
	f.StringVar(&c.cpu, "cpu", "", "processors of a guaranteed pod, as Kubernetes writes them: 2, 500m")
	f.StringVar(&c.memory, "memory", "", "memory of a pod, as Kubernetes writes it: 256Mi")
}

// any names a flag that is about a cluster and was given, "" where none was.
func (c clusterOptions) any() string {
	switch {
	case c.given() != "":
		return c.given()
	case c.image != "":
		return "--image"
	case c.baseImage != "":
		return "--base-image"
	case c.nodeAgent:
		return "--node-agent"
	case len(c.zones) > 0:
		return "--zones"
	case c.qos != "":
		return "--qos"
	case c.cpu != "":
		return "--cpu"
	case c.memory != "":
		return "--memory"
	}
	return ""
}

// driverOptions are what the flags say to the driver.
func (o runOptions) driverOptions() kube.Options {
	options := kube.Options{
		Image: o.cluster.image, BaseImage: o.cluster.baseImage, NodeAgent: o.cluster.nodeAgent, Zones: o.cluster.zones,
		QoS: kube.QoS(o.cluster.qos), CPU: o.cluster.cpu, Memory: o.cluster.memory,
	}
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
		note = fmt.Sprintf("the study's networks are built by netdelta (%s, ...), which a cluster is not: the cluster's own take their place", s.Networks[i])
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
func clusterNetworks() study.KnownNetworks {
	own := study.KnownNetworks{Read: func(name string) (is bool, err error) {
		if !strings.HasPrefix(name, kube.MultusPrefix) {
			return false, nil
		}
		if _, err = kube.Named(name); err != nil {
			err = cmp.Or(errors.Unwrap(err), err) // the study names the network itself
		}
		return true, err
	}}
	for _, n := range kube.Networks() {
		own.Names = append(own.Names, n.Name)
	}
	return own
}

// clusterNetworkEntry is a network of a cluster, for a list.
type clusterNetworkEntry struct {
	Name    string   `json:"name"`
	Summary string   `json:"summary"`
	UsedBy  []string `json:"used_by"`
}

func (e clusterNetworkEntry) line() []string {
	return []string{e.Name, strings.Join(e.UsedBy, ", "), e.Summary}
}

func clusterNetworkEntries(context.Context, *environment) ([]entry, error) {
	all := append(kube.Networks(), network.Network{
		Name: kube.MultusPrefix + "NAMESPACE/NAME", Summary: "a secondary network, by its NetworkAttachmentDefinition", UsedBy: []string{"Multus", "SR-IOV"},
	})
	var entries []entry
	for _, n := range all {
		entries = append(entries, clusterNetworkEntry{n.Name, n.Summary, n.UsedBy})
	}
	return entries, nil
}
