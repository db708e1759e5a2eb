package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"netdelta/experiment"
	"netdelta/experiment/measure"
	"netdelta/experiment/plan"
	"netdelta/experiment/study"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/docker"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/kube/whatif"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
	"netdelta/testbed/vm/image"
	"netdelta/unit"
	"netdelta/workload"
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
	return joinNotes(note, toOwnLinks(s, o, moved))
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
	options := o.driverOptions()
	options.Waiting = o.waiting
	return whatif.Options{Options: options, Survey: look, Count: nodes, NIC: nic, Log: env.err}, nil
}

// takeMTU has a study that does not speak of an MTU have that of the nodes' cards.
func takeMTU(s *study.Study, o runOptions, cards unit.Bytes) {
	if o.resume == "" && len(o.overrides.MTU) == 0 && s.Testbed.Link.MTU == study.DefaultMTU {
		s.Testbed.Link.MTU = cards
	}
}

// openWhatIf makes nodes of testbeds on the cluster's; closing it removes all that was made there.
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
	takeMTU(s, o, n.MTU())
	return n, inTime(ctx, n.Close), nil
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

// dockerFlag names the engine's program.
const (
	dockerFlag  = "docker"
	dockerUsage = "with --testbed docker: the engine's own program, docker, podman or a file (default: docker)"
)

// dockerNetworks are the networks that a study on a container engine may name besides a lab's: the engine is asked for its own later.
func dockerNetworks() study.KnownTestbed {
	read := func(name string) (bool, error) { return strings.HasPrefix(name, docker.Prefix), nil }
	return study.KnownTestbed{Added: true, Names: network.Names(docker.Networks()), Read: read}
}

// checkDocker refuses flags that have no meaning on a container engine.
func checkDocker(o runOptions, _ *study.Study) error {
	switch {
	case o.nodes != "":
		return usageError{fmt.Errorf("--nodes %s: an engine's containers are all on this machine", o.nodes)}
	case slices.Contains(o.overrides.Placement, string(result.CrossNode)):
		return usageError{errors.New("--placement cross-node: an engine's containers are all on this machine; leave it away")}
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--flame, --hops and --explain-outliers need networks that netdelta has built: run them with --testbed lab on the network that is alike (bridge, macvlan)")}
	}
	return nil
}

// dockerOnly refuses the engine's flag elsewhere.
func dockerOnly(o runOptions, on kind) error {
	if o.docker == "" {
		return nil
	}
	return usageError{fmt.Errorf("--%s goes with --testbed %s; this study runs on testbed %s", dockerFlag, docker.Kind, on.name)}
}

// adaptToDocker has a study run on a container engine: its networks take the place of a lab's, unless these were asked for.
func adaptToDocker(s *study.Study, o study.Overrides, moved bool) (note string) {
	if moved && len(o.Networks) == 0 {
		note = "the study's networks are a lab's: the engine's own take their place"
		s.Networks, s.Changes = network.Names(docker.Networks()), nil
	}
	if moved && o.Baseline == "" {
		s.Baseline = docker.Host
	}
	if !slices.Contains(o.Placement, string(result.CrossNode)) { // which is refused
		s.Placement, s.Testbed.Nodes = []result.Placement{result.SameNode}, 1
	}
	return note
}

// openDocker is the provider of the engine's networks; closing it removes all that was made.
func openDocker(ctx context.Context, env *environment, _ *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	d, err := docker.New(ctx, env.lab, docker.Options{Program: o.docker})
	if err != nil {
		return nil, nil, err
	}
	return d, inTime(ctx, d.Close), nil
}

// examineDocker says which of the engine's networks can be measured.
func examineDocker(ctx context.Context, env *environment, o doctorOptions) (err error) {
	d, err := docker.New(ctx, env.lab, docker.Options{Program: o.docker})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close(context.WithoutCancel(ctx))) }()
	var findings []finding
	for _, n := range d.Capabilities().Networks {
		if strings.HasPrefix(n.Name, docker.Prefix) {
			spec := testbed.Spec{Network: n.Name, Family: result.IPv4}
			findings = append(findings, tried("network "+n.Name, n.Summary, d.Supports(ctx, spec)))
		}
	}
	return env.tell(findings, o)
}

// firstSeed is the seed of the first guest of an exact run unless --seed says otherwise: two calls alike give the same figures.
const firstSeed = 1

// checkExact refuses flags that have no meaning where instructions are counted.
func (o *runOptions) checkExact(given func(string) bool) error {
	if !o.exact {
		return nil
	}
	for flag, why := range map[string]string{
		"time-budget": "it takes as long as it takes", "burst": "each network is measured by a number of transactions", "rounds": "each network is measured once in each build",
		"blocks": "networks are not swapped",
	} {
		if given(flag) {
			return usageError{fmt.Errorf("--%s has no meaning with --exact: %s", flag, why)}
		}
	}
	if o.testbed != "" && o.testbed != vmTestbed {
		return usageError{fmt.Errorf("--exact counts instructions, which only a guest can: leave --testbed %s away", o.testbed)}
	}
	if given("builds") && o.builds < 1 {
		return usageError{errors.New("--builds: an exact run has at least one")}
	}
	return nil
}

// counts says whether instructions are to be counted: the flag asks for it, or the run that is resumed did.
func (o *runOptions) counts() (bool, error) {
	if errors.Is(o.call.unread, fs.ErrNotExist) {
		return o.exact, nil // the code that resumes the run says what is missing
	}
	return o.exact || o.call.run().Exact != nil, o.call.unread
}

// toGuest has a study run in a guest where this kernel lacks what it is about: the baseline can't be measured in most of its settings, and can be
// there. What a flag or the run that is resumed says of the testbed stays. It says what was changed.
func (env *environment) toGuest(ctx context.Context, s *study.Study, o runOptions) (notes []string) {
	if s.Testbed.Kind != labTestbed || o.testbed != "" || o.nodes != "" || o.resume != "" || o.exact || o.listener != nil {
		return nil
	}
	baselines := gather.Where(plan.Expand(s), func(c result.Cell) bool { return c.Role == result.RoleBaseline })
	baselines, err := experiment.Supported(ctx, baselines, env.lab)
	if err != nil {
		return nil // the run says so
	}
	lacking := gather.Where(baselines, func(c result.Cell) bool {
		return c.InGuest && !slices.ContainsFunc(measure.DemandOf(env.workloads, c).Programs, func(p workload.Program) bool { return !image.Has(p.Name) })
	})
	if 2*len(lacking) <= len(baselines) {
		return nil
	}
	s.MoveTo(vmTestbed, false)
	why := strings.TrimSuffix(lacking[0].Unsupported, "; "+testbed.GuestFix)
	return []string{fmt.Sprintf("testbed %s: %d of %d settings of this study can't be measured here (%s); --testbed %s runs it here all the same",
		vmTestbed, len(lacking), len(baselines), why, labTestbed)}
}
