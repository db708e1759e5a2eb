package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"netdelta/report/ui"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/change"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/rootless"
)

// cleanOptions are the flags of cleanup about other machines.
type cleanOptions struct {
	cluster clusterFlags
	nodes   string
	servers serverFlags
}

func newCleanupCommand(env *environment) *cobra.Command {
	var kind string
	var o cleanOptions
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove whatever a killed run left",
		Long: `Remove whatever a killed run left on this machine: processes in its pods, also stopped and hung ones, control groups of
networks that join sockets, temporary folders, and the records of labs whose process has died. Namespaces, links, rules and mounts
need no removal: they end with the last process inside. Runs that are under way, and labs that are up, are left alone. Each run on
this machine does the same before it begins.

What killed runs have changed of a cluster is restored. With --testbed kubernetes, or a flag that names a cluster, pods and services
of killed runs in the cluster's namespace are removed as well. With --nodes ssh:a,ssh:b what they left on these servers is put back.`,
		Example: `  netdelta cleanup
  netdelta cleanup --testbed kubernetes --namespace measuring
  netdelta cleanup --nodes ssh:root@a,ssh:root@b`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			usual := kubeTestbed
			if o.nodes != "" {
				usual = sshTestbed
			}
			where, err := findKind(cmp.Or(kind, usual))
			if err != nil || where.clean == nil {
				return usageError{fmt.Errorf("--testbed %s: it takes %s or %s; what runs on this machine left is removed in any case", kind, kubeTestbed, sshTestbed)}
			}
			found, err := env.cleanHere(cmd.Context())
			if err != nil {
				return err
			}
			if kind != "" || o.nodes != "" || o.cluster.given() != "" {
				more, err := where.clean(cmd.Context(), env, o)
				if err != nil {
					return err
				}
				found += more
			}
			if found == 0 {
				fmt.Fprintln(env.out, "nothing to clean up")
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&kind, "testbed", "", "kubernetes: look in the cluster, too; ssh: look on the servers, too")
	cmd.Flags().StringVar(&o.nodes, "nodes", "", "with --testbed ssh: the servers, ssh:[user@]host[:port],...")
	cmd.Flags().BoolVar(&o.servers.sudo, "sudo", false, "with --testbed ssh: look as root, by sudo -n")
	o.cluster.add(cmd.Flags())
	return cmd
}

// cleanHere removes what runs on this machine left, and says how much it was.
func (env *environment) cleanHere(ctx context.Context) (int, error) {
	labs, err := env.forgetLabs()
	if err != nil {
		printError(env.err, err.Error()) // what is left of runs must not stay for that
	}
	removed, err := lab.Cleanup(ctx)
	for _, o := range removed {
		fmt.Fprintf(env.out, "removed %s\n", ui.Clean(o.String()))
	}
	if err != nil {
		return 0, err
	}
	restored, err := change.Recover(ctx, "", env.err)
	for _, r := range restored {
		fmt.Fprintf(env.out, "restored %s\n", ui.Clean(r.String()))
	}
	return len(removed) + labs + len(restored), err
}

// forgetLabs removes what is recorded of labs whose keepers were killed, and says how many they were.
func (env *environment) forgetLabs() (int, error) {
	folder, err := env.labs()
	if err != nil {
		return 0, err
	}
	removed, err := folder.Clean()
	for _, name := range removed {
		fmt.Fprintf(env.out, "removed the record of lab %s, whose process has died\n", name)
	}
	return len(removed), err
}

// cleanCluster removes what killed runs left in a cluster, and says how much it was.
func cleanCluster(ctx context.Context, env *environment, o cleanOptions) (int, error) {
	cluster, err := o.cluster.meet(ctx)
	if err != nil {
		return 0, err
	}
	removed, err := kube.Sweep(ctx, cluster)
	for _, what := range removed {
		fmt.Fprintf(env.out, "removed %s\n", ui.Clean(what))
	}
	return len(removed), err
}

// sweep removes what killed runs left. A run must not fail because of an old one's remains: what can't be removed is said.
func sweep(ctx context.Context, env *environment) {
	if _, entered := rootless.Entered(); entered {
		return // who started this program has done it
	}
	removed, err := lab.Cleanup(ctx)
	for _, o := range removed {
		fmt.Fprintf(env.err, "removed what a killed run left: %s\n", ui.Clean(o.String()))
	}
	if err != nil {
		printError(env.err, err.Error())
	}
}
