package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/internal/suggest"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/docker"
	"netdelta/testbed/kube"
	kubernetes "netdelta/testbed/kube/provider"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/kube/whatif"
	"netdelta/testbed/ssh"
	"netdelta/testbed/vm/image"
	guests "netdelta/testbed/vm/provider"
)

// The kinds of testbeds.
const (
	labTestbed  = "lab"
	vmTestbed   = guests.Kind
	kubeTestbed = kube.Name
	sshTestbed  = ssh.Kind
)

// kind is a kind of testbed that a run can name.
type kind struct {
	name, about string
	// here says that its testbeds are made of this machine's kernel, which takes rights.
	here bool
	// cards says that its networks lie over cards of the nodes, which --nodes and --nic choose; cluster, that its nodes are a cluster's.
	// targets, that its pods reach endpoints of the user's own.
	cards, cluster, targets bool
	// networks are those that only this kind has.
	networks *study.KnownTestbed
	// check refuses flags that have no meaning on it; foreign refuses those that have one on it alone, where the run is on another.
	check   func(o runOptions, s *study.Study) error
	foreign func(o runOptions, on kind) error
	// adapt changes a study to what the flags ask for on it, and says what was changed. moved says that the study is for another kind.
	adapt func(s *study.Study, o study.Overrides, moved bool) (note string)
	// open gives a provider for a run of the study, and what closes it.
	open func(ctx context.Context, env *environment, s *study.Study, o runOptions) (testbed.Provider, func() error, error)
	// examine is what the doctor does there; nil where it can't look.
	examine func(ctx context.Context, env *environment, o doctorOptions) error
	// findings is what the doctor finds there that becomes part of a run's record; nil where it can't look.
	findings func(ctx context.Context, env *environment, o runOptions) ([]result.Finding, error)
	// worth are the networks whose measurement may bring advice there; nil, like none, leaves the study's.
	worth func(ctx context.Context, env *environment, o runOptions) ([]string, error)
	// strategies are those of the verbs of their own that can be carried out there.
	strategies []string
	// clean removes what killed runs left there, and says how much it was; nil where cleanup looks in any case, or can't.
	clean func(ctx context.Context, env *environment, o cleanOptions) (int, error)
}

// kinds are all kinds of testbeds.
func kinds() []kind {
	cluster, engine, mixed := clusterNetworks(), dockerNetworks(), whatIfNetworks()
	return []kind{
		{
			name: labTestbed, about: "network namespaces on this machine", here: true, check: checkNoNodes, open: openLab,
			examine: examineHere, findings: findingsHere, worth: worthHere, strategies: []string{result.StrategyFleet, result.StrategyPairs},
		},
		{
			name: vmTestbed, about: "the same in a virtual machine with the distribution's own kernel, which has every kind of link; with --exact, by counted instructions",
			check: checkGuests, open: openGuests,
		},
		{
			name: sshTestbed, about: "servers of your own, reached by ssh, over their real cards; on one server alone, the lab there", cards: true, targets: true,
			networks: &study.KnownTestbed{Names: []string{network.Metal}, Added: true}, check: checkServers, foreign: serversOnly, adapt: adaptToServers, open: openServers, examine: examineServers, clean: cleanServers,
		},
		{
			name: kubeTestbed, about: "pods of the Kubernetes cluster that the kubeconfig names, on its own network", cluster: true,
			networks: &cluster, check: checkCluster, foreign: clusterOnly, adapt: adaptToCluster, open: openCluster,
			examine: examineCluster, findings: findingsOfCluster, clean: cleanCluster,
			strategies: []string{result.StrategyFleet, result.StrategyPairs, result.StrategyPolicies},
		},
		{
			name: whatif.Kind, about: "a lab's networks over the cards of a cluster's nodes, measured with the cluster's own: --testbed kubernetes --what-if",
			cards: true, cluster: true,
			networks: &mixed, check: checkWhatIf, adapt: adaptToWhatIf, open: openWhatIf, examine: examineWhatIf, findings: findingsOfCluster, worth: worthOnNodes,
			clean: cleanCluster,
		},
		{
			name: docker.Kind, about: "the networks of a container engine on this machine, Docker's or Podman's, and a lab's",
			networks: &engine, check: checkDocker, foreign: dockerOnly, adapt: adaptToDocker, open: openDocker, examine: examineDocker, findings: findingsHere,
		},
	}
}

