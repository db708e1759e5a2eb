package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/policies"
	"netdelta/experiment/record"
	"netdelta/result"
	"netdelta/testbed"
)

func newPoliciesCommand(env *environment) *cobra.Command {
	o := policies.Config{Log: env.log}
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
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.Counts, "rules", []int{1, 100}, "numbers of policies in force, the one that is timed among them")
	f.IntVar(&o.Repeat, "repeat", 10, "times that the policy is made and deleted at each of them; an interval takes 6")
	f.BoolVar(&o.Fresh, "fresh", false, "also measure fresh pods: how soon those that a policy lets in are, and what passes of others; takes --image")
	f.DurationVar(&o.Every, "every", 4*time.Millisecond, "time between two probes")
	f.DurationVar(&o.Within, "within", 30*time.Second, "how long a change may take to have an effect")
	s := &strategy{name: result.StrategyPolicies, question: "How long does a NetworkPolicy take to have an effect?", document: ".json"}
	s.check = func(kind) error {
		if o.Fresh && s.cluster.Image == "" {
			return errors.New("--fresh: a fresh pod sends packets from its first moment on, so netdelta has to be in its image: give --image (netdelta image --push makes one)")
		}
		return o.Check()
	}
	return s.command(env, cmd, "; a name that ends in .json is a file for the document of --json", func(_ context.Context, provider testbed.Provider) (record.Strategy, error) {
		o.Open = provider.Capabilities().Policies
		return o, nil
	})
}
