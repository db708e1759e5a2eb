package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"netdelta/experiment"
	"netdelta/experiment/guest"
	"netdelta/experiment/study"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/testbed/lab"
)

// newGuestExactCommand does a job inside a guest whose clock counts instructions.
func newGuestExactCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    guest.Verb + " JOB",
		Short:  "Do an exact job inside a guest; its trials go to the host",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			job, err := guest.ReadJob(a[0])
			if err != nil {
				return err
			}
			out, err := guest.OpenOutput(env.out, guest.Line)
			if err != nil {
				return err
			}
			return errors.Join(guest.Exact(cmd.Context(), job, network.Catalogue(), env.workloads, guest.NewWriter(out)), out.Close())
		},
	}
}

// newGuestRunCommand carries a run out inside a guest.
func newGuestRunCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    guest.RunVerb,
		Short:  "Carry a run out inside a guest; its trials go to the host",
		Hidden: true,
		Args:   args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			request, ctx, err := guest.ReadRequest(cmd.Context(), env.in)
			if err != nil {
				return err
			}
			to := guest.NewWriter(env.out)
			config, err := env.guestConfig(ctx, request)
			if err != nil {
				return to.Send(guest.Message{End: &guest.End{Error: err.Error(), Kind: kindOf(err)}})
			}
			return guest.Inside(ctx, request, config, to)
		},
	}
}

// guestConfig prepares a run inside a guest, which is a lab there.
func (env *environment) guestConfig(ctx context.Context, r guest.Request) (experiment.Config, error) {
	s, err := study.Parse("the study", []byte(r.Study), env.known())
	if err != nil {
		return experiment.Config{}, badInput(err)
	}
	driver := lab.NewDriver(network.Catalogue())
	p, err := experiment.Prepare(ctx, s, driver, env.workloads)
	if err != nil {
		return experiment.Config{}, badInput(err)
	}
	if r.Builds > 0 {
		p.FixBuilds(r.Builds)
	}
	config, err := experiment.Assemble(ctx, s, p, driver, env.workloads)
	if err != nil {
		return config, err
	}
	config.Judge = words.NewJudge(env.workloads)
	return config, machine.Confine(config.Program.CPUs)
}

// kindOf is what an error is about, to the host.
func kindOf(err error) guest.Kind {
	var exit *exitError
	if errors.As(err, &exit) {
		switch exit.status {
		case exitUsage:
			return guest.BadInput
		case exitNothing:
			return guest.Nothing
		}
	}
	return ""
}
