package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/profiling"
	"netdelta/experiment/record"
	"netdelta/experiment/session"
	"netdelta/experiment/studies"
	"netdelta/internal/gather"
	"netdelta/internal/machine"
	profile "netdelta/probe/flame"
	"netdelta/report/flame"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/workload"
)

// flameOptions are the flags of flame.
type flameOptions struct {
	lookOptions
	out     string
	lasting time.Duration
	json    bool
}

func newFlameCommand(env *environment) *cobra.Command {
	var o flameOptions
	cmd := &cobra.Command{
		Use:   "flame",
		Short: "Show where a network spends processor time, or what another adds",
		Long: `Profile the whole testbed while a workload runs: kernel and programs, pod by pod, with soft interrupts and idle time. The
profile is taken in bursts of its own, which are not timed. It is written as a flame graph (flame.html, one file that opens
offline), for 'go tool pprof' (NETWORK.pb.gz) and as folded stacks (NETWORK.folded). With --vs the graph shows the
difference of two networks, for each transaction, or for each gigabyte of a stream.

It takes root: profiling is not for ordinary users.`,
		Example: `  netdelta flame --network vxlan
  netdelta flame --network vxlan --vs bridge --workload tcp-stream
  go tool pprof -http=localhost:8080 flame/vxlan.pb.gz`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return env.flame(cmd.Context(), o) },
	}
	o.addFlags(cmd)
	f := cmd.Flags()
	f.DurationVar(&o.lasting, "time", 10*time.Second, "how long to profile")
	f.StringVar(&o.out, "out", "flame", "folder to write into")
	f.BoolVar(&o.json, "json", false, "print the profiles as one JSON document")
	return cmd
}

// flame takes the profiles, writes their files and prints their table.
func (env *environment) flame(ctx context.Context, o flameOptions) error {
	if err := profile.Try(); err != nil {
		return err // before anything is built
	}
	config, release, err := env.lookAt(ctx, o.lookOptions)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.err, "profiling %s for %v\n", strings.Join(networksOf(config.Run.Cells), " and "), o.lasting)
	taken, err := profiling.Take(ctx, config, o.lasting)
	if err := errors.Join(err, config.Close(), release()); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("make the folder for flame graphs: %w", err)
	}
	files, err := result.OpenFiles(o.out)
	if err != nil {
		return fmt.Errorf("open the folder for flame graphs: %w", err)
	}
	if err := errors.Join(writeFlames(files, flamePage, taken), files.Close()); err != nil {
		return err
	}
	fmt.Fprintf(env.err, "flame graph: %s\n", ui.Clean(filepath.Join(o.out, flamePage)))
	if o.json {
		return writeJSON(env.out, documents(taken))
	}
	return flame.WriteText(env.out, sidesOf(taken)...)
}

// lookAt returns the configuration of a run that measures the given networks side by side, with one cell each, keeps this program
// off the processors that are measured, and others that measure too until release.
func (env *environment) lookAt(ctx context.Context, o lookOptions) (config experiment.Config, release func() error, err error) {
	if config, err = env.configureLook(ctx, o); err != nil {
		return config, nil, err
	}
	turn := session.Turn{Wait: o.wait, Warn: func(err error) { fmt.Fprintf(env.err, "netdelta: %s\n", ui.Clean(err.Error())) }}
	if release, err = turn.Take(ctx, config.Measuring, func() error { return nil }); err != nil {
		return config, nil, errors.Join(err, config.Close())
	}
	if err := machine.Confine(config.Program.CPUs); err != nil {
		return config, nil, errors.Join(err, config.Close(), release())
	}
	return config, release, nil
}

func (env *environment) configureLook(ctx context.Context, o lookOptions) (none experiment.Config, err error) {
	if err = env.checkWorkload("--workload", o.workload); err != nil {
		return none, err
	}
	if o.network, err = checkLooked("--network", o.network); err != nil {
		return none, err
	}
	if o.versus != "" {
		if o.versus, err = checkLooked("--vs", o.versus); err != nil {
			return none, err
		}
	}
	sweep(ctx, env)
	run := runOptions{}
	run.overrides.Networks, run.overrides.Baseline = []string{o.network}, o.network
	if o.versus != "" {
		run.overrides.Networks, run.overrides.Baseline = []string{o.versus, o.network}, o.versus
	}
	run.overrides.Workloads, run.overrides.Placement, run.overrides.Factors = []string{o.workload}, []string{o.placement}, o.factors
	s, _, err := env.chooseStudy(ctx, studies.Default, run)
	if err != nil {
		return none, badInput(err)
	}
	p, err := experiment.Prepare(ctx, s, env.lab, env.workloads)
	if err != nil {
		return none, badInput(err)
	}
	config, err := experiment.Assemble(ctx, s, p, env.lab, env.workloads)
	if err != nil {
		return none, badInput(err)
	}
	config.Run.Cells = firstSetting(config.Run.Cells)
	if wanted := len(s.Networks); len(config.Run.Cells) != wanted {
		return none, errors.Join(unmeasured(p.Cells), config.Close())
	}
	return config, nil
}

