package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/causes"
	"netdelta/insight/cause"
	"netdelta/report/ui"
	"netdelta/report/why"
	"netdelta/result"
)

// whyOptions are the flags of why.
type whyOptions struct {
	lookOptions
	lasting time.Duration
	json    bool
}

func newWhyCommand(env *environment) *cobra.Command {
	o := whyOptions{lookOptions: lookOptions{versus: "host"}}
	cmd := &cobra.Command{
		Use:   "why",
		Short: "Say what the kernel knows is wrong on a path: counters, drops with their reasons, timers, settings",
		Long: `Load a network and another one that is held to be healthy in turn, and read what the kernel counts meanwhile at both ends and on
every node between: the IP stack, TCP, connection tracking, devices, queues, and dropped packets with the kernel's own reasons. What
moves more for each transaction than on the healthy path is a finding, with what it usually is, how to confirm it and what to change.
Nothing is changed.

The networks are built in the lab, as for run. It takes root to read why packets are dropped.`,
		Example: `  netdelta why --network vxlan-routed
  netdelta why --network vxlan-routed --vs routed --workload tcp-stream
  netdelta why --network bridge-nat --workload tcp-crr --json`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.why(cmd.Context(), o) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.lasting, "time", 10*time.Second, "how long to load both")
	f.BoolVar(&o.json, "json", false, "print the findings as one JSON document")
	return cmd
}

// why reads what is wrong, and prints it.
func (env *environment) why(ctx context.Context, o whyOptions) error {
	if o.versus == "" || o.versus == o.network {
		return usageError{errors.New("--vs: need another network that is healthy, such as host: what moves on both is no finding")}
	}
	answer, err := env.findCauses(ctx, o)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(env.out, answer)
	}
	return why.WriteText(env.out, answer, ui.Detect(env.terminal, env.getenv))
}

// findCauses loads both paths and says what evidence speaks for.
func (env *environment) findCauses(ctx context.Context, o whyOptions) (why.Answer, error) {
	config, release, err := env.lookAt(ctx, o.lookOptions)
	if err != nil {
		return why.Answer{}, err
	}
	cells := config.Run.Cells
	fmt.Fprintf(env.err, "loading %s in turn for %v\n", strings.Join(networksOf(cells), " and "), o.lasting)
	paths, notes, err := causes.Read(ctx, causes.Config{Experiment: config, Cells: cells, Lasting: o.lasting})
	if err := errors.Join(err, config.Close(), release()); err != nil {
		return why.Answer{}, err
	}
	answer := why.Answer{Notes: notes}
	for i, p := range paths {
		if cells[i].Role == result.RoleBaseline {
			answer.Healthy = p
		} else {
			answer.Path = p
		}
	}
	if answer.Path.Network == "" || answer.Healthy.Network == "" {
		return answer, withStatus(exitNothing, fmt.Errorf("only %d of both networks could be loaded", len(paths)))
	}
	answer.Findings = cause.Find(answer.Path, answer.Healthy, cause.Symptoms())
	return answer, nil
}
