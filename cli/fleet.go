package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/fleet"
	"netdelta/experiment/record"
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
