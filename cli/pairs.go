package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"netdelta/agent"
	"netdelta/experiment/pairs"
	insight "netdelta/insight/pairs"
	"netdelta/network"
	report "netdelta/report/pairs"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/kube"
)

// pairsOptions are the flags of pairs.
type pairsOptions struct {
	testbed, workload string
	networks, factors []string
	size              int
	builds, rounds    int
	burst             time.Duration
	margin            float64
	seed              uint64
	nodes             []string
	cluster           clusterOptions
	strategy
}

func newPairsCommand(env *environment) *cobra.Command {
	o := &pairsOptions{strategy: strategy{
		name: result.StrategyPairs, question: "Which node, or pair of nodes, is slower or faster than the others?", document: ".html",
	}}
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
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := o.read(files); err != nil {
				return err
			}
			if err := o.cluster.checkTestbed(o.testbed, o.nodes); err != nil {
				return err
			}
			k, err := findAble(o.testbed, func(k kind) bool { return k.pairs != nil })
			if err != nil {
				return err
			}
			if !k.here && cmd.Flags().Changed("size") {
				return usageError{errors.New("--size is for a lab: a cluster's pairs are of all nodes that take pods, or of --nodes")}
			}
			return k.pairs(env, cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", "lab", "where to measure: lab or kubernetes")
	f.StringSliceVar(&o.networks, "networks", nil, "networks to measure (default bridge; on a cluster pod)")
	f.StringVar(&o.workload, "workload", "tcp-rr", "workload between the nodes of a pair")
	f.StringArrayVar(&o.factors, "factor", nil, "a level of one of its parameters: message=1KiB")
	f.IntVar(&o.size, "size", 3, "nodes of the lab")
	f.StringSliceVar(&o.nodes, "nodes", nil, "nodes of the cluster to pair (default: all that take pods)")
	f.IntVar(&o.builds, "builds", stats.DefaultMinBuilds, "times that everything is set up anew; an interval takes 6")
	f.IntVar(&o.rounds, "rounds", 10, "bursts of each pair in each build")
	f.DurationVar(&o.burst, "burst", 10*time.Millisecond, "length of a burst")
	f.Float64Var(&o.margin, "margin", 0.05, "share by which a node must differ from the others to be called odd")
	f.Uint64Var(&o.seed, "seed", 0, "seed of all random orders (default: drawn, and recorded)")
	o.strategy.add(cmd, "run folder to write (default: runs/STUDY-TIME); a name that ends in .html is a file that the heat map is drawn in")
	o.cluster.add(f)
	return cmd
}

// pairsInLab measures between nodes that netdelta makes.
func (env *environment) pairsInLab(ctx context.Context, o *pairsOptions) error {
	sweep(ctx, env)
	if len(o.networks) == 0 {
		o.networks = []string{"bridge"}
	}
	return env.pairs(ctx, env.lab, o.size, o)
}

// pairsOnCluster measures between nodes of a cluster.
func (env *environment) pairsOnCluster(ctx context.Context, o *pairsOptions) error {
	driver, remove, err := o.cluster.openCluster(ctx, o.nodes)
	if err != nil {
		return err
	}
	if len(o.networks) == 0 {
		o.networks = []string{kube.Pod}
	}
	able, err := driver.Able(ctx)
	if err != nil {
		return errors.Join(err, remove(ctx))
	}
	return errors.Join(env.pairs(ctx, driver, len(able), o), remove(ctx))
}

// pairs measures, judges and prints.
func (env *environment) pairs(ctx context.Context, driver testbed.Provider, nodes int, o *pairsOptions) error {
	w, p, err := env.loadOf(o.workload, o.factors)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, which the agents are: %w", err)
	}
	if o.margin <= 0 || o.margin >= 1 {
		return usageError{fmt.Errorf("--margin %v: need a share between 0 and 1", o.margin)}
	}
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	config := pairs.Config{
		Driver:  driver,
		Spec:    testbed.Spec{Nodes: nodes, Family: p.Family, Conditions: p.Conditions, Link: testbed.Link{MTU: network.DefaultMTU}},
		Program: agent.Program{Path: self}, Workload: w, Params: p, Networks: o.networks,
		Builds: o.builds, Rounds: o.rounds, Burst: o.burst, Warmup: o.burst / 10, Seed: o.seed,
		Log: func(line string) { fmt.Fprintln(env.err, ui.Clean(line)) },
	}
	if err := config.Check(); err != nil {
		return usageError{err}
	}
	if err := env.supported(ctx, driver, config.Networks, p); err != nil {
		return err
	}
	run, folder, err := env.openRecord(&o.strategy, result.Run{Testbed: driver.Kind(), Seed: o.seed, Margin: o.margin})
	if err != nil {
		return err
	}
	config.Record = run
	measured, err := pairs.Run(ctx, config)
	if err != nil && ctx.Err() == nil {
		return failedRecord(err, pairs.ErrNothing, run, folder)
	}
	return errors.Join(err, env.printPairs(insight.Judge(measured, stats.Options{Margin: o.margin}), o), env.closeRecord(&o.strategy, run, folder))
}

func (env *environment) printPairs(r insight.Report, o *pairsOptions) error {
	if o.isDocument() {
		if err := replaceFile(o.out, func(w io.Writer) error { return report.Write(w, r) }); err != nil {
			return err
		}
		fmt.Fprintf(env.err, "heat map: %s\n", ui.Clean(o.out))
	}
	if o.json {
		return writeJSON(env.out, r)
	}
	return report.WriteText(env.out, r)
}
