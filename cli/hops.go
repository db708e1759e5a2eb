package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment/session"
	"netdelta/experiment/tracing"
	insight "netdelta/insight/hops"
	"netdelta/internal/gather"
	probe "netdelta/probe/hops"
	"netdelta/report/hops"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
)

// hopsOptions are the flags of hops.
type hopsOptions struct {
	lookOptions
	lasting time.Duration
	sockets bool
	explain bool
	pid     int
	port    uint16
	json    bool
	out     string
}

func newHopsCommand(env *environment) *cobra.Command {
	var o hopsOptions
	cmd := &cobra.Command{
		Use:   "hops",
		Short: "Show at which hop a network spends the time of a round trip",
		Long: `Trace requests and responses through each device on their way, and print how long they take from one to the next. With --vs
two networks stand side by side, and each hop's difference with its interval over builds.

The round trip is measured with and without tracing in turn; what tracing costs is calibrated at the same time, taken off each hop
and printed.

It takes root: tracing is not for ordinary users.`,
		Example: `  netdelta hops --network vxlan
  netdelta hops --network vxlan --vs bridge
  netdelta hops --pid $(pidof -s nginx) --port 80`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.pid == 0 && o.port == 0 {
				return env.hops(cmd.Context(), o)
			}
			if o.pid <= 0 || o.port == 0 {
				return usageError{errors.New("--pid and --port go together: the process, and the port of the server at either end of its connections")}
			}
			if o.sockets || o.explain || o.versus != "" {
				return usageError{errors.New("--pid watches what passes devices: leave --sockets, --explain-outliers and --vs out")}
			}
			return env.watch(cmd.Context(), o)
		},
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.lasting, "time", 15*time.Second, "how long to trace")
	f.BoolVar(&o.sockets, "sockets", false, "trace sockets too, which costs more")
	f.BoolVar(&o.explain, "explain-outliers", false, "trace also what comes between, and say what was different about the slowest transactions")
	f.IntVar(&o.pid, "pid", 0, "watch the TCP connections of this running process in place of a workload, read-only")
	f.Uint16Var(&o.port, "port", 0, "with --pid: the server's port, whichever end the process is")
	f.StringVar(&o.out, "out", "", "also draw the hops, as this HTML file")
	f.BoolVar(&o.json, "json", false, "print the hops as one JSON document")
	return cmd
}

// hops traces the networks and prints their hops.
func (env *environment) hops(ctx context.Context, o hopsOptions) error {
	config, release, err := env.lookAt(ctx, o.lookOptions)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.err, "tracing %s for %v\n", strings.Join(networksOf(config.Run.Cells), " and "), o.lasting)
	trace := tracing.Config{Experiment: config, Cells: config.Run.Cells, Lasting: o.lasting}
	switch {
	case o.explain:
		trace.Level = probe.Disturbances
	case o.sockets:
		trace.Level = probe.Everything
	}
	cells, err := env.trace(ctx, trace)
	if err := errors.Join(err, config.Close(), release()); err != nil {
		return err
	}
	ways := waysOf(cells)
	if o.out != "" {
		if err := replaceFile(o.out, func(w io.Writer) error { return hops.Write(w, ways...) }); err != nil {
			return err
		}
		fmt.Fprintf(env.err, "picture: %s\n", ui.Clean(o.out))
	}
	if o.json {
		return writeJSON(env.out, ways)
	}
	return hops.WriteText(env.out, ways...)
}

// watch traces the connections of a running program, and prints their hops.
func (env *environment) watch(ctx context.Context, o hopsOptions) error {
	fmt.Fprintf(env.err, "watching TCP port %d of process %d for %v\n", o.port, o.pid, o.lasting)
	w, err := probe.Watch(ctx, o.pid, o.port, o.lasting)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return usageError{fmt.Errorf("--pid %d: %w", o.pid, err)}
	case err != nil:
		return err
	case len(w.Events) == 0:
		return withStatus(exitNothing, fmt.Errorf("process %d moved nothing over TCP port %d in %v", o.pid, o.port, o.lasting))
	}
	seen := insight.Watch(w.Events, w.Names, o.port)
	seen.Lost = w.Lost
	if o.json {
		return writeJSON(env.out, seen)
	}
	return hops.WriteWatch(env.out, seen)
}

// trace follows packets where that can be had here, and else takes the sockets' own time stamps, and says so.
func (env *environment) trace(ctx context.Context, c tracing.Config) ([]tracing.Cell, error) {
	cells, err := tracing.Trace(ctx, c)
	if !errors.Is(err, testbed.ErrUnsupported) && !errors.Is(err, fs.ErrPermission) {
		return cells, err
	}
	fmt.Fprintf(env.err, "packets can't be followed here (%s); the sockets' own time stamps take their place: fewer hops\n", ui.Clean(err.Error()))
	return tracing.Stamp(ctx, c)
}

func waysOf(cells []tracing.Cell) []insight.Way {
	return gather.Each(cells, insight.WayOf)
}

// hopsFile is where a run folder keeps what was traced.
const hopsFile = "hops.json"

// hopsMost is the greatest size of that file that is read.
const hopsMost = 64 * unit.MiB

// hopsEach is how long each network of a run is traced.
const hopsEach = 2 * time.Second

// hopsAfter traces the networks of a run that has ended, each in the first setting, and leaves what it found in the folder.
func (env *environment) hopsAfter(ctx context.Context, run session.Measured, explain bool) error {
	able := func(w workload.Workload, _ result.Params) bool { return w.Exact != nil }
	config, cells, err := env.lookAgain(ctx, run, able, "tracing", "no hops: this run has no workload whose packets can be followed; add tcp-rr or udp-rr")
	if len(cells) == 0 {
		return err
	}
	trace := tracing.Config{Experiment: config, Cells: cells, Lasting: hopsEach * time.Duration(len(cells))}
	if explain {
		trace.Level = probe.Disturbances
	}
	traced, err := env.trace(ctx, trace)
	if err := errors.Join(err, config.Close()); err != nil {
		return err
	}
	return writeHops(run, traced)
}

// writeHops leaves the hops of cells in the folder of the run that they explain, with the run's own figures of these cells.
func writeHops(run session.Measured, traced []tracing.Cell) error {
	ways := waysOf(traced)
	for i, c := range traced {
		ways[i].InRun(c.Cell, run.Run.Deltas)
	}
	return writeView(run.Folder.Files, hopsFile, func(w io.Writer) error { return writeJSON(w, ways) })
}

// loadView reads a file of JSON that a run may have left, into nothing where it has not; what says what it holds.
func loadView(files *result.Files, file, what string, into any) error {
	text, err := files.Read(file, hopsMost)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read %s from %s: %w; remove the file to do without", what, file, err)
	}
	return nil
}

// lookOptions choose networks that stand side by side, for a look at more of them than a run's figures.
type lookOptions struct {
	network, versus, workload, placement string
	factors                              []string
	wait                                 time.Duration
}

func (o *lookOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.network, "network", "vxlan", "network to look at")
	f.StringVar(&o.versus, "vs", o.versus, "network to hold it against")
	f.StringVar(&o.workload, "workload", "tcp-rr", "workload that runs meanwhile")
	f.StringVar(&o.placement, "placement", string(result.CrossNode), "same-node or cross-node")
	addWait(f, &o.wait)
	f.StringArrayVar(&o.factors, "factor", nil, "a level of a parameter or condition: message=1KiB")
	complete(cmd, "placement", []string{string(result.SameNode), string(result.CrossNode)})
}
