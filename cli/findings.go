package cli

import (
	"context"
	"errors"
	"time"

	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed/kube/survey"
)

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