// kindOf is the kind of testbed that a study is carried out on, with the flags of the call checked against it.
func kindOf(s *study.Study, o runOptions) (kind, error) {
	if o.exact {
		return findKind(vmTestbed)
	}
	k, err := findKind(s.Testbed.Kind)
	if err != nil {
		return k, err
	}
	return k, k.checkFlags(o, s)
}

// findKind is the kind of a name. Another name is bad usage.
func findKind(name string) (kind, error) { return findAble(name, func(kind) bool { return true }) }

// findAble is findKind among the kinds that something can be done on.
func findAble(name string, able func(kind) bool) (kind, error) {
	i := slices.IndexFunc(kinds(), func(k kind) bool { return k.name == name && able(k) })
	switch names := kindNames(able); {
	case i < 0 && slices.Contains(kindNames(func(kind) bool { return true }), name):
		return kind{}, usageError{fmt.Errorf("--testbed %s: it can't do this; give --testbed %s", name, strings.Join(names, " or "))}
	case i < 0:
		if near, found := suggest.Nearest(name, names); found {
			return kind{}, usageError{fmt.Errorf("there is no testbed %q; did you mean %s?", name, near)}
		}
		return kind{}, usageError{fmt.Errorf("there is no testbed %q; there are: %s", name, strings.Join(names, ", "))}
	}
	return kinds()[i], nil
}

// kindNames are the names of the kinds that something can be done on.
func kindNames(able func(kind) bool) (names []string) {
	for _, k := range kinds() {
		if able(k) {
			names = append(names, k.name)
		}
	}
	return names
}

// checkFlags refuses flags that have no meaning where the study runs.
func (k kind) checkFlags(o runOptions, s *study.Study) error {
	err := k.check(o, s)
	for _, other := range kinds() {
		if other.foreign != nil && other.name != k.name {
			err = errors.Join(err, other.foreign(o, k))
		}
	}
	return err
}

// openLab is the provider of testbeds on this machine.
func openLab(_ context.Context, env *environment, _ *study.Study, _ runOptions) (testbed.Provider, func() error, error) {
	return env.lab, func() error { return nil }, nil
}

// checkNoNodes refuses a choice of nodes.
func checkNoNodes(o runOptions, _ *study.Study) error {
	switch o.nodes {
	case "":
		return nil
	case vmTestbed:
		return usageError{errors.New("--nodes vm goes with --testbed vm")}
	}
	if strings.HasPrefix(o.nodes, ssh.Prefix) {
		return usageError{fmt.Errorf("--nodes %s goes with --testbed %s", o.nodes, sshTestbed)}
	}
	return usageError{fmt.Errorf("--nodes %s: a lab makes its own nodes; name servers with --testbed %s (ssh:a,ssh:b), a cluster's nodes with --testbed %s", o.nodes, sshTestbed, kubeTestbed)}
}

// checkGuests refuses what can't be had in a guest, or with a guest for each node.
func checkGuests(o runOptions, s *study.Study) error {
	switch {
	case o.nodes != "" && o.nodes != vmTestbed:
		return usageError{fmt.Errorf("--nodes %s: a guest makes its own nodes; with --nodes vm each node is a guest", o.nodes)}
	case o.nodes == "" && o.listener != nil:
		return usageError{errors.New("--metrics-listen: a run inside a guest is seen from here at its end only; give each node a guest of its own by --nodes vm")}
	case o.nodes == "":
		return nil
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--nodes vm: --flame, --hops and --explain-outliers look at one kernel, and each guest has its own")}
	case s.Testbed.Nodes > guests.NodesMost:
		return usageError{fmt.Errorf("--nodes vm: the study has %d nodes, and there are %d guests", s.Testbed.Nodes, guests.NodesMost)}
	}
	return nil
}

