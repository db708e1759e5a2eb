package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

// topic is something that list can list.
type topic struct {
	name, about string
	rows        func(ctx context.Context, env *environment) ([][]string, error)
}

func topics() []topic {
	return []topic{
		{"networks", "how pods are attached and reach each other", networkRows},
		{"workloads", "what runs across a network", workloadRows},
		{"probes", "what is observed while a workload runs", probeRows},
		{"studies", "questions that come with netdelta", studyRows},
		{"testbeds", "what an experiment runs on", testbedRows},
	}
}

func newListCommand(env *environment) *cobra.Command {
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return &cobra.Command{
		Use:       "list [" + strings.Join(names, "|") + "]",
		Short:     "List what netdelta knows: one line each, with who uses it and whether it runs here",
		Args:      args(cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, a []string) error {
			first := true
			for _, t := range topics() {
				if len(a) == 1 && a[0] != t.name {
					continue
				}
				if !first {
					fmt.Fprintln(env.out)
				}
				first = false
				if err := t.print(cmd.Context(), env); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (t topic) print(ctx context.Context, env *environment) error {
	rows, err := t.rows(ctx, env)
	if err != nil {
		return fmt.Errorf("listing %s: %w", t.name, err)
	}
	fmt.Fprintf(env.out, "%s: %s\n", strings.ToUpper(t.name), t.about)
	w := tabwriter.NewWriter(env.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(w, "  "+strings.Join(r, "\t"))
	}
	return w.Flush()
}

func networkRows(ctx context.Context, env *environment) ([][]string, error) {
	var rows [][]string
	for _, n := range network.Catalogue() {
		rows = append(rows, []string{n.Name, n.Summary, strings.Join(n.UsedBy, ", "), env.whereRuns(ctx, n.Name)})
	}
	return rows, nil
}

// whereRuns says on which testbeds of this machine a network runs, or what is missing.
func (env *environment) whereRuns(ctx context.Context, name string) string {
	var where []string
	for _, d := range env.drivers {
		err := d.Supports(ctx, testbed.Spec{Network: name, Family: result.IPv4})
		var lacks *testbed.UnsupportedError
		var denied *testbed.PermissionError
		switch {
		case err == nil:
			where = append(where, "runs: "+d.Name())
		case errors.As(err, &denied):
			where = append(where, d.Name()+" needs "+denied.Need)
		case errors.As(err, &lacks):
			where = append(where, d.Name()+" lacks "+lacks.Need)
		default:
			where = append(where, d.Name()+": "+err.Error())
		}
	}
	return strings.Join(where, "; ")
}

func workloadRows(_ context.Context, env *environment) ([][]string, error) {
	var rows [][]string
	for _, w := range env.workloads {
		rows = append(rows, []string{w.Name, w.Summary, w.UsedBy, "headline: " + w.Headline})
	}
	return rows, nil
}

func probeRows(context.Context, *environment) ([][]string, error) {
	return [][]string{
		{"path", "which way the packets of each trial went: counters of all devices, a sample of packets, the path's MTU", "every trial"},
		{"cpu", "processor time of client, server and kernel, for each transaction and each gigabyte", "every burst"},
		{"sockets", "TCP_INFO of both ends, what full buffers and listen queues turned away", "every trial"},
		{"stalls", "times at which nothing got through, or next to nothing", "every trial"},
		{"pressure", "processor pressure, steal, throttling, run queue and soft interrupts; preemption", "every round and burst"},
	}, nil
}

func studyRows(_ context.Context, env *environment) ([][]string, error) {
	var rows [][]string
	for _, f := range studies.All() {
		s, err := study.Parse(f.Path(), f.Data, env.known())
		if err != nil {
			return nil, err
		}
		rows = append(rows, []string{s.Name, s.Question, fmt.Sprintf("%d networks, %d workloads", len(s.Networks), len(s.Workloads))})
	}
	return rows, nil
}

func testbedRows(_ context.Context, env *environment) ([][]string, error) {
	about := map[string]string{"lab": "network namespaces on this machine"}
	var rows [][]string
	for _, d := range env.drivers {
		rows = append(rows, []string{d.Name(), about[d.Name()]})
	}
	return rows, nil
}
