package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/kube/whatif"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
)

const (
	whatIfFlag  = "what-if"
	whatIfUsage = "with --testbed kubernetes: a privileged pod on each node builds the lab's networks over the nodes' real cards, and measures them with the cluster's own network (docs/what-if.md)"
)

// onWhatIf is the kind of testbed that --testbed, as it was given or by its default, and --what-if name together.
func onWhatIf(flags *pflag.FlagSet, testbed string, asked bool) (string, error) {
	switch {
	case asked && (!flags.Changed("testbed") || testbed == "" || testbed == kubeTestbed):
		return whatif.Kind, nil
	case asked && testbed != whatif.Kind:
		return "", usageError{fmt.Errorf("--%s goes with --testbed %s", whatIfFlag, kubeTestbed)}
	}
	return testbed, nil
}

// whatIfNetworks are the networks of a cluster that a study may name in addition to a lab's.
func whatIfNetworks() study.KnownTestbed {
	return study.KnownTestbed{Added: true, Names: append([]string{network.Metal}, network.Names(whatif.Networks())...), Read: clusterNetworks().Read}
}

// checkWhatIf refuses what can't be had on nodes of a cluster, and asks for the flag: a study alone must not put privileged pods there.
func checkWhatIf(o runOptions, s *study.Study) error {
	o.servers = o.servers.of(s)
	nic, err := servers.ParseNIC(o.servers.nic)
	switch {
	case !o.whatIf:
		return usageError{fmt.Errorf("testbed %s puts a privileged pod on each node of the cluster: give --%s to allow it", whatif.Kind, whatIfFlag)}
	case err != nil:
		return usageError{err}
	case nic.Mode != server.Macvlan && nic.Mode != server.IPVlan:
		return usageError{fmt.Errorf("--nic %s: a cluster's nodes keep their cards; name one as macvlan:CARD or ipvlan:CARD", o.servers.nic)}
	case o.servers.sudo:
		return usageError{fmt.Errorf("--sudo goes with --testbed %s", sshTestbed)}
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--flame, --hops and --explain-outliers look at the kernel of this machine: run them with --testbed lab on the same networks")}
	}
	return noTarget(o, whatif.Kind)
}

// adaptToWhatIf has a study run on nodes of a cluster: the nodes' own network, the cluster's and those that teams move to.
func adaptToWhatIf(s *study.Study, o study.Overrides, moved bool) (note string) {
	if moved && len(o.Networks) == 0 {
		note = "the networks compared are the nodes' own (metal), the cluster's (pod) and those that would take its place on these nodes; --networks names others"
		s.Networks, s.Changes = []string{network.Metal, kube.Pod, kube.Host, "routed", "vxlan-routed", "ebpf-routed", "ebpf-vxlan", "wireguard"}, nil
	}
	if moved && o.Baseline == "" {
		s.Baseline = network.Metal
	}
	if slices.Equal(o.Placement, []string{string(result.SameNode)}) {
		s.Testbed.Nodes = 1
	}
	return note
}

// worthOnNodes are, next to the nodes' own network and the pods', the datapath of the product that the cluster has and those that its users
// could change to. Where the product is not known there are none.
func worthOnNodes(ctx context.Context, env *environment, o runOptions) ([]string, error) {
	if len(o.overrides.Networks) > 0 {
		return o.overrides.Networks, nil
	}
	found, err := env.survey(ctx, o)
	if err != nil {
		return nil, err
	}
	own, known := found.Network.Product()
	if !known {
		return nil, nil
	}
	all := []string{network.Metal, kube.Pod, own.Network}
	for _, m := range network.Moves() {
		if m.From == own && !slices.Contains(all, m.To.Network) {
			all = append(all, m.To.Network)
		}
	}
	return all, nil
}

// whatIfOptions are how the pods on nodes are made.
func (o runOptions) whatIfOptions(env *environment, nodes int) (whatif.Options, error) {
	nic, err := servers.ParseNIC(o.servers.nic)
	if err != nil {
		return whatif.Options{}, usageError{err}
	}
	look := func(ctx context.Context) (survey.Survey, error) { return env.survey(ctx, o) }
	return whatif.Options{Options: o.driverOptions(), Survey: look, Count: nodes, NIC: nic, Log: env.err}, nil
}

// openWhatIf makes nodes of testbeds on the cluster's; closing it removes all that was made there. A study that does not speak of an MTU
// gets the MTU of the nodes' cards.
func openWhatIf(ctx context.Context, env *environment, s *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	cluster, err := o.cluster.meet(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.servers = o.servers.of(s)
	options, err := o.whatIfOptions(env, s.Testbed.Nodes)
	if err != nil {
		return nil, nil, err
	}
	n, err := whatif.Open(ctx, cluster, o.cluster.Config, options)
	if err != nil {
		return nil, nil, err
	}
	if o.resume == "" && len(o.overrides.MTU) == 0 && s.Testbed.Link.MTU == study.DefaultMTU {
		s.Testbed.Link.MTU = n.MTU()
	}
	return n, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return n.Close(ctx)
	}, nil
}

// examineWhatIf says of each node whether it can be used, what its card is, and which networks can be built there.
func examineWhatIf(ctx context.Context, env *environment, o doctorOptions) error {
	if !o.whatIf || o.pods.Image == "" && o.pods.BaseImage == "" {
		return usageError{fmt.Errorf("--%s puts a privileged pod on each node for the doctor to look from: give --%s and --image REF, or --base-image REF, any image with a shell", whatIfFlag, whatIfFlag)}
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if _, err := cluster.Meet(ctx); err != nil {
		return err
	}
	run := runOptions{nodes: o.nodes, servers: o.servers, cluster: clusterOptions{o.clusterFlags, o.pods}}
	options, err := run.whatIfOptions(env, 0)
	if err != nil {
		return err
	}
	seen, err := whatif.Look(ctx, cluster, o.Config, options)
	if err != nil && len(seen) == 0 {
		return err
	}
	var all []finding
	for _, one := range seen {
		all = append(all, serverFindings(one, false)...)
	}
	return errors.Join(env.tell(all, o), err)
}
