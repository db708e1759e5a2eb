package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/policies"
	"netdelta/experiment/study"
	insight "netdelta/insight/policies"
	report "netdelta/report/policies"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// policiesOptions are the flags of policies.
type policiesOptions struct {
	testbed string
	counts  []int
	repeat  int
	fresh   bool
	every   time.Duration
	within  time.Duration
	nodes   []string
	cluster clusterOptions
	strategy
}

func newPoliciesCommand(env *environment) *cobra.Command {
	o := &policiesOptions{strategy: strategy{
		name: result.StrategyPolicies, question: "How long does a NetworkPolicy take to have an effect?", document: ".json",
	}}
	cmd := &cobra.Command{
		Use:   "policies",
		Short: "Measure how long a NetworkPolicy of a cluster takes to have an effect",
		Long: `Make and delete a NetworkPolicy that closes a server to its client, and measure with packets from the client how long it takes
from the request to the API server until they are refused, and until they pass again. Client and server are pods on two nodes.
How long the API server took to answer the request is printed too: it is part of that time. Each packet is sent from a socket of its own, so that none passes as part of a connection that was let in before.

Other policies are in force meanwhile, so many that there are as many as --rules says: they select the client and another pod
on the server's node. With --fresh it is also measured how soon a fresh pod is let in that a policy names, from the moment its program
begins, and how many packets slip through of a fresh pod that none names. What policies cost packets is a condition of run: --factor policy=none,kubernetes.

EXIT STATUS
  0    done
  1    failed, or not all could be measured (what is missing is named)
  2    bad usage
  3    nothing could be measured: the cluster does not enforce NetworkPolicy
  130  interrupted; what was measured is shown`,
		Example: `  netdelta policies --testbed kubernetes --base-image busybox
  netdelta policies --testbed kubernetes --base-image busybox --rules 1,100 --repeat 20 --out policies.json
  netdelta policies --testbed kubernetes --image registry.example.org/netdelta:1 --fresh`,
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := o.read(files); err != nil {
				return err
			}
			if err := o.cluster.checkTestbed(o.testbed, o.nodes); err != nil {
				return err
			}
			if o.testbed != kubeTestbed {
				return usageError{fmt.Errorf("--testbed %s: NetworkPolicy objects are a cluster's; give --testbed kubernetes", o.testbed)}
			}
			if o.fresh && o.cluster.Image == "" {
				return usageError{errors.New("--fresh: a fresh pod sends packets from its first moment on, so netdelta has to be in its image: give --image (netdelta image --push makes one)")}
			}
			return env.policies(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", kubeTestbed, "where to measure: kubernetes")
	f.IntSliceVar(&o.counts, "rules", []int{1, 100}, "numbers of policies in force, the one that is timed among them")
	f.IntVar(&o.repeat, "repeat", 10, "times that the policy is made and deleted at each of them; an interval takes 6")
	f.BoolVar(&o.fresh, "fresh", false, "also measure fresh pods: how soon those that a policy lets in are, and what passes of others; takes --image")
	f.DurationVar(&o.every, "every", 4*time.Millisecond, "time between two probes")
	f.DurationVar(&o.within, "within", 30*time.Second, "how long a change may take to have an effect")
	f.StringSliceVar(&o.nodes, "nodes", nil, "the two nodes (default: two that take pods)")
	o.strategy.add(cmd, "run folder to write (default: runs/STUDY-TIME); a name that ends in .json is a file for the document of --json")
	o.cluster.add(f)
	return cmd
}

// policies measures and prints.
func (env *environment) policies(ctx context.Context, o *policiesOptions) error {
	config := policies.Config{
		Counts: o.counts, Repeat: o.repeat, Fresh: o.fresh, Every: o.every, Within: o.within,
		Log: func(line string) { fmt.Fprintln(env.err, ui.Clean(line)) },
	}
	if err := config.Check(); err != nil {
		return usageError{err}
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return err
	}
	driver, err := kube.NewDriver(cluster, kube.Options{
		Image: o.cluster.Image, BaseImage: o.cluster.BaseImage, Zones: o.cluster.Zones, QoS: o.cluster.QoS, Nodes: o.nodes,
	})
	if err != nil {
		return usageError{err}
	}
	err = env.timePolicies(ctx, driver, config, o)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanTime)
	defer cancel()
	return errors.Join(err, driver.Close(ctx))
}

func (env *environment) timePolicies(ctx context.Context, driver *kube.Driver, config policies.Config, o *policiesOptions) error {
	err := driver.Supports(ctx, testbed.Spec{Network: kube.Pod, Conditions: result.Conditions{Policy: result.PolicyKubernetes, PolicyRules: 1}})
	if errors.Is(err, testbed.ErrUnsupported) {
		return withStatus(exitNothing, err)
	}
	if err != nil {
		return err
	}
	config.Open = func(ctx context.Context, count int, every time.Duration) (policies.Target, error) {
		g, err := driver.OpenPolicyTarget(ctx, count, every)
		if err != nil {
			return nil, err // a nil *kube.PolicyTarget would be a target
		}
		return g, nil
	}
	run, folder, err := env.openRecord(&o.strategy, result.Run{Testbed: o.testbed, Margin: study.DefaultMargin})
	if err != nil {
		return err
	}
	config.Record = run
	measured, err := policies.Run(ctx, config)
	if err != nil && ctx.Err() == nil {
		return failedRecord(err, policies.ErrNothing, run, folder)
	}
	if err := errors.Join(err, env.printPolicies(insight.Judge(measured), o), env.closeRecord(&o.strategy, run, folder)); err != nil {
		return err
	}
	if n := len(measured.Failures); n > 0 {
		return withStatus(exitFailed, fmt.Errorf("not all could be measured at %d of %d numbers of policies; the figures are those of the rest", n, len(o.counts)))
	}
	return nil
}

func (env *environment) printPolicies(r insight.Report, o *policiesOptions) error {
	if o.isDocument() {
		if err := replaceFile(o.out, func(w io.Writer) error { return writeJSON(w, r) }); err != nil {
			return err
		}
	}
	if o.json {
		return writeJSON(env.out, r)
	}
	return report.WriteText(env.out, r)
}
