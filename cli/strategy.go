package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/agent"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/session"
	"netdelta/experiment/studies"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/network"
	"netdelta/report/strategies"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// strategy is what the verbs fleet, pairs and policies share: where they measure, a study file made of their flags, and a run folder.
type strategy struct {
	name, question string
	// document is how the name of a file ends that --out names in place of a run folder; "" for none.
	document string
	// check refuses other flags of the verb that have no meaning on a kind of testbed; nil where all have one.
	check       func(k kind) error
	testbed     string
	nodes       []string
	cluster     clusterOptions
	out, resume string
	json, trust bool
	wait        time.Duration

	flags   *pflag.FlagSet
	options []string // the flags that a study file may have
	call    callOptions
	study   record.Study
}

// command completes the command of a strategy that has the flags of its study already: made makes the strategy of their final values.
func (s *strategy) command(env *environment, cmd *cobra.Command, out string, made func(context.Context, testbed.Provider) (record.Strategy, error)) *cobra.Command {
	s.flags = cmd.Flags()
	on := kindNames(s.able)
	s.flags.StringVar(&s.testbed, "testbed", on[0], "where to measure: "+strings.Join(on, " or "))
	s.flags.StringSliceVar(&s.nodes, "nodes", nil, "nodes of the cluster that pods are put on (default: those that take pods)")
	s.flags.VisitAll(func(f *pflag.Flag) { s.options = append(s.options, f.Name) })
	s.flags.BoolVar(&s.json, "json", false, "print one JSON document")
	s.flags.BoolVar(&s.trust, trustFlag, false, trustUsage)
	s.flags.StringVar(&s.out, "out", "", "run folder to write (default: runs/STUDY-TIME)"+out)
	s.flags.StringVar(&s.resume, "resume", "", "go on with the run in this folder")
	addWait(s.flags, &s.wait)
	s.cluster.add(s.flags)
	cmd.Use += " [FILE]"
	cmd.Args = args(cobra.MaximumNArgs(1))
	cmd.Long += `

FILE is a study file as a run folder has it: "strategy: ` + s.name + `", options (these flags), and claims. Flags replace its options.`
	cmd.RunE = func(cmd *cobra.Command, files []string) error {
		file, demands, err := s.read(files)
		if err == nil && file != "" {
			err = env.trusts(cmd.Context(), file, demands, s.trust)
		}
		if err == nil {
			err = s.call.recall(s.flags, s.resume, env.getenv)
		}
		if err == nil {
			s.call.keep(s.flags, s.options...)
		}
		if err != nil {
			return err
		}
		return env.follow(cmd.Context(), s, made)
	}
	return cmd
}

// able says whether a kind of testbed can do what the strategy needs.
func (s *strategy) able(k kind) bool { return slices.Contains(k.strategies, s.name) }

// read takes the options that no flag sets from a study file, or from the folder of the run that is resumed. It returns the file, ""
// for none, and what it asks for beyond measuring.
func (s *strategy) read(files []string) (file string, demands []study.Demand, err error) {
	s.study = record.Study{Name: s.name, Strategy: s.name, Question: s.question}
	var data []byte
	switch {
	case s.resume != "" && (len(files) > 0 || s.out != "" && !s.isDocument()):
		return file, nil, usageError{errors.New("--resume goes on with the study and in the folder of the run: give no other")}
	case s.resume != "":
		file = filepath.Join(s.resume, result.StudyFile)
		data, err = result.LoadStudy(s.resume)
	case len(files) > 0:
		file = files[0]
		data, err = result.ReadFile(file, result.StudyMost)
	default:
		return "", nil, nil
	}
	if err == nil {
		s.study, err = record.Parse(file, s.name, data)
	}
	if err != nil {
		return file, nil, usageError{fmt.Errorf("read the study: %w", err)}
	}
	for _, name := range slices.Sorted(maps.Keys(s.study.Options)) {
		if err := oneOf("options", name, s.options); err != nil {
			return file, nil, usageError{fmt.Errorf("%s: %w", file, err)}
		}
		if f := s.flags.Lookup(name); !f.Changed {
			values, _ := s.study.Values(name)
			for _, v := range values {
				demands = append(demands, study.NetworkDemands(v)...)
			}
			if err := s.set(f); err != nil {
				return file, nil, usageError{fmt.Errorf("%s: option %s: %w", file, name, err)}
			}
		}
	}
	return file, demands, nil
}

