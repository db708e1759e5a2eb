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
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/servers"
	"netdelta/testbed/servers/server"
	"netdelta/testbed/ssh"
)

// serverFlags say how servers are used that are named by --nodes.
type serverFlags struct {
	nic  string
	sudo bool
}

func (s *serverFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.nic, "nic", "", "with --testbed ssh or --what-if, how nodes get their cards: "+servers.Modes)
	f.BoolVar(&s.sudo, "sudo", false, "with --testbed ssh: run as root on the servers by sudo -n")
}

// given is the first of the flags that was given, "" for none.
func (s serverFlags) given() string {
	switch {
	case s.nic != "":
		return "--nic"
	case s.sudo:
		return "--sudo"
	}
	return ""
}

// of leaves to the study what no flag says.
func (s serverFlags) of(st *study.Study) serverFlags {
	s.nic = cmp.Or(s.nic, st.Testbed.NIC)
	return s
}

// options are how the servers that --nodes names are reached.
func (s serverFlags) options(nodes string) (o ssh.Options, err error) {
	if nodes == "" {
		return o, usageError{fmt.Errorf("--testbed ssh needs the servers: --nodes %s[user@]a,%s[user@]b", ssh.Prefix, ssh.Prefix)}
	}
	o.Sudo = s.sudo
	if o.Nodes, err = ssh.ParseNodes(nodes); err != nil {
		return o, usageError{err}
	}
	if len(o.Nodes) > servers.NodesMost {
		return o, usageError{fmt.Errorf("--nodes: %d servers are named, and there can be %d", len(o.Nodes), servers.NodesMost)}
	}
	if o.NIC, err = servers.ParseNIC(s.nic); err != nil {
		return o, usageError{err}
	}
	return o, nil
}

// serversOnly refuses flags of servers on another kind of testbed.
func serversOnly(o runOptions, on kind) error {
	if on.cards {
		return nil // it refuses by itself what it can't use
	}
	if flag := o.servers.given(); flag != "" {
		return usageError{fmt.Errorf("%s goes with --testbed %s; this study runs on testbed %s", flag, sshTestbed, on.name)}
	}
	return nil
}

// checkServers refuses what can't be had on servers.
func checkServers(o runOptions, s *study.Study) error {
	at, err := o.servers.of(s).options(o.nodes)
	switch {
	case err != nil:
		return err
	case o.flame || o.hops || o.explain:
		return usageError{errors.New("--flame, --hops and --explain-outliers look at the kernel of this machine: run netdelta on the server itself for them")}
	case len(at.Nodes) > 1 && s.Testbed.Nodes > len(at.Nodes):
		return usageError{fmt.Errorf("the study has %d nodes, and --nodes names %d servers", s.Testbed.Nodes, len(at.Nodes))}
	}
	return nil
}

// adaptToServers has a study with a target compare where its clients stand: in the servers' own network.
func adaptToServers(s *study.Study, o study.Overrides, moved bool) (note string) {
	return joinNotes(toTarget(s, o, network.Metal), toOwnLinks(s, o, moved))
}

// toOwnLinks has a study that was made for another testbed, and whose baseline is the machines' own network, leave the links as they are:
// nothing can be held against that network over links of another rate. It says what was left out.
func toOwnLinks(s *study.Study, o study.Overrides, moved bool) (note string) {
	if !moved || cmp.Or(o.Baseline, s.Baseline) != network.Metal {
		return ""
	}
	left := s.LeaveLinks()
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("the baseline metal has the links that the machines have, and so have all networks: %s of the study is left out, and claims about it are not tested", strings.Join(left, ", "))
}

// joinNotes joins the notes that say something.
func joinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "; ")
}

