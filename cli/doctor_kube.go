package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"netdelta/report/ui"
	"netdelta/testbed"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
)

// doctorCluster are the doctor's flags that are about a cluster.
type doctorCluster struct {
	clusterFlags
	testbed, rbac         string
	image, baseImage, qos string
	nodeAgent             bool
}

// What --rbac can print: what runs take, or what the doctor reads as well.
const (
	rbacRuns = "runs"
	rbacAll  = "all"
)

func (c *doctorCluster) add(f *pflag.FlagSet) {
	c.clusterFlags.add(f)
	f.StringVar(&c.testbed, "testbed", "lab", "what to look at: lab, this machine, or kubernetes, the cluster that the kubeconfig names")
	f.StringVar(&c.rbac, "rbac", "", "with --testbed kubernetes: print only the manifest that grants the rights that runs take, or all, with those that only the doctor reads by")
	f.Lookup("rbac").NoOptDefVal = rbacRuns
	f.BoolVar(&c.nodeAgent, "node-agent", false, "with --testbed kubernetes: look at the devices of nodes as well, by a pod on each, and say what node agents take")
	f.StringVar(&c.image, "image", "", "image of node agents, with netdelta in it")
	f.StringVar(&c.baseImage, "base-image", "", "any image with a shell, into which netdelta is streamed for node agents")
	f.StringVar(&c.qos, "qos", "", "class of service of the pods that are judged: guaranteed, burstable or best-effort (default burstable)")
}

// check refuses flags that have no meaning together.
func (c doctorCluster) check(guest bool) error {
	given := c.given()
	for flag, is := range map[string]bool{"--rbac": c.rbac != "", "--node-agent": c.nodeAgent, "--image": c.image != "", "--base-image": c.baseImage != "", "--qos": c.qos != ""} {
		if is && given == "" {
			given = flag
		}
	}
	switch {
	case c.testbed != "lab" && c.testbed != kubeTestbed:
		return usageError{fmt.Errorf("the doctor knows no testbed %q: need lab or %s", c.testbed, kubeTestbed)}
	case c.testbed != kubeTestbed && given != "":
		return usageError{fmt.Errorf("%s goes with --testbed %s", given, kubeTestbed)}
	case c.testbed == kubeTestbed && guest:
		return usageError{fmt.Errorf("--guest is about this machine; leave it away with --testbed %s", kubeTestbed)}
	case c.rbac != "" && c.rbac != rbacRuns && c.rbac != rbacAll:
		return usageError{fmt.Errorf("--rbac=%s: need %s or %s", c.rbac, rbacRuns, rbacAll)}
	case c.nodeAgent && c.rbac == "" && c.image == "" && c.baseImage == "":
		return usageError{errors.New("--node-agent puts a pod on each node: give --image REF, or --base-image REF, any image with a shell")}
	}
	return nil
}

// options are how the pods that are judged would be made.
func (c doctorCluster) options() kube.Options {
	return kube.Options{Image: c.image, BaseImage: c.baseImage, NodeAgent: c.nodeAgent, QoS: kube.QoS(c.qos)}
}

// clusterDocument is what the doctor found in a cluster, as JSON.
type clusterDocument struct {
	Survey   survey.Survey    `json:"survey"`
	Findings []survey.Finding `json:"findings"`
}

// examineCluster looks at the cluster that a kubeconfig names, and says what is missing and what it means.
func (env *environment) examineCluster(ctx context.Context, c doctorCluster, asJSON bool) (err error) {
	cluster, err := c.connect()
	if err != nil {
		return err
	}
	if c.rbac != "" {
		return env.printRBAC(ctx, cluster, c)
	}
	options := survey.Options{Pods: c.options()}
	if c.nodeAgent {
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
	if asJSON {
		err = writeJSON(harmless{env.out}, clusterDocument{found, findings})
	} else {
		err = clusterPage{env.out, ui.Detect(env.terminal, env.getenv)}.print(found, findings)
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
func (env *environment) printRBAC(ctx context.Context, cluster *kube.Cluster, c doctorCluster) error {
	who, err := survey.Who(ctx, cluster)
	if errors.Is(err, kube.ErrUnreachable) {
		return err
	}
	// Where the API server does not tell who asks, an account of the namespace is bound.
	fmt.Fprint(env.out, survey.RBAC(who, cluster.Namespace, c.nodeAgent, c.rbac == rbacAll))
	return nil
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

// known is text, or says that there is none.
func known(text string) string {
	if strings.TrimSpace(text) == "" {
		return "not known"
	}
	return text
}
