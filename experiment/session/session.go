// Package session carries a study out on a testbed of any kind: a study and a provider in, a run folder out.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

// Session is one run of a study. It is used once.
type Session struct {
	// Study is as it is to be run: its seed is drawn, and all that flags say is in it.
	Study *study.Study
	// Strategy measures in place of the study, where it is given; File is its study.
	Strategy  record.Strategy
	File      record.Study
	Provider  testbed.Provider
	Workloads []workload.Workload
	Judge     experiment.Judge
	// Progress is told how far the run is.
	Progress Progress

	// Builds is how many builds there are; 0 goes on until all is resolved or the time is up. An exact run has one in each guest.
	Builds int
	// Exact has instructions counted in place of measuring time. It takes Capabilities.Counter.
	Exact bool
	// Notes are added to the notes of the run.
	Notes []string
	// Options are what result.Run.Options says.
	Options map[string]string
	// Findings are what the doctor found on the testbed before the run.
	Findings []result.Finding
	// Password is for targets that take one.
	Password workload.Secret
	// Wait is how long the run waits for others that measure on the same processors of this machine; 0 is not at all.
	Wait time.Duration

	Location
	cells []result.Cell // of the run that is resumed; set inside a guest alone

	// Begun is told of the record's head when the run folder is there, before the run waits for its turn; it may be nil.
	Begun func(result.Run, *result.Folder)
	// Head is told of a run that is measured from here before it begins, and may add to what its record says; it may be nil.
	Head func(*result.Run)
	// Expose may stand between the run and its judge and progress while it is measured; nil leaves them. What it returns is called
	// at the end.
	Expose func(*experiment.Config) (stop func() error)
	// Then are carried out in order after a run that was measured from here and went well.
	Then []func(ctx context.Context, run Measured) error
}

// Progress shows how far a run is. Its methods return at once.
type Progress interface {
	experiment.Progress
	// Counted is told how many trials of an exact run are finished.
	Counted(done, of int)
	// Stop is called when nothing more is measured.
	Stop()
}

// Measured is a run that was measured from here, as those see it who look closer at its networks afterwards.
type Measured struct {
	// Configure makes a configuration of the same plan, whose readers of the machine the caller closes.
	Configure func(context.Context) (experiment.Config, error)
	Folder    *result.Folder
	// Run is the record, judged.
	Run result.Run
}

// InputError is the error of a run that can't be as it was asked for.
type InputError struct{ Err error }

// Error implements error.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *InputError) Unwrap() error { return e.Err }

// IsInput says whether an error is about what was asked for: the study, its time budget, the folder.
func IsInput(err error) bool {
	var input *InputError
	var refused *guest.InputError
	return errors.As(err, &input) || kindOf(err) == guest.BadInput || errors.As(err, &refused) && refused.Kind == guest.BadInput
}

// Run carries the session out. It returns the record and the run folder, which the caller closes. The folder is nil where the run did
// not begin: then IsInput tells of the error whether the request was at fault, and an error that matches record.ErrNothing that
// nothing could be measured.
func (s *Session) Run(ctx context.Context) (run result.Run, folder *result.Folder, err error) {
	able := s.Provider.Capabilities()
	measure := s.measure
	switch {
	case s.Strategy != nil:
		measure = s.follow
	case s.Exact:
		measure = s.count
	case able.Guest != nil:
		measure = s.measureInGuest
	}
	return measure(ctx, able)
}

// openFolder opens the run folder when the head of the record is known.
func (s *Session) openFolder(run *result.Run) (*result.Folder, error) {
	run.Environment.Findings = append(run.Environment.Findings, s.Findings...) // to those that were found in a guest
	run.Options, run.Changes = s.Options, s.Study.Changed()
	text, err := s.Study.Marshal()
	if err != nil {
		return nil, err
	}
	folder, err := s.Open(s.Study.Name, text, run)
	if err == nil && s.Begun != nil {
		s.Begun(*run, folder)
	}
	return folder, err
}

// openLatest opens the run folder of a run that has its turn.
func (s *Session) openLatest(run *result.Run) (*result.Folder, error) {
	folder, err := s.openFolder(run)
	if err == nil {
		s.markLatest(run.Run)
	}
	return folder, err
}

