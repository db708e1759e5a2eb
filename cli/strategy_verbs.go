package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/fleet"
	"netdelta/experiment/pairs"
	"netdelta/experiment/policies"
	"netdelta/experiment/record"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// fleetOptions are the flags of fleet.
type fleetOptions struct {
	loadOptions
	clients, servers int
	duration, burst  time.Duration
}

func newFleetCommand(env *environment) *cobra.Command {
	var o fleetOptions
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Measure networks under many clients that begin at the same time",
		Long: `Have many clients, each in a pod of its own, fire together from a common instant on, and print what they measured as one: the
total rate, the latencies of all transactions together, how fairly the network served them, and the slowest client. Networks
stand side by side and fire in turn; the first is what the others are held against.

On a Kubernetes cluster Indexed Jobs make the pods. In the lab more clients than twenty share pods. A client that fails is
named, and the others go on.

EXIT STATUS
  0    done
  1    failed, or some clients failed (they are named)
  2    bad usage
  3    nothing could be measured
  130  interrupted; what was measured is shown`,
		Example: `  netdelta fleet --clients 20
  netdelta fleet --clients 200 --servers 2 --networks host,bridge,vxlan --workload udp-rr
  netdelta fleet --testbed kubernetes --base-image busybox --clients 100 --networks pod,clusterip`,
	}
	f := cmd.Flags()
	o.add(f)
	f.IntVar(&o.clients, "clients", 10, "clients in each network")
	f.IntVar(&o.servers, "servers", 1, "servers that share the clients among them, in each network")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long each network is measured, over all builds")
	f.DurationVar(&o.burst, "burst", 500*time.Millisecond, "how long the clients fire each time")
	s := &strategy{name: result.StrategyFleet, question: "What does each network cost many clients that fire at the same time?"}
	return s.command(env, cmd, "", func(_ context.Context, provider testbed.Provider) (record.Strategy, error) {
		l, err := o.draw(env, provider.Kind(), provider.Capabilities().Usual, o.burst)
		if err != nil {
			return nil, err
		}
		if o.builds < 1 || o.burst <= 0 || o.duration < o.burst {
			return nil, usageError{fmt.Errorf("--builds %d, --burst %v, --duration %v: it takes a build, and a burst that fits into the duration", o.builds, o.burst, o.duration)}
		}
		return fleet.Config{
			Open: fleet.In(provider, l.Params), Load: l, Clients: o.clients, Servers: o.servers,
			Bursts: max(1, int((o.duration/time.Duration(o.builds)+o.burst/2)/o.burst)),
		}, nil
	})
}

// pairsOptions are the flags of pairs.
type pairsOptions struct {
	loadOptions
	size, rounds int
	burst        time.Duration
	margin       float64
}

func newPairsCommand(env *environment) *cobra.Command {
	var o pairsOptions
	cmd := &cobra.Command{
		Use:   "pairs",
		Short: "Measure every pair of nodes, and find the odd node",
		Long: `Measure from each node to each other node, one pair at a time in rounds of random order, and take the matrix apart into what each
node adds as client and as server (Tukey's median polish). A node is called odd when it is slower or faster than the others,
with its interval over builds, and by more than they differ among themselves.

It takes three nodes to tell which one is odd, and six builds for an interval.`,
		Example: `  netdelta pairs --testbed kubernetes --base-image busybox --networks host,pod
  netdelta pairs --size 5 --networks bridge --out pairs.html
  netdelta pairs --resume runs/latest`,
	}
	f := cmd.Flags()
	o.add(f)
	f.IntVar(&o.size, "size", 3, "nodes of the lab")
	f.IntVar(&o.rounds, "rounds", 10, "bursts of each pair in each build")
	f.DurationVar(&o.burst, "burst", 10*time.Millisecond, "length of a burst")
	f.Float64Var(&o.margin, "margin", 0.05, "share by which a node must differ from the others to be called odd")
	s := &strategy{
		name: result.StrategyPairs, question: "Which node, or pair of nodes, is slower or faster than the others?", document: ".html",
		check: func(k kind) error {
			if !k.here && f.Changed("size") {
				return errors.New("--size is for a lab: a cluster's pairs are of all nodes that take pods, or of --nodes")
			}
			return nil
		},
	}
	return s.command(env, cmd, "; a name that ends in .html is a file that the heat map is drawn in", func(ctx context.Context, provider testbed.Provider) (record.Strategy, error) {
		able := provider.Capabilities()
		l, err := o.draw(env, provider.Kind(), able.Usual[1:2], o.burst)
		if err != nil {
			return nil, err
		}
		nodes := o.size
		if able.Nodes != nil {
			names, err := able.Nodes(ctx)
			if err != nil {
				return nil, err
			}
			nodes = len(names)
		}
		return pairs.Config{
			Driver: provider, Load: l, Rounds: o.rounds, Margin: o.margin,
			Spec: testbed.Spec{Nodes: nodes, Family: l.Params.Family, Conditions: l.Params.Conditions, Link: testbed.Link{MTU: network.DefaultMTU}},
		}, nil
	})
}

func newPoliciesCommand(env *environment) *cobra.Command {
	o := policies.Config{Log: env.log}
	cmd := &cobra.Command{
		Use:   "policies",
		Short: "Measure how soon a cluster's NetworkPolicies have an effect",
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
