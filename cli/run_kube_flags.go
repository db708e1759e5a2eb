package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"netdelta/testbed/kube"
)

// clusterFlags say which cluster is meant, and where in it.
type clusterFlags struct{ kubeconfig, context, namespace string }

// add declares them, for verbs that take a cluster.
func (c *clusterFlags) add(f *pflag.FlagSet) {
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "file that says how the cluster is reached (default: KUBECONFIG, or ~/.kube/config)")
	f.StringVar(&c.context, "context", "", "context of the kubeconfig (default: its current one)")
	f.StringVar(&c.namespace, "namespace", "", "namespace that pods are made in (default: the context's)")
}

// given names one of them that was given, "" where none was.
func (c clusterFlags) given() string {
	switch {
	case c.kubeconfig != "":
		return "--kubeconfig"
	case c.context != "":
		return "--context"
	case c.namespace != "":
		return "--namespace"
	}
	return ""
}

// config is what they say.
func (c clusterFlags) config() kube.Config {
	return kube.Config{Kubeconfig: c.kubeconfig, Context: c.context, Namespace: c.namespace}
}

// connect reads the kubeconfig. A call that names no cluster is bad usage.
func (c clusterFlags) connect() (*kube.Cluster, error) {
	cluster, err := kube.Connect(c.config())
	if errors.Is(err, kube.ErrNoCluster) {
		return nil, usageError{err}
	}
	return cluster, err
}