// Plan is what Run would measure. Of a guest, which networks its kernel has is found out inside: it is taken to have all.
func (s *Session) Plan(ctx context.Context) (experiment.Plan, error) {
	provider := s.Provider
	if able := provider.Capabilities(); able.Guest != nil {
		provider = unseen{provider}
	}
	p, err := experiment.Prepare(ctx, s.Study, provider, s.Workloads)
	var short *plan.BudgetError
	if cells := s.begun(); len(cells) > 0 && (err == nil || errors.As(err, &short)) {
		if short != nil { // of the run's first builds; it has some already
			longer := *s.Study
			longer.Design.TimeBudget = short.Least
			p, err = experiment.Prepare(ctx, &longer, provider, s.Workloads)
			p.Rules.Budget = s.Study.Design.TimeBudget
		}
		if err == nil {
			err = plan.Another(cells, p.Costs, p.Rules)
		}
	}
	var unknown *network.UnknownError
	if errors.As(err, &unknown) { // of a kind of testbed whose networks are known once it is asked
		err = &InputError{err}
	}
	if s.Builds > 0 {
		p.FixBuilds(s.Builds)
	}
	return p, err
}

// begun are the cells of the run that goes on; none of a new run, or of one that was killed before it had any.
func (s *Session) begun() []result.Cell {
	if s.Resume == "" {
		return s.cells
	}
	if old := s.earlier(); old != nil {
		return old.Run.Cells
	}
	return nil
}

// unseen is a provider that can't be asked what it supports.
type unseen struct{ testbed.Provider }

// Supports implements testbed.Provider: what no kernel can do is refused.
func (u unseen) Supports(_ context.Context, spec testbed.Spec) error {
	spec.Nodes, spec.PodsPerNode, spec.Link.MTU = 2, 2, 0
	t, err := spec.Topology()
	if err != nil {
		return err
	}
	n, err := network.Find(u.Capabilities().Networks, spec.Network)
	if err != nil {
		return err
	}
	_, err = n.Plan(t)
	return err
}

// prepare plans the run and returns what makes its configuration, or another one of the same plan.
func (s *Session) prepare(ctx context.Context) (configure func(context.Context) (experiment.Config, error), err error) {
	p, err := s.Plan(ctx)
	return func(ctx context.Context) (experiment.Config, error) {
		return experiment.Assemble(ctx, s.Study, p, s.Provider, s.Workloads)
	}, err
}

// measure measures from here.
func (s *Session) measure(ctx context.Context, able testbed.Capabilities) (run result.Run, folder *result.Folder, err error) {
	configure, err := s.prepare(ctx)
	if err != nil {
		return run, nil, err
	}
	config, err := configure(ctx)
	if err != nil {
		return run, nil, err
	}
	config.Run.Notes = append(config.Run.Notes, s.Notes...)
	if s.Head != nil {
		s.Head(&config.Run)
	}
	release, err := Turn{s.Wait, s.warn}.Take(ctx, config.Measuring, func() error {
		folder, err = s.openFolder(&config.Run)
		return err
	})
	if err != nil {
		return run, nil, errors.Join(err, config.Close(), s.abandon(folder))
	}
	defer func() { err = errors.Join(err, release()) }()
	s.markLatest(config.Run.Run)
	config.Folder, config.Password = folder, s.Password
	if len(s.Study.Changes) > 0 {
		if able.Changer == nil {
			return run, nil, errors.Join(fmt.Errorf("testbed %s has nothing that a network could change", s.Provider.Kind()), config.Close(), folder.Close())
		}
		if config.Changer, err = able.Changer(config.Run.Run, folder.Dir()); err != nil {
			return run, nil, errors.Join(err, config.Close(), folder.Close())
		}
	}
	run, err = s.carryOut(ctx, config)
	again := Measured{Folder: folder, Configure: configure, Run: run}
	for _, then := range s.Then {
		if err == nil && ctx.Err() == nil {
			err = then(ctx, again)
		}
	}
	return run, folder, err
}

// confine keeps this program off the processors that are measured on, where these are this machine's.
func confine(config experiment.Config) error {
	if len(config.Program.CPUs) == 0 {
		return nil
	}
	return machine.Confine(config.Program.CPUs)
}

// carryOut runs the experiment, away from the processors that it measures on.
func (s *Session) carryOut(ctx context.Context, config experiment.Config) (result.Run, error) {
	if err := confine(config); err != nil {
		return config.Run, err
	}
	defer s.Progress.Stop()
	config.Progress, config.Judge = s.Progress, s.Judge
	if s.Expose == nil {
		return experiment.Run(ctx, config)
	}
	stop := s.Expose(&config)
	run, err := experiment.Run(ctx, config)
	return run, errors.Join(err, stop())
}

