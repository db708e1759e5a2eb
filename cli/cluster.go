package cli

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

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