// set gives a flag the value of the study.
func (s *strategy) set(f *pflag.Flag) error {
	values, list := s.study.Values(f.Name)
	if all, ok := f.Value.(pflag.SliceValue); ok {
		return all.Replace(values)
	}
	if list {
		return errors.New("it takes one value, not a list")
	}
	return f.Value.Set(values[0])
}

// isDocument says whether --out names a document in place of a run folder.
func (s *strategy) isDocument() bool { return s.document != "" && strings.HasSuffix(s.out, s.document) }

// complete puts the final values of the flags into the study.
func (s *strategy) complete() {
	for _, name := range s.options {
		if all, ok := s.flags.Lookup(name).Value.(pflag.SliceValue); ok {
			if values := all.GetSlice(); len(values) > 0 {
				s.study.Set(name, true, values...)
			}
		} else if text := s.flags.Lookup(name).Value.String(); text != "" {
			s.study.Set(name, false, text)
		}
	}
}

// follow carries out a strategy, from its flags to the printed tables.
func (env *environment) follow(ctx context.Context, s *strategy, made func(context.Context, testbed.Provider) (record.Strategy, error)) error {
	k, err := findAble(s.testbed, s.able)
	if err != nil {
		return err
	}
	if err := s.suits(k); err != nil {
		return usageError{err}
	}
	if k.here {
		sweep(ctx, env)
	}
	if err := env.agreed(ctx, k, s.resume, &s.call, s.cluster, s.trust); err != nil {
		return err
	}
	provider, closed, err := k.open(ctx, env, nil, runOptions{nodes: strings.Join(s.nodes, ","), cluster: s.cluster})
	if err != nil {
		return err
	}
	how, err := made(ctx, provider)
	if err == nil {
		err = env.measure(ctx, s, provider, how)
	}
	// What was measured is printed before anything that is left in the cluster is waited for.
	return errors.Join(err, closed())
}

// suits refuses flags that have no meaning on a kind of testbed.
func (s *strategy) suits(k kind) error {
	flag := s.cluster.given()
	if flag == "" && len(s.nodes) > 0 {
		flag = "--nodes"
	}
	if k.here && flag != "" {
		return fmt.Errorf("%s goes with --testbed %s", flag, kubeTestbed)
	}
	if s.check == nil {
		return nil
	}
	return s.check(k)
}

// measure has a strategy measure, and prints what it found.
func (env *environment) measure(ctx context.Context, s *strategy, provider testbed.Provider, how record.Strategy) error {
	s.complete()
	out := s.out
	if s.isDocument() {
		out = ""
	}
	_, folder, err := (&session.Session{
		Strategy: how, File: s.study, Options: s.call.values, Provider: provider, Judge: words.NewJudge(env.workloads), Wait: s.wait, Location: env.location(out, s.resume, s.call.earlier),
	}).Run(ctx)
	if _, is := errors.AsType[*network.UnknownError](err); is {
		err = usageError{fmt.Errorf("--networks: %w", err)}
	}
	if folder == nil {
		return badInput(err)
	}
	if err != nil {
		return errors.Join(badInput(err), folder.Close())
	}
	return errors.Join(env.printFollowed(ctx, s, folder), folder.Close())
}

// printFollowed prints what a strategy found, and leaves its views in the run folder.
func (env *environment) printFollowed(ctx context.Context, s *strategy, folder *result.Folder) error {
	m, err := env.reloadFrom(folder.Files)
	if err != nil {
		return err
	}
	view, err := strategies.Of(m)
	if err != nil {
		return err
	}
	fmt.Fprintf(env.err, "run folder: %s\n", ui.Clean(folder.Dir()))
	if err := errors.Join(env.writeViews(m.Run, folder.Files), env.printView(view, m, s)); err != nil {
		return err
	}
	switch {
	case m.Run.Ended == plan.EndedInterrupted:
		return ctx.Err()
	case view.Incomplete != "":
		return withStatus(exitFailed, errors.New(view.Incomplete))
	}
	return nil
}

