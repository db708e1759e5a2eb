package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/keep"
	"netdelta/unit"
)

func newLabCommand(env *environment) *cobra.Command {
	var asJSON bool
	list := func(cmd *cobra.Command, _ []string) error { return env.listLabs(cmd.Context(), asJSON) }
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Keep a testbed up, to look into it with your own tools",
		Long: `Keep a testbed up, to look into it with your own tools: nodes, pods and a network as a run builds them, until they are taken
down. Without a verb the labs that are up are listed. Each user has labs of its own; users without root have them in user
namespaces.`,
		Example: `  netdelta lab up vxlan
  netdelta lab exec pod0 -- ip address
  netdelta lab exec pod0
  netdelta lab swap bridge
  netdelta lab down`,
		Args: args(cobra.NoArgs),
		RunE: list,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	listing := &cobra.Command{Use: "list", Short: "List the labs that are up", Example: "  netdelta lab list --json", Args: args(cobra.NoArgs), RunE: list}
	listing.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.AddCommand(
		newLabUpCommand(env), newLabExecCommand(env), newLabSwapCommand(env), listing, newLabDownCommand(env), newLabHoldCommand(env),
	)
	return cmd
}

// labs opens the folder where this user's labs are recorded.
func (env *environment) labs() (*keep.Folder, error) { return keep.OpenFolder(env.getenv) }

// chooseLab finds the lab of a name, or the only one for "".
func (env *environment) chooseLab(name string) (*keep.Folder, string, error) {
	folder, err := env.labs()
	if err != nil {
		return nil, "", err
	}
	chosen, err := folder.Choose(name)
	return folder, chosen, badName(err)
}

// badName gives errors about names that there are not the exit status of bad usage.
func badName(err error) error {
	if _, is := errors.AsType[*keep.UnknownError](err); is {
		return withStatus(exitUsage, err)
	}
	return err
}

func (env *environment) listLabs(ctx context.Context, asJSON bool) error {
	folder, err := env.labs()
	if err != nil {
		return err
	}
	all, err := folder.List(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		if all == nil {
			all = []keep.Status{} // a list, also when it is empty
		}
		return json.NewEncoder(env.out).Encode(all)
	}
	if len(all) == 0 {
		fmt.Fprintln(env.out, "no lab is up; make one with netdelta lab up NETWORK")
		return nil
	}
	w := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LAB\tNETWORK\tNODES\tPODS\tUP FOR\tRIGHTS\tPROCESS")
	for _, s := range all {
		if s.Trouble != "" {
			fmt.Fprintf(w, "%s\t%s\n", s.Name, ui.Clean(s.Trouble))
			continue
		}
		rights := "root"
		if s.Rootless {
			rights = "rootless"
		}
		up := max(0, time.Since(s.Started)).Truncate(time.Second)
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%s\t%d\n", s.Name, s.Network, s.Nodes, len(s.Pods), up, rights, s.PID)
	}
	return w.Flush()
}

// printLab shows a lab that is up, and what to do with it.
func (env *environment) printLab(s keep.Status) error {
	fmt.Fprintf(env.out, "lab %s is up: network %s, %s on %s\n\n", s.Name, s.Network, unit.Counted(len(s.Pods), "pod"), strings.Join(nodesOf(s), ", "))
	w := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  POD\tNODE\tADDRESS")
	for _, p := range s.Pods {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", p.Name, p.Node, p.Address)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	call := "netdelta lab exec"
	if s.Name != defaultLab {
		call += " --name " + s.Name
	}
	first, last := s.Pods[0], s.Pods[len(s.Pods)-1]
	if len(s.Pods) > 1 {
		fmt.Fprintf(env.out, "\npath from %s to %s: %s\n", first.Name, last.Name, s.Path)
		fmt.Fprintf(env.out, "\ntry\n  %s %s -- ping -c 3 %s%s\n", call, first.Name, last.Reached, needed("ping", "iputils-ping"))
		fmt.Fprintf(env.out, "  %s %s -- iperf3 -s -1 -p %d &%s\n", call, last.Name, last.Port, needed("iperf3", "iperf3"))
		fmt.Fprintf(env.out, "  %s %s -- iperf3 -c %s -p %d\n", call, first.Name, last.Reached, last.Port)
	} else {
		fmt.Fprintf(env.out, "\ntry\n")
	}
	fmt.Fprintf(env.out, "  %s %s -- ip address\n  %s %s\n", call, first.Node, call, first.Name)
	return nil
}

// needed is a remark for a shell on a call of a tool that this machine lacks: the Debian package that has it.
func needed(tool, debian string) string {
	if _, err := exec.LookPath(tool); err == nil {
		return ""
	}
	return "   # needs the package " + debian
}

// nodesOf are the nodes that have pods, in order.
func nodesOf(s keep.Status) []string {
	var nodes []string
	for _, p := range s.Pods {
		if len(nodes) == 0 || nodes[len(nodes)-1] != p.Node {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes
}

func newLabDownCommand(env *environment) *cobra.Command {
	var name string
	var all bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take a lab down, with all that runs in it",
		Long: `Take a lab down, with all that runs in its pods. Without --name it is the only lab that is up. A lab that is down already is
no error, and one whose process hangs is removed by force.`,
		Example: `  netdelta lab down
  netdelta lab down --all`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all && name != "" {
				return usageError{errors.New("--all takes down every lab: leave --name away")}
			}
			return env.takeDown(cmd.Context(), name, all)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "which lab (default: the only one)")
	cmd.Flags().BoolVar(&all, "all", false, "all labs of this user")
	return cmd
}

func (env *environment) takeDown(ctx context.Context, name string, all bool) error {
	folder, err := env.labs()
	if err != nil {
		return err
	}
	names, err := folder.Names()
	if err != nil {
		return err
	}
	if len(names) == 0 {
		fmt.Fprintln(env.out, "no lab is up")
		return nil
	}
	if name != "" || !all {
		chosen, err := folder.Choose(name)
		if _, is := errors.AsType[*keep.UnknownError](err); name != "" && is && keep.CheckName(name) == nil {
			fmt.Fprintf(env.out, "lab %s is not up\n", name)
			return nil
		}
		if err != nil {
			return badName(err)
		}
		names = []string{chosen}
	}
	var failed error
	for _, n := range names {
		if err := folder.Down(ctx, n); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		fmt.Fprintf(env.out, "lab %s is down\n", n)
	}
	// What ran in the pods of a lab whose keeper was killed.
	sweep(ctx, env)
	return failed
}

func newLabSwapCommand(env *environment) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "swap NETWORK",
		Short: "Replace the network of a lab under what runs in its pods",
		Long: `Replace the network of a lab. Pods keep their addresses, processes and open connections; nodes are made anew, and what runs
in them loses its devices. A lab that came up with pods in their nodes' namespaces (network host) can't do it.`,
		Example: `  netdelta lab swap bridge
  netdelta lab swap vxlan --name slow`,
		Args:              args(cobra.ExactArgs(1)),
		ValidArgsFunction: completeNetworks,
		RunE: func(cmd *cobra.Command, a []string) error {
			n, err := findNetwork(a[0])
			if err != nil {
				return usageError{err}
			}
			folder, chosen, err := env.chooseLab(name)
			if err != nil {
				return err
			}
			s, err := folder.Swap(cmd.Context(), chosen, n.Name)
			if err != nil {
				return badName(err)
			}
			return env.printLab(s)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "which lab (default: the only one)")
	return cmd
}

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
