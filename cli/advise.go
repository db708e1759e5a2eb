package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"netdelta/experiment/studies"
	"netdelta/insight"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/kube/survey"
	"netdelta/unit"
)

// adviseTime is how long a run for advice takes.
const adviseTime = time.Minute

func newAdviseCommand(env *environment) *cobra.Command {
	o := runOptions{budget: adviseTime}
	var request requestFlags
	cmd := &cobra.Command{
		Use:   "advise [DIR]",
		Short: "Say what to change: the doctor, a short run, changes by gain",
		Long: `Say what to change, and how: the largest gain first, each with its interval, the commands and the risk. With a run folder it says what
that run speaks for. Without one, the doctor looks at the testbed first, and a short run measures the networks that it can have there.

EXIT STATUS
  as run`,
		Example: `  netdelta advise
  netdelta advise --networks flannel
  netdelta advise --testbed kubernetes --base-image busybox
  netdelta advise --testbed kubernetes --base-image busybox --namespace netdelta --what-if
  sudo netdelta advise --testbed docker
  netdelta advise runs/latest --request 2ms --calls 8`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			var err error
			if o.request, err = request.read(); err != nil {
				return err
			}
			if len(a) == 1 {
				return env.adviseOn(a[0], o)
			}
			if o.testbed, err = onWhatIf(cmd.Flags(), o.testbed, o.whatIf); err != nil {
				return err
			}
			o.call.keep(cmd.Flags())
			if err := o.collect(func(flag string) bool { return flag == "time-budget" || cmd.Flags().Changed(flag) }); err != nil {
				return err
			}
			return env.advise(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.testbed, "testbed", labTestbed, "what to run on")
	f.StringSliceVar(&o.overrides.Networks, "networks", nil, "networks or products that you have: what their users could change to is measured with them")
	f.DurationVar(&o.budget, "time-budget", adviseTime, "how long the run may take")
	f.StringVar(&o.out, "out", "", "run folder to write (default: runs/STUDY-TIME)")
	f.BoolVar(&o.json, "json", false, "print one JSON document: result.json")
	f.BoolVar(&o.quiet, "quiet", false, "no progress on standard error")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print all advice")
	addWait(f, &o.wait)
	o.addPlace(f)
	request.add(f)
	return cmd
}

// requestFlags describe a request of the user's own.
type requestFlags struct {
	took  time.Duration
	calls int
}

func (r *requestFlags) add(f *pflag.FlagSet) {
	f.DurationVar(&r.took, "request", 0, "how long a request of yours takes: what share of it each network is")
	f.IntVar(&r.calls, "calls", 1, "with --request: how many calls across the network it makes, one after the other")
}

func (r requestFlags) read() (insight.Request, error) {
	switch {
	case r.took < 0 || r.calls < 1:
		return insight.Request{}, usageError{errors.New("--request and --calls: need a time and at least one call")}
	case r.took == 0 && r.calls > 1:
		return insight.Request{}, usageError{errors.New("--calls goes with --request, how long the request takes in all")}
	case r.took == 0:
		return insight.Request{}, nil
	}
	return insight.Request{Took: float64(r.took), Calls: r.calls}, nil
}

// adviseOn says what a run folder speaks for.
func (env *environment) adviseOn(dir string, o runOptions) error {
	m, err := env.reload(dir)
	if err != nil {
		return err
	}
	return env.print(m.Run, shown{json: o.json, verbose: o.verbose, folder: folderOf(dir), advice: true, request: o.request})
}

// advise has the doctor look, and measures what it found that can be measured.
func (env *environment) advise(ctx context.Context, o runOptions) error {
	k, err := findKind(o.testbed)
	if err != nil {
		return err
	}
	o.advice = true
	if k.cluster { // what the run would refuse is said before anything is looked at
		if _, err := o.cluster.connect(); err != nil {
			return err
		}
		if err := o.driverOptions().Check(); err != nil {
			return usageError{err}
		}
	}
	if k.worth != nil {
		if o.overrides.Networks, err = k.worth(ctx, env, o); err != nil {
			return err
		}
	}
	found, err := k.look(ctx, env, o)
	switch {
	case isUsage(err): // no testbed that could be looked at
		return err
	case err != nil:
		env.log("doctor: could not look at the testbed: " + err.Error())
	case len(found) == 0 && k.findings != nil:
		env.log("doctor: nothing to fix before a run")
	}
	if len(found) > 0 {
		env.log(fmt.Sprintf("doctor: %s, told with the advice", unit.Counted(len(found), "finding")))
	}
	o.findings = &found
	if k.worth != nil && len(o.overrides.Networks) > 0 {
		fmt.Fprintf(env.err, "measuring for %s: %s\n", unit.FormatDuration(o.budget), strings.Join(o.overrides.Networks, ", "))
	}
	o.overrides.Workloads, o.overrides.Factors = []string{"tcp-rr"}, []string{"message=300"}
	return runStudy(ctx, env, studies.Default, o)
}

// worthHere are the networks that run here of those that users of products have or could change to, of the named ones if there are any.
func worthHere(ctx context.Context, env *environment, o runOptions) ([]string, error) {
	var mine, all []string
	for _, name := range o.overrides.Networks {
		if _, err := checkLooked("--networks", name); err != nil {
			return nil, err
		}
		mine = append(mine, name)
	}
	add := func(name string) {
		runs := env.lab.Supports(ctx, testbed.Spec{Network: name, Family: result.IPv4}) == nil
		if runs && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	add("host")
	for _, m := range network.Moves() {
		switch {
		case slices.Contains(mine, m.From.Name): // the user calls it so
			add(m.From.Name)
			add(m.To.Name)
		case len(mine) == 0 || slices.Contains(mine, m.From.Network):
			add(m.From.Network)
			add(m.To.Network)
		}
	}
	for _, n := range mine {
		if !slices.Contains(all, n) {
			all = append(all, n) // what it lacks here is said by the run
		}
	}
	return all, nil
}

// findingsTime bounds what the doctor may look at before a run.
const findingsTime = 10 * time.Second

// recordFindings has the doctor look at the testbed before a run: what could be better there becomes part of the record. What keeps it
// from looking is no reason not to run, and is said.
func (k kind) recordFindings(ctx context.Context, env *environment, o runOptions) []result.Finding {
	if o.findings != nil {
		return *o.findings
	}
	found, err := k.look(ctx, env, o)
	if err != nil {
		printError(env.err, "the doctor could not look at the testbed, and the run goes on without: "+err.Error())
	}
	return found
}

// look has the doctor look. That it took too long is no error.
func (k kind) look(ctx context.Context, env *environment, o runOptions) ([]result.Finding, error) {
	if k.findings == nil || o.exact {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, findingsTime)
	defer cancel()
	found, err := k.findings(ctx, env, o)
	if ctx.Err() != nil {
		return found, nil
	}
	return found, err
}

// findingsHere are what the doctor finds on this machine that changes what is measured. What can't be measured on it is in the run
// itself: networks and workloads that are unsupported.
func findingsHere(context.Context, *environment, runOptions) ([]result.Finding, error) {
	about, err := machine.Describe(machine.Version())
	if err != nil {
		return nil, err
	}
	found, err := examineConditions(about)
	var all []result.Finding
	for _, f := range found {
		if !f.OK {
			all = append(all, result.Finding{Topic: f.Topic, Says: f.Says, Fix: f.Fix})
		}
	}
	return all, err
}

// survey looks at the cluster that the flags name, as far as its API server tells: once in a call.
func (env *environment) survey(ctx context.Context, o runOptions) (survey.Survey, error) {
	if env.surveyed != nil {
		return *env.surveyed, nil
	}
	cluster, err := o.cluster.connect()
	if err != nil {
		return survey.Survey{}, err
	}
	found, err := survey.Look(ctx, cluster, survey.Options{Pods: o.driverOptions()})
	if err == nil {
		env.surveyed = &found
	}
	return found, err
}

// findingsOfCluster are what the doctor finds in a cluster, without what is only good to know.
func findingsOfCluster(ctx context.Context, env *environment, o runOptions) ([]result.Finding, error) {
	found, err := env.survey(ctx, o)
	if err != nil {
		return nil, err
	}
	var all []result.Finding
	for _, f := range survey.Judge(found) {
		if f.Severity == survey.Note && f.Fix == "" {
			continue
		}
		all = append(all, result.Finding{Topic: f.Topic, Says: f.Says, Why: f.Why, Fix: f.Fix})
	}
	return all, errors.Join(ctx.Err())
}
