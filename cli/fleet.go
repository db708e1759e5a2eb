package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/agent"
	"netdelta/experiment/fleet"
	"netdelta/experiment/plan"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	insight "netdelta/insight/fleet"
	"netdelta/internal/suggest"
	"netdelta/network"
	report "netdelta/report/fleet"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/workload"
)

// fleetOptions are the flags of fleet.
type fleetOptions struct {
	testbed, workload string
	networks, factors []string
	clients, servers  int
	builds            int
	duration, burst   time.Duration
	seed              uint64
	nodes             []string
	cluster           clusterOptions
	strategy
}

func newFleetCommand(env *environment) *cobra.Command {
	o := &fleetOptions{strategy: strategy{
		name: result.StrategyFleet, question: "What does each network cost many clients that fire at the same time?",
	}}
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Measure networks under many clients that fire at the same time",
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
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := o.read(files); err != nil {
				return err
			}
			if err := o.cluster.checkTestbed(o.testbed, o.nodes); err != nil {
				return err
			}
			k, err := findAble(o.testbed, func(k kind) bool { return k.fleet != nil })
			if err != nil {
				return err
			}
			return k.fleet(env, cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", "lab", "where to measure: lab or kubernetes")
	f.StringSliceVar(&o.networks, "networks", nil, "networks to measure, the baseline first (default host,bridge; on a cluster host,pod,clusterip)")
	f.StringSliceVar(&o.nodes, "nodes", nil, "nodes of the cluster that pods are put on (default: all that take pods)")
	f.StringVar(&o.workload, "workload", "tcp-rr", "workload that every client runs")
	f.StringArrayVar(&o.factors, "factor", nil, "a level of one of its parameters: message=1KiB")
	f.IntVar(&o.clients, "clients", 10, "clients in each network")
	f.IntVar(&o.servers, "servers", 1, "servers that share the clients among them, in each network")
	f.IntVar(&o.builds, "builds", stats.DefaultMinBuilds, "times that everything is set up anew; an interval takes 6")
	f.DurationVar(&o.duration, "duration", 10*time.Second, "how long each network is measured, over all builds")
	f.DurationVar(&o.burst, "volley", 500*time.Millisecond, "how long the clients fire each time")
	f.Uint64Var(&o.seed, "seed", 0, "seed of all random orders (default: drawn, and recorded)")
	o.strategy.add(cmd, "run folder to write (default: runs/STUDY-TIME)")
	o.cluster.add(f)
	return cmd
}

// fleetInLab has fleets fire whose pods are in a lab.
func (env *environment) fleetInLab(ctx context.Context, o *fleetOptions) error {
	sweep(ctx, env)
	config, err := env.fleetConfig(o)
	if err != nil {
		return err
	}
	if len(config.Networks) == 0 {
		config.Networks = []string{"host", "bridge"}
	}
	o.networks = config.Networks
	if err := env.supported(ctx, env.lab, config.Networks, config.Params); err != nil {
		return err
	}
	config.Open = openShared(env.lab, config.Params)
	return env.fireFleet(ctx, config, o)
}

// supported asks a testbed for networks. A name that it does not know is bad usage.
func (*environment) supported(ctx context.Context, driver testbed.Provider, networks []string, p result.Params) error {
	for _, n := range networks {
		err := driver.Supports(ctx, testbed.Spec{Network: n, Family: p.Family, Conditions: p.Conditions.Plain()})
		var unknown *network.UnknownError
		switch {
		case errors.As(err, &unknown):
			return usageError{err}
		case errors.Is(err, testbed.ErrUnsupported):
			return withStatus(exitNothing, err)
		case err != nil:
			return fmt.Errorf("network %s: %w", n, err)
		}
	}
	return nil
}

// fireFleet carries a configured fleet out and prints what it measured.
func (env *environment) fireFleet(ctx context.Context, config fleet.Config, o *fleetOptions) error {
	if err := config.Check(); err != nil {
		return usageError{err}
	}
	run, folder, err := env.openRecord(&o.strategy, result.Run{Testbed: o.testbed, Seed: o.seed, Margin: study.DefaultMargin})
	if err != nil {
		return err
	}
	config.Record = run
	measured, err := fleet.Run(ctx, config)
	if err != nil && ctx.Err() == nil {
		return failedRecord(err, fleet.ErrNothing, run, folder)
	}
	judged := insight.Judge(measured, stats.Options{})
	if o.json {
		err = errors.Join(err, writeJSON(env.out, judged))
	} else {
		err = errors.Join(err, report.WriteText(env.out, judged))
	}
	if err := errors.Join(err, env.closeRecord(&o.strategy, run, folder)); err != nil {
		return err
	}
	failed := 0
	for _, n := range measured.Networks {
		failed += n.Failed
	}
	if failed > 0 {
		return withStatus(exitFailed, fmt.Errorf("%d of the clients, pods and builds failed; the figures are those of the others", failed))
	}
	return nil
}

// fleetConfig is all of a fleet's configuration but where it stands.
func (env *environment) fleetConfig(o *fleetOptions) (fleet.Config, error) {
	w, p, err := env.loadOf(o.workload, o.factors)
	if err != nil {
		return fleet.Config{}, err
	}
	if p.Conditions.Policy == result.PolicyKubernetes {
		return fleet.Config{}, usageError{errors.New("--factor policy=kubernetes: a fleet makes no NetworkPolicy objects; what they cost is measured by netdelta run or pairs")}
	}
	self, err := os.Executable()
	if err != nil {
		return fleet.Config{}, fmt.Errorf("finding this program, which the agents are: %w", err)
	}
	if o.builds < 1 || o.burst <= 0 || o.duration < o.burst {
		return fleet.Config{}, usageError{fmt.Errorf("--builds %d, --volley %v, --duration %v: it takes a build, and a burst that fits into the duration", o.builds, o.burst, o.duration)}
	}
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	return fleet.Config{
		Program: agent.Program{Path: self}, Workload: w, Params: p, Networks: o.networks, Clients: o.clients, Servers: o.servers,
		Builds: o.builds, Bursts: max(1, int((o.duration/time.Duration(o.builds)+o.burst/2)/o.burst)), Burst: o.burst, Warmup: o.burst / 10,
		Seed: o.seed,
		Log:  func(line string) { fmt.Fprintln(env.err, ui.Clean(line)) },
	}, nil
}

// loadOf is a workload with its parameters, checked as in a study. Several levels of a parameter are bad usage.
func (env *environment) loadOf(name string, factors []string) (workload.Workload, result.Params, error) {
	for _, f := range factors {
		if strings.Contains(f, ",") {
			return workload.Workload{}, result.Params{}, usageError{fmt.Errorf("--factor %s: one level of each parameter; it is for one load at a time", f)}
		}
	}
	var names []string
	for _, w := range env.workloads {
		names = append(names, w.Name)
		if w.Name != name {
			continue
		}
		run := runOptions{}
		run.overrides.Workloads, run.overrides.Placement, run.overrides.Factors = []string{name}, []string{string(result.CrossNode)}, factors
		s, _, err := env.chooseStudy(studies.Default, run)
		if err != nil {
			return w, result.Params{}, badInput(err)
		}
		return w, plan.Expand(s)[0].Params, nil
	}
	hint := "; there are: " + strings.Join(names, ", ")
	if near, found := suggest.Nearest(name, names); found {
		hint = "; did you mean " + near + "?"
	}
	return workload.Workload{}, result.Params{}, usageError{fmt.Errorf("there is no workload %q%s", name, hint)}
}

// sharedPods is how many pods of a lab have clients at most, and how many servers: a network of more would be another question.
const sharedPods = 20

// openShared opens testbeds of two nodes, on which clients share pods where they are more than sharedPods.
func openShared(driver testbed.Provider, p result.Params) func(context.Context, string, int, int) (fleet.Ground, error) {
	return func(ctx context.Context, name string, clients, servers int) (fleet.Ground, error) {
		tb, err := driver.Open(ctx, testbed.Spec{
			Nodes: 2, PodsPerNode: min(sharedPods, max(clients, servers)), Network: name, Family: p.Family, Conditions: p.Conditions,
			Link: testbed.Link{MTU: network.DefaultMTU},
		})
		if err != nil {
			return nil, err
		}
		g, err := fleet.On(tb, clients, servers)
		if err != nil {
			return nil, errors.Join(err, tb.Close())
		}
		return g, nil
	}
}