// measureInGuest has this program measure inside a guest. The run folder is here.
func (s *Session) measureInGuest(ctx context.Context, able testbed.Capabilities) (run result.Run, folder *result.Folder, err error) {
	request, err := s.request()
	if err != nil {
		return run, nil, err
	}
	spec := s.guestSpec()
	spec.Args = []string{guest.RunVerb}
	g, err := able.Guest(ctx, spec)
	if err != nil {
		return run, nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	defer s.Progress.Stop()
	return guest.Outside{
		Request: request, Program: g.Program, Progress: s.Progress, Judge: s.Judge, Open: s.openLatest, Complete: g.Describe,
	}.Follow(ctx)
}

// request is what a guest is told.
func (s *Session) request() (guest.Request, error) {
	text, err := s.Study.Marshal()
	if err != nil {
		return guest.Request{}, err
	}
	r := guest.Request{Study: string(text), Named: s.Study.Named, Builds: s.Builds}
	if s.Resume == "" {
		return r, nil
	}
	contents, err := result.LoadTrials(s.Resume)
	if err != nil {
		return r, err
	}
	if old := s.earlier(); old != nil { // without, the study is all that there is of it
		r.Run = &old.Run
	}
	r.Trials = contents.Trials
	return r, nil
}

// guestSpec is what a guest needs for the study.
func (s *Session) guestSpec() testbed.GuestSpec {
	return testbed.GuestSpec{Networks: append([]string{s.Study.Baseline}, s.Study.Networks...), Spec: s.spec(), Programs: HasPrograms(s.Study, s.Workloads)}
}

// spec is the study's testbed.
func (s *Session) spec() testbed.Spec {
	on := s.Study.Testbed
	return testbed.Spec{Nodes: on.Nodes, PodsPerNode: on.Pods, Link: testbed.Link(on.Link)}
}

// HasPrograms says whether a study's workloads need programs of others.
func HasPrograms(s *study.Study, workloads []workload.Workload) bool {
	for _, named := range s.Workloads {
		w := workload.Find(workloads, named.Name)
		if slices.ContainsFunc(s.Combinations(named), func(p result.Params) bool { return len(w.Demands(p).Programs) > 0 }) {
			return true
		}
	}
	return false
}

// follow has a strategy measure that has a loop of its own.
func (s *Session) follow(ctx context.Context, able testbed.Capabilities) (run result.Run, folder *result.Folder, err error) {
	if err := s.Strategy.Check(); err != nil {
		return run, nil, &InputError{err}
	}
	run = s.Strategy.Head()
	cells := run.Cells
	if err := s.supported(ctx, cells); err != nil {
		return run, nil, err
	}
	run.Study, run.Question, run.Confidence, run.Claims = s.File.Name, s.File.Question, study.DefaultConfidence, study.Untested(s.File.Claims)
	run.Testbed, run.Options = s.Provider.Kind(), s.Options
	run.Margin = cmp.Or(run.Margin, study.DefaultMargin)
	if run.Environment, err = machine.Describe(machine.Version()); err != nil {
		return run, nil, err
	}
	text, err := s.File.Marshal()
	if err != nil {
		return run, nil, err
	}
	var cpus []int // all: nothing is pinned
	if able.SharesMachine {
		if cpus, err = machine.AllowedCPUs(); err != nil {
			return run, nil, err
		}
	}
	release, err := Turn{s.Wait, s.warn}.Take(ctx, cpus, func() error {
		folder, err = s.Open(s.File.Name, text, &run)
		return err
	})
	if err != nil {
		return run, nil, errors.Join(err, s.abandon(folder))
	}
	defer func() { err = errors.Join(err, release()) }()
	s.markLatest(run.Run)
	run.Cells = cells // more may be asked for than was when the run began
	rec, err := record.Conduct(ctx, run, folder, s.Judge, s.Strategy.Measure)
	return rec.Run, folder, err
}

// supported asks the provider for the cells' networks. A name that it does not know is bad input.
func (s *Session) supported(ctx context.Context, cells []result.Cell) error {
	for _, c := range cells {
		err := s.Provider.Supports(ctx, testbed.Spec{Network: c.Network, Family: c.Params.Family, Conditions: c.Params.Conditions.Plain()})
		var unknown *network.UnknownError
		switch {
		case errors.As(err, &unknown):
			return &InputError{err}
		case errors.Is(err, testbed.ErrUnsupported):
			return fmt.Errorf("%w: %w", record.ErrNothing, err)
		case err != nil:
			return fmt.Errorf("network %s: %w", c.Network, err)
		}
	}
	return nil
}
