package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/pairs"
	"netdelta/experiment/record"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

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
		Short: "Measure every pair of nodes against each other, and find the odd node",
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
