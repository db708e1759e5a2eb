package session

import (
	"context"
	"errors"
	"fmt"

	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
)

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
	if run.Margin == 0 {
		run.Margin = study.DefaultMargin
	}
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
		return run, nil, errors.Join(err, folder.Close())
	}
	defer func() { err = errors.Join(err, release()) }()
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
