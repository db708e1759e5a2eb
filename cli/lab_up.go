package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/keep"
	"netdelta/unit"
)

// defaultLab is the name of a lab that is given none.
const defaultLab = "default"

// hold is the verb by which a keeper is called.
const hold = "hold"

// labOptions are the flags of lab up.
type labOptions struct {
	name        string
	nodes, pods int
	mtu, rate   string
	family      string
}

func newLabUpCommand(env *environment) *cobra.Command {
	var o labOptions
	cmd := &cobra.Command{
		Use:   "up NETWORK",
		Short: "Build a lab and keep it up",
		Long: `Build a lab of nodes and pods with a network and keep it up, in a process of its own that outlives the terminal. What is
printed are the pods, the way from the first to the last, and calls to try. The lab ends with netdelta lab down, or with the
machine.`,
		Example: `  netdelta lab up vxlan
  netdelta lab up bridge --nodes 1 --pods 3 --mtu 9000
  netdelta lab up routed --rate 1Gbit/s --name slow`,
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNetworks,
		RunE: func(cmd *cobra.Command, a []string) error {
			return labUp(cmd.Context(), env, a[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", defaultLab, "name of the lab, where there are several")
	f.IntVar(&o.nodes, "nodes", 2, "number of nodes")
	f.IntVar(&o.pods, "pods", 2, "pods on each node")
	f.StringVar(&o.mtu, "mtu", "1500", "MTU of the links between nodes")
	f.StringVar(&o.rate, "rate", "", "limit of each direction of each link between nodes, as 1Gbit/s (default: none)")
	f.StringVar(&o.family, "family", string(result.IPv4), "addresses of nodes and pods: ipv4 or ipv6")
	return cmd
}

// findNetwork finds a network by a name that holds in the folder of a lab's keeper too.
func findNetwork(name string) (network.Network, error) {
	if _, err := network.Find(network.Catalogue(), name); err != nil {
		return network.Network{}, err
	}
	name, err := network.FromAnywhere(name)
	if err != nil {
		return network.Network{}, err
	}
	return network.Find(network.Catalogue(), name)
}

func completeNetworks(_ *cobra.Command, a []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(a) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return network.Names(network.Catalogue()), cobra.ShellCompDirectiveNoFileComp
}

// spec reads what the lab is to be, and refuses what no network can be built on before anything is started.
func (o labOptions) spec(name string) (testbed.Spec, error) {
	n, err := findNetwork(name)
	if err != nil {
		return testbed.Spec{}, err
	}
	mtu, err := unit.ParseBytes(o.mtu)
	if err != nil {
		return testbed.Spec{}, fmt.Errorf("--mtu: %w", err)
	}
	var rate unit.BitsPerSecond
	if o.rate != "" {
		if rate, err = unit.ParseRate(o.rate); err != nil {
			return testbed.Spec{}, fmt.Errorf("--rate: %w", err)
		}
	}
	family := result.Family(o.family)
	if family != result.IPv4 && family != result.IPv6 {
		return testbed.Spec{}, fmt.Errorf("--family: %.32q is none; there are %s and %s", o.family, result.IPv4, result.IPv6)
	}
	s := testbed.Spec{
		Nodes: o.nodes, PodsPerNode: o.pods, Family: family, Link: testbed.Link{MTU: mtu, Rate: rate}, Network: n.Name,
		// A network that would be another one under live swap is built as runs build it, and stays.
		PodsOutlive: !n.NoSameNodeUnderSwap,
	}
	t, err := network.NewTopology(network.Layout{
		Nodes: s.Nodes, PodsPerNode: s.PodsPerNode, Family: family, MTU: mtu, Rate: rate, PodsOutlive: s.PodsOutlive,
	})
	if err != nil {
		return testbed.Spec{}, err
	}
	_, err = n.Plan(t)
	return s, err
}

func labUp(ctx context.Context, env *environment, name string, o labOptions) error {
	if err := keep.CheckName(o.name); err != nil {
		return usageError{err}
	}
	spec, err := o.spec(name)
	if err != nil {
		return usageError{err}
	}
	folder, err := env.labs()
	if err != nil {
		return err
	}
	s, err := folder.Start(ctx, o.name, spec, "lab", hold)
	if err != nil {
		return badName(err)
	}
	return env.printLab(s)
}

func newLabHoldCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    hold + " NAME",
		Short:  "Hold a lab up, as netdelta lab up has it done",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return keep.Hold(cmd.Context(), env.in, os.Stdout, env.lab)
		},
	}
}