// openGuests is the provider of a lab in a guest, or of a guest for each node.
func openGuests(ctx context.Context, env *environment, s *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	if o.nodes == "" || o.exact {
		return guests.Lab{Image: func(ctx context.Context) (image.Image, error) { return env.buildImage(ctx, false) }}, func() error { return nil }, nil
	}
	img, err := env.buildImage(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	g, err := guests.OpenNodes(ctx, img, session.HasPrograms(s, env.workloads))
	if err != nil {
		return nil, nil, err
	}
	return g, g.Close, nil
}

// noTarget refuses endpoints and storage of the user's own where pods reach none.
func noTarget(o runOptions, on string) error {
	if flag := firstGiven(o.target.flags); flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s or %s: from testbed %s, which this study runs on, no packet gets out to an endpoint of yours", flag, kubeTestbed, sshTestbed, on)}
	}
	return noStorage(o, on)
}

// noStorage refuses storage of the user's own where there is none.
func noStorage(o runOptions, on string) error {
	if len(o.overrides.StorageClass) > 0 {
		return usageError{fmt.Errorf("--%s goes with --testbed %s: testbed %s, which this study runs on, has no StorageClasses", storageFlag, kubeTestbed, on)}
	}
	return nil
}

// clusterOnly refuses flags of a cluster on another kind of testbed.
func clusterOnly(o runOptions, on kind) error {
	if on.cluster {
		return nil // it refuses by itself what it can't use
	}
	refused := noTarget
	if on.targets {
		refused = noStorage
	}
	if err := refused(o, on.name); err != nil {
		return err
	}
	if o.whatIf {
		return usageError{fmt.Errorf("--%s goes with --testbed %s; this study runs on testbed %s", whatIfFlag, kubeTestbed, on.name)}
	}
	if flag := o.cluster.given(); flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s; this study runs on testbed %s", flag, kubeTestbed, on.name)}
	}
	return nil
}

// checkCluster refuses flags that have no meaning on a cluster.
func checkCluster(o runOptions, _ *study.Study) error {
	for _, f := range []struct {
		given bool
		flag  string
	}{{o.flame, "--flame"}, {o.hops, "--hops"}, {o.explain, "--explain-outliers"}} {
		if f.given {
			return usageError{fmt.Errorf("%s looks into the kernel that packets pass, which a pod may not; leave it away, or run it with --testbed lab", f.flag)}
		}
	}
	return nil
}

// adaptToCluster has a study run on a cluster.
func adaptToCluster(s *study.Study, o study.Overrides, moved bool) (note string) {
	if moved {
		note = toCluster(s, o)
	}
	return cmp.Or(toTarget(s, o, kube.Host, kube.Pod), toStorage(s, o), note)
}

// cleanTime bounds what is done about a cluster after a run, also after one that was interrupted.
const cleanTime = 30 * time.Second

// inTime closes something within cleanTime, also after a call that was interrupted.
func inTime(ctx context.Context, closing func(context.Context) error) func() error {
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return closing(ctx)
	}
}

// openCluster is the provider of the cluster that the flags name; closing it removes all that was made there.
func openCluster(ctx context.Context, env *environment, _ *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	cluster, err := o.cluster.connect()
	if err != nil {
		return nil, nil, err
	}
	look := func(ctx context.Context) (survey.Survey, error) { return env.survey(ctx, o) }
	options := o.driverOptions()
	options.Waiting = o.waiting
	p, err := kubernetes.New(cluster, o.cluster.Config, options, look, env.err)
	if err != nil {
		return nil, nil, usageError{err}
	}
	if _, err := cluster.Meet(ctx); err != nil {
		return nil, nil, err
	}
	if err := p.CheckNodes(ctx); err != nil {
		return nil, nil, usageError{err}
	}
	return p, inTime(ctx, p.Close), nil
}

// knownTestbeds are the names of all kinds, and the networks that only one kind has.
func knownTestbeds() (names []string, own map[string]study.KnownTestbed) {
	own = map[string]study.KnownTestbed{}
	for _, k := range kinds() {
		names = append(names, k.name)
		if k.networks != nil {
			its := *k.networks
			its.Cards = k.cards
			own[k.name] = its
		}
	}
	return slices.Clip(names), own
}
