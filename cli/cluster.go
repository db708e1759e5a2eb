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

// clusterFlags say which cluster is meant, and where in it.
type clusterFlags struct {
	kube.Config
	flags *pflag.FlagSet // all flags of the verb that are about a cluster
}

// add declares them, for verbs that take a cluster.
func (c *clusterFlags) add(f *pflag.FlagSet) {
	c.flags = pflag.NewFlagSet("", pflag.ContinueOnError)
	c.flags.SortFlags = false
	c.flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "file that says how the cluster is reached (default: KUBECONFIG, or ~/.kube/config)")
	c.flags.StringVar(&c.Context, "context", "", "context of the kubeconfig (default: its current one)")
	c.flags.StringVar(&c.Namespace, "namespace", "", "namespace that pods are made in (default: the context's)")
	f.AddFlagSet(c.flags)
}

// given names one of the flags about a cluster that was given, "" where none was.
func (c clusterFlags) given() string { return firstGiven(c.flags) }

// firstGiven names the first of several flags that has another value than its default, "" where all have their defaults.
func firstGiven(flags *pflag.FlagSet) (name string) {
	if flags == nil {
		return "" // a verb without them
	}
	flags.VisitAll(func(f *pflag.Flag) {
		if name == "" && f.Value.String() != f.DefValue {
			name = "--" + f.Name
		}
	})
	return name
}

// connect reads the kubeconfig. A call that names no cluster is bad usage.
func (c clusterFlags) connect() (*kube.Cluster, error) {
	cluster, err := kube.Connect(c.Config)
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, usageError{err}
	}
	return cluster, err
}

// meet is connect, and asks the cluster whether it is there.
func (c clusterFlags) meet(ctx context.Context) (*kube.Cluster, error) {
	cluster, err := c.connect()
	if err == nil {
		_, err = cluster.Meet(ctx)
	}
	return cluster, err
}

// clusterOptions are the flags of verbs that measure a cluster.
type clusterOptions struct {
	clusterFlags
	kube.Options
}

func (c *clusterOptions) add(f *pflag.FlagSet) {
	c.clusterFlags.add(f)
	c.flags.StringVar(&c.Image, "image", "", "image of pods, with netdelta in it (netdelta image makes one)")
	c.flags.StringVar(&c.BaseImage, "base-image", "", "any image with a shell that the cluster's nodes can run: netdelta is streamed into its pods, without a registry")
	c.flags.BoolVar(&c.NodeAgent, "node-agent", false, "a pod on each node looks at the devices there, which proves which way packets go; it takes NET_ADMIN and NET_RAW")
	c.flags.StringSliceVar(&c.Zones, "zones", nil, "zones of the cluster, of each of which one node is measured")
	c.flags.StringVar((*string)(&c.QoS), "qos", "", "class of service of pods: guaranteed, burstable or best-effort (default burstable)")
	c.flags.StringVar(&c.CPU, "cpu", "", "processors of a guaranteed pod, as Kubernetes writes them: 2, 500m")
	c.flags.StringVar(&c.Memory, "memory", "", "memory of a pod, as Kubernetes writes it: 256Mi")
	f.AddFlagSet(c.flags)
}

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
