package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/session"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/machine"
	"netdelta/report/exposition"
	"netdelta/report/live"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// runOptions are the flags of run.
type runOptions struct {
	testbed   string
	overrides study.Overrides
	budget    time.Duration
	burst     time.Duration
	builds    int
	rounds    int
	call      callOptions
	blocks    int
	seed      uint64
	mtu       []string
	out       string
	resume    string
	format    string
	json      bool
	quiet     bool
	verbose   bool
	failIf    []string
	// advice shows what to change alone; request is a request of the user's own.
	advice  bool
	request insight.Request
	// findings are what the doctor has found already, nil if it has not looked.
	findings *[]result.Finding
	// waiting is told what is waited for; nil for nobody.
	waiting  func(line string)
	flame    bool
	hops     bool
	explain  bool
	exact    bool
	dry      bool
	trust    bool
	wait     time.Duration
	nodes    string
	servers  serverFlags
	docker   string
	whatIf   bool
	cluster  clusterOptions
	target   targetOptions
	metrics  string
	listener net.Listener // of metrics; nil where none are to be served
}

func newRunCommand(env *environment) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [STUDY|FILE]",
		Short: "Run a study and print what each network costs against the baseline",
		Long: `Run a study (a built-in one, default ` + studies.Default + ` and on a cluster ` + studies.Cluster + `, or a file) and print what each network costs against the baseline.
Progress goes to standard error, results to standard output. The run folder keeps every finished trial: a run that was
killed goes on with --resume.

A run in a lab that has 30 s or more looks closer at its best and its worst network at the end, for four seconds in which nothing
is timed: at which hop, and in which functions, the time goes.

EXIT STATUS
  0    done
  1    failed, or some trials failed (they are named)
  2    bad usage or study file
  3    nothing could be measured
  4    a goal failed (of the study, or --fail-if)
  130  interrupted; what was measured is kept and shown`,
		Example: `  netdelta run
  netdelta run latency --time-budget 15m
  netdelta run --networks host,bridge,vxlan --workloads tcp-rr
  netdelta run mystudy.yaml --out runs/mine
  netdelta run --testbed kubernetes --base-image busybox`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			name := studies.Default
			if o.testbed == kubeTestbed && !o.whatIf {
				name = studies.Cluster
			}
			if len(a) == 1 {
				name = a[0]
			}
			if err := o.resumes(cmd.Flags(), a, env.getenv); err != nil {
				return err
			}
			if err := o.checkFormat(cmd.Flags().Changed); err != nil {
				return err
			}
			o.collectStorage()
			if err := errors.Join(o.collect(cmd.Flags().Changed), env.collectTarget(&o), o.checkExact(cmd.Flags().Changed)); err != nil {
				return err
			}
			var err error
			if o.testbed, err = onWhatIf(cmd.Flags(), o.testbed, o.whatIf); err != nil {
				return err
			}
			if o.exact, err = o.counts(); err != nil {
				return err
			}
			if o.listener, err = listenForMetrics(cmd.Context(), o.metrics); err != nil {
				return err
			}
			return runStudy(cmd.Context(), env, name, o)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return studies.Names(), cobra.ShellCompDirectiveDefault
		},
	}
	o.addFlags(cmd)
	complete(cmd, "format", []string{formatText, formatJSON, formatEvents})
	return cmd
}