// openServers makes nodes of the servers; closing it gives back what they had.
func openServers(ctx context.Context, _ *environment, s *study.Study, o runOptions) (testbed.Provider, func() error, error) {
	at, err := o.servers.of(s).options(o.nodes)
	if err != nil {
		return nil, nil, err
	}
	if at.Least = s.Testbed.Nodes; at.Least < 2 || len(at.Nodes) <= at.Least { // one server alone would be another testbed
		at.Least = 0
	}
	opened, err := ssh.Open(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	if slices.Contains(s.Networks, network.Metal) { // which has the MTU of its card
		takeMTU(s, o, opened.MTU())
	}
	return opened, opened.Close, nil
}

// examineServers is what the doctor finds on servers.
func examineServers(ctx context.Context, env *environment, o doctorOptions) error {
	at, err := o.servers.options(o.nodes)
	if err != nil {
		return err
	}
	var all []finding
	for _, seen := range servers.Look(ctx, at.Machines(), at.NIC) {
		all = append(all, serverFindings(seen, true)...)
	}
	return env.tell(all, o)
}

// serverFindings are the doctor's findings on one server, whose cards may be taken or not.
func serverFindings(seen servers.Seen, taken bool) (all []finding) {
	topic := func(what string) string { return fmt.Sprintf("%s %s", seen.Name, what) }
	if seen.Err != nil {
		return []finding{{Topic: topic("reached"), Says: seen.Err.Error()}}
	}
	r := seen.Report
	if r.OS != "" {
		r.OS += ", "
	}
	all = append(all, finding{Topic: topic("system"), OK: true, Says: fmt.Sprintf("Linux %s %s, %s%d x %s%s%s", r.Kernel, r.Arch, r.OS, r.CPU.Count, r.CPU.Model, servers.Isolated(r.CPU), onVirtual(r.Virtual))})
	if r.CPU.NUMA > 1 {
		all = append(all, finding{Topic: topic("memory"), OK: true, Says: fmt.Sprintf("%d NUMA nodes: a processor far from its card takes longer", r.CPU.NUMA)})
	}
	for _, f := range examineSettings(result.Environment{Clock: r.Clock, CPU: r.CPU}) {
		f.Topic = topic(f.Topic)
		all = append(all, f)
	}
	if r.Rights != "" {
		all = append(all, finding{Topic: topic("rights"), Says: r.Rights, Fix: "name a user who is root, as ssh:root@host, or give --sudo"})
	}
	for _, c := range r.Cards {
		f := finding{Topic: topic("card " + c.Name), OK: c.Up, Says: servers.About(c)}
		mode := func(name, not string) {
			if not == "" {
				f.Says += fmt.Sprintf("; %s:%s works", name, c.Name)
			} else {
				f.Says += fmt.Sprintf("; %s: %s", name, not)
			}
		}
		mode(server.Macvlan, c.NoMacvlan)
		mode(server.IPVlan, c.NoIPVlan)
		if taken {
			mode(server.Take, c.NotTaken)
			if c.Functions > 0 {
				f.Says += fmt.Sprintf("; %s:%s/0 to %d may work", server.VF, c.Name, c.Functions-1)
			} else {
				f.Says += "; vf: it can have no virtual functions"
			}
		}
		if !c.Up && taken {
			f.Fix = "ip link set " + c.Name + " up, or --nic take:" + c.Name
		}
		all = append(all, f)
	}
	for _, w := range seen.Ways {
		all = append(all, wayFinding(w, topic("to "+w.To)))
	}
	for _, n := range r.Networks {
		f := finding{Topic: topic("network " + n.Name), OK: n.Why == "", Says: "its kernel has what it takes"}
		if n.Why != "" {
			f.Says = n.Why
		}
		all = append(all, f)
	}
	return all
}

// wayFinding is what the doctor says of the way to another server.
func wayFinding(w server.Way, topic string) finding {
	switch {
	case w.Why != "":
		return finding{Topic: topic, OK: true, Says: "how large packets can be is not known: " + w.Why}
	case w.MTU < w.Card:
		says, fix := servers.Lost(w.MTU, w.Card)
		return finding{Topic: topic, Says: says, Fix: fix}
	}
	return finding{Topic: topic, OK: true, Says: fmt.Sprintf("packets of %d bytes arrive, the card's MTU", w.MTU)}
}

// cleanServers removes what killed runs left on servers, and says how much it was.
func cleanServers(ctx context.Context, env *environment, o cleanOptions) (found int, err error) {
	at, err := o.servers.options(o.nodes)
	if err != nil {
		return 0, err
	}
	for _, c := range servers.Clean(ctx, at.Machines()) {
		for _, what := range c.Removed {
			fmt.Fprintf(env.out, "%s: removed %s\n", c.Name, ui.Clean(what))
		}
		found, err = found+len(c.Removed), errors.Join(err, c.Err)
	}
	return found, err
}

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
	addPodSpec(c.flags, &c.PodSpec)
	f.AddFlagSet(c.flags)
}

// addPodSpec declares what a cluster may ask of pods.
func addPodSpec(f *pflag.FlagSet, s *kube.PodSpec) {
	f.StringSliceVar(&s.Tolerate, "tolerate", nil, "taints of nodes that pods tolerate: KEY, KEY=VALUE, each also with :EFFECT, or * for all")
	f.StringSliceVar(&s.PullSecrets, "pull-secret", nil, "secrets of the namespace by which nodes pull the image")
	f.StringVar(&s.ServiceAccount, "service-account", "", "account of the namespace that pods run as; they have no token of it")
	f.StringSliceVar(&s.Labels, "label", nil, "further labels of pods, KEY=VALUE, as policies of a cluster may ask for")
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