// printView prints a strategy's tables and claims, or its document, and leaves the document that --out names.
func (env *environment) printView(v *strategies.View, m insight.Measured, s *strategy) error {
	document := func(w io.Writer) error { return writeJSON(w, v.Report) }
	if s.isDocument() {
		write := document
		if v.Picture != nil {
			write = v.Picture
		}
		if err := replaceFile(s.out, write); err != nil {
			return err
		}
		fmt.Fprintf(env.err, "written: %s\n", ui.Clean(s.out))
	}
	if s.json {
		return document(env.out)
	}
	return errors.Join(v.Text(env.out), env.printClaims(m.Run))
}

// printClaims prints the run as any other where it has claims, which a strategy's tables lack.
func (env *environment) printClaims(run result.Run) error {
	if len(run.Claims) == 0 {
		return nil
	}
	return env.print(run, shown{})
}

// printStrategy prints a run as the verb of its strategy does; false for runs that have none.
func (env *environment) printStrategy(m insight.Measured) (bool, error) {
	v, err := strategies.Of(m)
	if v == nil || err != nil {
		return false, err
	}
	return true, v.Text(env.out)
}

// loadOptions are the flags of strategies that put one load on several networks.
type loadOptions struct {
	networks, factors []string
	workload          string
	builds            int
	seed              uint64
}

func (o *loadOptions) add(f *pflag.FlagSet) {
	f.StringSliceVar(&o.networks, "networks", nil, "networks to measure, the baseline first (default: those that users of the testbed compare first)")
	f.StringVar(&o.workload, "workload", "tcp-rr", "workload between clients and servers")
	f.StringArrayVar(&o.factors, "factor", nil, "a level of one of its parameters: message=1KiB")
	f.IntVar(&o.builds, "builds", plan.MinBuilds, "times that everything is set up anew; an interval takes 3")
	f.Uint64Var(&o.seed, "seed", 0, "seed of all random orders (default: drawn, and recorded)")
}

// draw gives the options that were left out their values, networks in place of products too, and returns the load that they say, in
// bursts of a length.
func (o *loadOptions) draw(env *environment, on string, usual []string, burst time.Duration) (record.Load, error) {
	if len(o.networks) == 0 {
		o.networks = usual
	}
	k, err := findKind(on)
	if err != nil {
		return record.Load{}, err
	}
	named := study.Overrides{Networks: o.networks}
	notes, err := standIn(&named, &study.Study{}, k)
	if err != nil {
		return record.Load{}, err
	}
	for _, n := range notes {
		env.log(n)
	}
	o.networks = named.Networks
	for o.seed == 0 {
		o.seed = rand.Uint64()
	}
	self, err := os.Executable()
	if err != nil {
		return record.Load{}, fmt.Errorf("finding this program, which the agents are: %w", err)
	}
	w, p, err := env.loadOf(o.workload, o.factors)
	return record.Load{
		Program: agent.Program{Path: self}, Workload: w, Params: p, Networks: o.networks, Builds: o.builds, Burst: burst, Warmup: burst / 10,
		Seed: o.seed, Log: env.log,
	}, err
}

// log prints a line of progress.
func (env *environment) log(line string) { fmt.Fprintln(env.err, ui.Clean(line)) }

// loadOf is a workload with its parameters, checked as in a study. Several levels of a parameter are bad usage.
func (env *environment) loadOf(name string, factors []string) (workload.Workload, result.Params, error) {
	for _, f := range factors {
		if strings.Contains(f, ",") {
			return workload.Workload{}, result.Params{}, usageError{fmt.Errorf("--factor %s: one level of each parameter; it is for one load at a time", f)}
		}
	}
	if err := env.checkWorkload("--workload", name); err != nil {
		return workload.Workload{}, result.Params{}, err
	}
	w := workload.Find(env.workloads, name)
	run := runOptions{}
	run.overrides.Workloads, run.overrides.Placement, run.overrides.Factors = []string{name}, []string{string(result.CrossNode)}, factors
	s, _, err := env.chooseStudy(context.Background(), studies.Default, run)
	if err != nil {
		return w, result.Params{}, badInput(err)
	}
	return w, plan.Expand(s)[0].Params, nil
}

// addWait adds the flag that says how long a run waits for others.
func addWait(f *pflag.FlagSet, wait *time.Duration) {
	f.DurationVar(wait, "wait", 30*time.Minute, "how long to wait while another run measures on the same processors (0: fail at once)")
}
