package session

import (
	"context"
	"errors"
	"io"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
)

// ServeGuest carries out, inside a guest, the run that the host asks for on in, and tells the host of it: first its head, then each
// trial of a build when the build is done. The request fills in the session's study and builds. Only what could not be read or told
// to the host is returned.
func (s *Session) ServeGuest(ctx context.Context, in io.Reader, known study.Known, to *guest.Writer) error {
	r, ctx, err := guest.ReadRequest(ctx, in)
	if err != nil {
		return err
	}
	config, err := s.requested(ctx, r, known)
	if err != nil {
		return to.Send(guest.Message{End: &guest.End{Error: err.Error(), Kind: kindOf(err)}})
	}
	config.Judge = s.Judge
	return guest.Inside(ctx, r, config, to)
}

// requested makes the configuration of a run that the host asks for.
func (s *Session) requested(ctx context.Context, r guest.Request, known study.Known) (config experiment.Config, err error) {
	if s.Study, err = study.Parse("the study", []byte(r.Study), known); err != nil {
		return config, err
	}
	s.Builds = r.Builds
	if r.Run != nil {
		s.cells = r.Run.Cells
	}
	configure, err := s.prepare(ctx)
	if err == nil {
		config, err = configure(ctx)
	}
	if err == nil {
		err = machine.Confine(config.Program.CPUs)
	}
	return config, err
}

// kindOf is what an error is about, to the host.
func kindOf(err error) guest.Kind {
	var bad study.Errors
	var budget *plan.BudgetError
	switch {
	case errors.As(err, &bad), errors.As(err, &budget):
		return guest.BadInput
	case errors.Is(err, record.ErrNothing):
		return guest.Nothing
	}
	return ""
}
