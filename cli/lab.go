package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"netdelta/report/ui"
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
	listing := &cobra.Command{Use: "list", Short: "List the labs that are up", Args: args(cobra.NoArgs), RunE: list}
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
