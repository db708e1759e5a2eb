package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	report "netdelta/report/cluster"
	"netdelta/report/ui"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
)

// What --rbac can print: what runs take, or what the doctor reads as well.
const (
	rbacRuns = "runs"
	rbacAll  = "all"
)

// addCluster adds the doctor's flags that are about a cluster.
func (o *doctorOptions) addCluster(f *pflag.FlagSet) {
	o.clusterFlags.add(f)
	o.flags.StringVar(&o.rbac, "rbac", "", "with --testbed kubernetes: print only the manifest that grants the rights that runs take, or all, with those that only the doctor reads by")
	o.flags.Lookup("rbac").NoOptDefVal = rbacRuns
	o.flags.BoolVar(&o.pods.NodeAgent, "node-agent", false, "with --testbed kubernetes: look at the devices of nodes as well, by a pod on each, and say what node agents take")
	o.flags.StringVar(&o.pods.Image, "image", "", "image of node agents, with netdelta in it")
	o.flags.StringVar(&o.pods.BaseImage, "base-image", "", "any image with a shell, into which netdelta is streamed for node agents")
	o.flags.StringVar((*string)(&o.pods.QoS), "qos", "", "class of service of the pods that are judged: guaranteed, burstable or best-effort (default burstable)")
	f.AddFlagSet(o.flags)
}

// examineCluster looks at the cluster that a kubeconfig names, and says what is missing and what it means.
func examineCluster(ctx context.Context, env *environment, o doctorOptions) error {
	switch {
	case o.guest:
		return usageError{fmt.Errorf("--guest is about this machine; leave it away with --testbed %s", kubeTestbed)}
	case o.rbac != "" && o.rbac != rbacRuns && o.rbac != rbacAll:
		return usageError{fmt.Errorf("--rbac=%s: need %s or %s", o.rbac, rbacRuns, rbacAll)}
	case o.pods.NodeAgent && o.rbac == "" && o.pods.Image == "" && o.pods.BaseImage == "":
		return usageError{errors.New("--node-agent puts a pod on each node: give --image REF, or --base-image REF, any image with a shell")}
	}
	cluster, err := o.connect()
	if err != nil {
		return err
	}
	if o.rbac != "" {
		return env.printRBAC(ctx, cluster, o)
	}
	options := survey.Options{Pods: o.pods}
	if o.pods.NodeAgent {
		driver, err := kube.NewDriver(cluster, options.Pods)
		if err != nil {
			return usageError{err}
		}
		options.Inspect = inspector(driver)
	}
	found, err := survey.Look(ctx, cluster, options)
	if err != nil {
		return err
	}
	findings := survey.Judge(found)
	if o.json {
		err = report.WriteJSON(env.out, report.Document{Survey: found, Findings: findings})
	} else {
		err = report.WriteText(env.out, report.Document{Survey: found, Findings: findings}, ui.Detect(env.terminal, env.getenv))
	}
	if err != nil {
		return err
	}
	switch n := survey.Lacks(findings); n {
	case 0:
		return nil
	case 1:
		return withStatus(exitFailed, errors.New("a run on this cluster lacks something that it needs"))
	default:
		return withStatus(exitFailed, fmt.Errorf("a run on this cluster lacks %d things that it needs", n))
	}
}

// printRBAC prints the manifest that grants the user what is needed.
func (env *environment) printRBAC(ctx context.Context, cluster *kube.Cluster, o doctorOptions) error {
	who, err := survey.Who(ctx, cluster)
	if errors.Is(err, kube.ErrUnreachable) {
		return err
	}
	// Where the API server does not tell who asks, an account of the namespace is bound.
	return survey.RBAC(env.out, who, cluster.Namespace, o.pods.NodeAgent, o.rbac == rbacAll)
}

// Bounds of looking at nodes: more would tell little else, and each takes a pod.
const (
	mostInspected = 32
	inspectAtOnce = 8
)

// inspector looks at nodes by an agent on each, and takes the agents away again. What it saw of some nodes is told even where others
// could not be seen.
func inspector(driver *kube.Driver) func(context.Context, []string) (map[string][]testbed.Interface, error) {
	return func(ctx context.Context, nodes []string) (map[string][]testbed.Interface, error) {
		var mu sync.Mutex
		var errs []error
		seen := map[string][]testbed.Interface{}
		var group errgroup.Group
		group.SetLimit(inspectAtOnce)
		for _, node := range nodes[:min(len(nodes), mostInspected)] {
			group.Go(func() error {
				devices, err := inspectNode(ctx, driver, node)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs = append(errs, fmt.Errorf("node %s: %w", node, err))
					return nil
				}
				seen[node] = devices
				return nil
			})
		}
		_ = group.Wait() // their errors are gathered
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
		defer cancel()
		return seen, errors.Join(append(errs, driver.Close(ctx))...)
	}
}

func inspectNode(ctx context.Context, driver *kube.Driver, node string) ([]testbed.Interface, error) {
	agent, err := driver.NodeAgent(ctx, node)
	if err != nil {
		return nil, err
	}
	if agent == nil {
		return nil, errors.New("there is no node agent")
	}
	return agent.Describe(ctx)
}