func (o *runOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", "", "what to run on (default: the study's, lab)")
	o.addPlace(f)
	o.target.add(f)
	f.StringSliceVar(&o.overrides.StorageClass, storageFlag, nil, "StorageClasses of the cluster: fio on volumes of theirs is measured, in place of a store of netdelta's; several are compared")
	f.StringSliceVar(&o.overrides.Networks, "networks", nil, "networks to compare, in place of the study's")
	f.StringVar(&o.overrides.Baseline, "baseline", "", "network to hold the others against, in place of the study's")
	f.StringSliceVar(&o.overrides.Workloads, "workloads", nil, "workloads to run, in place of the study's")
	f.StringSliceVar(&o.overrides.Placement, "placement", nil, "same-node, cross-node or both")
	f.DurationVar(&o.budget, "time-budget", 0, "how long the run may take (default: the study's)")
	f.DurationVar(&o.burst, "burst", 0, "length of a burst (default: the study's)")
	f.IntVar(&o.builds, buildsFlag, 0, "build the networks exactly so many times (default: until all is resolved or the time is up)")
	f.IntVar(&o.rounds, "rounds", 0, "rounds in each build (default: as many as fit)")
	f.IntVar(&o.blocks, "blocks", 0, "measure in so many blocks, with the networks swapped live under the pods")
	f.Uint64Var(&o.seed, "seed", 0, "seed of all random orders (default: drawn, and recorded)")
	f.StringSliceVar(&o.mtu, "mtu", nil, "MTU of the links between nodes; several make it a factor")
	f.StringSliceVar(&o.overrides.Family, "family", nil, "version of IP of pods and nodes: ipv4, ipv6 or both")
	f.StringArrayVar(&o.overrides.Factors, "factor", nil,
		"levels of a parameter or condition, KEY=LEVEL,LEVEL, in place of the study's; repeat it for others (policy=none,nftables)")
	f.StringArrayVar(&o.failIf, "fail-if", nil, failIfUsage)
	f.StringVar(&o.out, "out", "", "run folder to write (default: runs/STUDY-TIME)")
	f.StringVar(&o.resume, "resume", "", "go on with the run in this folder")
	f.BoolVar(&o.trust, trustFlag, false, trustUsage)
	addWait(f, &o.wait)
	f.BoolVar(&o.exact, "exact", false, "count instructions in guests, in place of measuring time: figures that repeat to the last digit")
	f.BoolVar(&o.hops, "hops", false, "at the end, trace where the time of a round trip goes on each network, and draw it in the report")
	f.BoolVar(&o.explain, "explain-outliers", false, "as --hops, and say what was different about the slowest transactions")
	f.BoolVar(&o.flame, "flame", false, "at the end, profile each network in bursts of its own and write flame graphs into the run folder")
	f.StringVar(&o.metrics, "metrics-listen", "", "serve metrics of the run while it is under way at `127.0.0.1:PORT`, for Prometheus; port 0 is any")
	f.BoolVar(&o.dry, "dry-run", false, "print what would be measured, what would not and why, and each command; measure nothing, run no command of the study")
	f.StringVar(&o.format, "format", formatText, "what standard output gets: `text`; json, one document, result.json; jsonl, events while the run is under way, one JSON object a line")
	f.BoolVar(&o.json, "json", false, "as --format json")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what the figures rest on, each claim and all advice")
	f.BoolVar(&o.quiet, "quiet", false, "no progress on standard error")
}

// addPlace adds the flags that say where on a testbed of some kinds a run is.
func (o *runOptions) addPlace(f *pflag.FlagSet) {
	f.StringVar(&o.nodes, nodesFlag, "", "with --testbed ssh: the servers, ssh:[user@]host[:port],...; with --testbed vm: vm gives each node a guest of its own; with --testbed kubernetes, also with --what-if: names of nodes to measure")
	o.servers.add(f)
	f.StringVar(&o.docker, dockerFlag, "", dockerUsage)
	o.cluster.add(f)
	f.BoolVar(&o.whatIf, whatIfFlag, false, whatIfUsage)
}

// chosen is a flag's value where the flag was given, nil where it was not.
func chosen[T any](given func(string) bool, flag string, value *T) *T {
	if !given(flag) {
		return nil
	}
	return value
}

// collect turns the flags that were given into overrides.
func (o *runOptions) collect(given func(string) bool) error {
	overrides := &o.overrides
	overrides.TimeBudget, overrides.Burst = chosen(given, "time-budget", &o.budget), chosen(given, "burst", &o.burst)
	overrides.Builds, overrides.Rounds, overrides.Blocks = chosen(given, "builds", &o.builds), chosen(given, "rounds", &o.rounds), chosen(given, "blocks", &o.blocks)
	var err error
	if overrides.Goals, err = goalsOf(o.failIf); err != nil {
		return err
	}
	overrides.Seed = chosen(given, "seed", &o.seed)
	if given("metrics-listen") {
		if err := checkMetrics(o.metrics, o.exact); err != nil {
			return err
		}
	}
	for _, text := range o.mtu {
		mtu, err := unit.ParseBytes(text)
		if err != nil {
			return usageError{fmt.Errorf("--mtu: %w", err)}
		}
		o.overrides.MTU = append(o.overrides.MTU, mtu)
	}
	return nil
}

// runStudy carries out one run from the study's name to the printed tables.
func runStudy(ctx context.Context, env *environment, name string, o runOptions) error {
	if o.exact {
		if o.overrides.Seed == nil {
			o.seed = firstSeed
			o.overrides.Seed = &o.seed
		}
		o.overrides.Builds = nil // a study's number is for measuring time, which needs more
	} else {
		sweep(ctx, env)
	}
	s, notes, err := env.chooseStudy(ctx, name, o)
	if err != nil {
		return badInput(err)
	}
	notes = append(notes, env.toGuest(ctx, s, o)...)
	for _, n := range notes { // before the wait, in case something else was meant
		fmt.Fprintln(env.err, ui.Clean(n))
	}
	if demands := s.Demands(); len(demands) > 0 && !o.trust && !o.dry {
		env.remember(demands) // what flags ask for, too: the run may have to be resumed
	}
	k, err := kindOf(s, o)
	if err != nil {
		return err
	}
	password, err := o.target.password(ctx, env.in, env.getenv)
	if err != nil {
		return err
	}
	o.call.keepSecret(password.Given() && s.HasTarget())
	if err := env.agreed(ctx, k, o.resume, &o.call, o.cluster, o.trust); err != nil {
		return err
	}
	shown := env.progress(o.quiet, o.format == formatEvents)
	o.waiting = shown.waits
	provider, closed, err := k.open(ctx, env, s, o)
	if err != nil {
		return err
	}
	run := session.Session{
		Study: s, Provider: provider, Workloads: env.workloads, Judge: shown.judge(words.NewJudge(env.workloads)), Progress: shown,
		Begun: shown.begun,
		Exact: o.exact, Builds: o.builds, Password: password, Wait: o.wait, Options: o.call.values, Location: env.location(o.out, o.resume, o.call.earlier),
	}
	run.Warn = waiting(shown.events, run.Warn)
	earlier := env.earlierRuns(s.Testbed)
	run.Notes, run.Head = append(run.Notes, notes...), earlier.begin
	if o.dry {
		return errors.Join(env.dryRun(ctx, &run, k), closed())
	}
	run.Findings = k.recordFindings(ctx, env, o)
	if o.listener != nil {
		run.Expose = func(c *experiment.Config) func() error {
			fmt.Fprintf(env.err, "metrics: http://%s%s\n", o.listener.Addr(), exposition.Path)
			return exposition.Serve(c, o.listener)
		}
	}
	if o.flame {
		run.Then = append(run.Then, env.flameAfter)
	}
	if o.hops || o.explain {
		run.Then = append(run.Then, func(ctx context.Context, m session.Measured) error { return env.hopsAfter(ctx, m, o.explain) })
	}
	if k.looksCloser(o, s) {
		run.Then = append(run.Then, env.closerLook)
	}
	record, folder, err := run.Run(ctx)
	if err = errors.Join(err, closed()); folder == nil {
		return badInput(err)
	}
	earlier.end(ctx, record)
	return errors.Join(env.finish(record, folder, o, shown.events, err), folder.Close())
}

// finish leaves the page of a run and shows the run, or tells its end where events are written.
func (env *environment) finish(run result.Run, folder *result.Folder, o runOptions, events *live.Events, err error) error {
	fmt.Fprintf(env.err, "run folder: %s\n", ui.Clean(folder.Dir()))
	// The page first: standard output may be full, or not be read.
	err = errors.Join(err, env.writeViews(run, folder.Files))
	if events != nil {
		events.Ended(run, err)
		err = errors.Join(err, events.Err())
	} else {
		err = errors.Join(err, env.print(run, shown{json: o.json, verbose: o.verbose, folder: folder.Dir(), advice: o.advice, request: o.request}))
	}
	if err != nil {
		return err
	}
	return outcome(run)
}

// waiting also tells as an event what a run waits for.
func waiting(events *live.Events, warn func(error)) func(error) {
	return func(err error) {
		if busy, is := errors.AsType[*machine.BusyError](err); is {
			events.Waiting(busy.Error())
		}
		warn(err)
	}
}

// Formats of what a run prints on standard output.
const (
	formatText   = "text"
	formatJSON   = "json"
	formatEvents = "jsonl"
)

// checkFormat settles what is printed on standard output.
func (o *runOptions) checkFormat(given func(string) bool) error {
	formats := []string{formatText, formatJSON, formatEvents}
	if err := oneOf("--format", o.format, formats); err != nil {
		return usageError{err}
	}
	if o.json && given("format") && o.format != formatJSON {
		return usageError{fmt.Errorf("--json is --format json, and --format %s was given too: give one of them", o.format)}
	}
	if o.format == formatEvents && o.dry {
		return usageError{errors.New("--format jsonl has no meaning with --dry-run: nothing is measured that could be told")}
	}
	o.json = o.json || o.format == formatJSON
	return nil
}

// location is where a run's folder is; its warnings are printed.
func (env *environment) location(out, resume string, earlier *result.Record) session.Location {
	return session.Location{Out: out, Resume: resume, Earlier: earlier, Warn: func(err error) { printError(env.err, err.Error()) }}
}

// badInput gives errors of what was asked for the exit status of bad usage, and the lack of anything to measure its own.
func badInput(err error) error {
	switch {
	case session.IsInput(err):
		return withStatus(exitUsage, err)
	case errors.Is(err, record.ErrNothing):
		return withStatus(exitNothing, err)
	}
	return err
}

// chooseStudy reads the study and applies the flags. A resumed run takes its own study. The notes say what was changed to
// have the study run on another testbed than its own, and which networks stand in for products.
func (env *environment) chooseStudy(ctx context.Context, name string, o runOptions) (s *study.Study, notes []string, err error) {
	file := name
	if o.resume == "" {
		s, err = env.readStudy(name)
	} else if err = resumable(o.call.run(), o.resume); err == nil {
		var data []byte
		if data, err = result.LoadStudy(o.resume); err == nil {
			file = filepath.Join(o.resume, result.StudyFile)
			s, err = study.Parse(file, data, env.known())
		}
	}
	if o.resume != "" && errors.Is(err, fs.ErrNotExist) {
		return nil, nil, withStatus(exitUsage, err)
	}
	if err != nil {
		return nil, nil, err
	}
	if _, builtin := studies.Find(file); !builtin && !o.dry { // a dry run says what is asked for and does none of it
		if err := env.trusts(ctx, file, s.Demands(), o.trust); err != nil {
			return nil, nil, err
		}
	}
	made := s.Testbed.Kind
	k, err := findKind(cmp.Or(o.testbed, made))
	if err != nil {
		return nil, nil, err
	}
	s.MoveTo(k.name, k.cards)
	if notes, err = standIn(&o.overrides, s, k); err != nil {
		return nil, nil, err
	}
	if k.adapt != nil {
		if moved := k.adapt(s, o.overrides, made != k.name); moved != "" {
			notes = append(notes, moved)
		}
	}
	if s, err = s.Override(o.overrides, env.known()); err != nil {
		return nil, nil, err
	}
	for s.Design.Seed == 0 {
		s.Design.Seed = rand.Uint64()
	}
	return s, notes, nil
}

// outcome is the exit status that a finished run deserves.
func outcome(run result.Run) error {
	failed, misrouted := 0, 0
	for _, c := range run.Checks {
		switch {
		case c.OK:
		case c.Check == insight.CheckFinished:
			failed++
		case c.Check == insight.CheckPath:
			misrouted++
		}
	}
	switch {
	case run.Ended == plan.EndedInterrupted:
		return withStatus(exitInterrupted, errors.New("interrupted; what was measured is kept"))
	case len(run.Deltas) == 0 && len(run.Null) == 0:
		return withStatus(exitNothing, errors.New("nothing could be measured"))
	case failed > 0:
		return withStatus(exitFailed, fmt.Errorf("%d trials failed; they are named above and left out of every delta", failed))
	case misrouted > 0:
		return withStatus(exitFailed, fmt.Errorf("%d trials were misrouted; they are named above and left out of every delta", misrouted))
	}
	return missed(run)
}

// failIfUsage explains the flag of conditions that no run may meet.
const failIfUsage = "end with status 4 if `CONDITION` holds, such as 'vxlan.p99 > +20%' or '*.p50 > +50us'; repeat it for others"

// goalsOf are the goals that are the opposite of conditions.
func goalsOf(conditions []string) ([]string, error) {
	goals, err := study.FailIf(conditions)
	if err != nil {
		return nil, usageError{err}
	}
	return goals, nil
}

// missed is the exit status of a run that fails a goal. One that can't be told yet does not fail it.
func missed(run result.Run) error {
	if failed := words.FailedGoals(run); failed != "" {
		return withStatus(exitRegressed, fmt.Errorf("goals failed: %s", failed))
	}
	return nil
}