// lookAgain returns the configuration of a run that has ended, and a cell of each network in the first setting, for a closer look at
// workloads that can be looked at. Where there are none, it says so and returns no cells.
func (env *environment) lookAgain(ctx context.Context, run session.Measured, able func(workload.Workload, result.Params) bool, doing, none string) (
	config experiment.Config, cells []result.Cell, err error,
) {
	if config, err = run.Configure(ctx); err != nil {
		return config, nil, err
	}
	cells = firstSetting(slices.DeleteFunc(slices.Clone(config.Run.Cells), func(c result.Cell) bool {
		w := workload.Find(env.workloads, c.Workload)
		return w.Name == "" || !able(w, c.Params)
	}))
	if len(cells) == 0 {
		fmt.Fprintln(env.err, none)
		return config, nil, config.Close()
	}
	fmt.Fprintf(env.err, "%s %s\n", doing, strings.Join(networksOf(cells), ", "))
	return config, cells, nil
}

// firstSetting keeps each network's cell of the first setting, the baseline's first.
func firstSetting(cells []result.Cell) []result.Cell {
	measured := plan.Measured(cells)
	if len(measured) == 0 {
		return nil
	}
	setting := measured[0].Setting()
	kept := slices.DeleteFunc(measured, func(c result.Cell) bool { return c.Role == result.RoleControl || c.Setting() != setting })
	slices.SortStableFunc(kept, func(a, b result.Cell) int {
		return first(a.Role == result.RoleBaseline) - first(b.Role == result.RoleBaseline)
	})
	return kept
}

// unmeasured says why a network can't be profiled.
func unmeasured(cells []result.Cell) error {
	for _, c := range cells {
		if c.Unsupported != "" {
			return withStatus(exitNothing, fmt.Errorf("%s: %s", c.Network, c.Unsupported))
		}
	}
	return withStatus(exitNothing, record.ErrNothing)
}

func networksOf(cells []result.Cell) []string {
	return gather.Each(cells, func(c result.Cell) string { return c.Network })
}

// flamePage is the name of the flame graph's file.
const flamePage = "flame.html"

// writeFlames writes each network's profile in all forms, and the page of all under the given name.
func writeFlames(folder *result.Files, page string, taken []profiling.Profiled) error {
	for _, t := range taken {
		base := fileName(t.Cell.Network)
		if err := errors.Join(
			writeView(folder, base+".pb.gz", t.Profile.WritePprof), writeView(folder, base+".folded", t.Profile.WriteFolded),
		); err != nil {
			return err
		}
	}
	return writeView(folder, fileName(page), func(w io.Writer) error { return flame.Write(w, sidesOf(taken)...) })
}

// fileName keeps a network's name from naming a folder.
func fileName(network string) string { return strings.NewReplacer("/", "_", ":", "_").Replace(network) }

// flameEach is how long each network of a run is profiled.
const flameEach = 3 * time.Second

// flameAfter profiles the networks of a run that has ended, each in the first setting, and draws each against the baseline.
func (env *environment) flameAfter(ctx context.Context, run session.Measured) (err error) {
	able := func(w workload.Workload, p result.Params) bool { return w.Demands(p).Cluster == nil }
	config, cells, err := env.lookAgain(ctx, run, able, "profiling", "no flame graphs: all workloads of this run are served by clusters, which can't be profiled side by side")
	if len(cells) == 0 {
		return err
	}
	config.Run.Cells = cells
	taken, err := profiling.Take(ctx, config, flameEach*time.Duration(len(cells)))
	if err := errors.Join(err, config.Close()); err != nil {
		return err
	}
	files, err := run.Folder.Folder("flame")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	at := slices.IndexFunc(taken, func(t profiling.Profiled) bool { return t.Cell.Role == result.RoleBaseline })
	for i := range taken {
		sides := taken[i : i+1]
		if i != at {
			sides = []profiling.Profiled{taken[at], taken[i]}
		}
		if err := writeFlames(files, taken[i].Cell.Network+".html", sides); err != nil {
			return err
		}
	}
	return nil
}

// sidesOf gives profiles the unit that their workload counts in.
func sidesOf(taken []profiling.Profiled) []flame.Side {
	var sides []flame.Side
	for _, t := range taken {
		sides = append(sides, flame.Side{Network: t.Cell.Network, Profile: t.Profile, Per: perUnit(t)})
	}
	return sides
}

// perUnit counts streams in gigabytes and all else in transactions.
func perUnit(t profiling.Profiled) flame.Unit {
	if strings.HasSuffix(t.Cell.Workload, "-stream") {
		const gigabyte = 1e9
		return flame.Unit{Name: "GB", Count: float64(t.Moved) / gigabyte}
	}
	return flame.Unit{Name: "transaction", Count: float64(t.Transactions)}
}

// document is a profile as JSON.
type document struct {
	Network      string          `json:"network"`
	Workload     string          `json:"workload"`
	Params       result.Params   `json:"params"`
	Placement    string          `json:"placement"`
	Transactions int64           `json:"transactions"`
	Moved        int64           `json:"moved_bytes"`
	BusyNS       int64           `json:"busy_ns"`
	IdleNS       int64           `json:"idle_ns"`
	Profile      profile.Profile `json:"profile"`
}

func documents(taken []profiling.Profiled) []document {
	var all []document
	for _, t := range taken {
		all = append(all, document{
			Network: t.Cell.Network, Workload: t.Cell.Workload, Params: t.Cell.Params, Placement: string(t.Cell.Placement),
			Transactions: t.Transactions, Moved: t.Moved, BusyNS: int64(t.Profile.Busy()), IdleNS: int64(t.Profile.Idle()), Profile: t.Profile,
		})
	}
	return all
}
