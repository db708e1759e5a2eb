package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"netdelta/experiment/guest"
	"netdelta/experiment/session"
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
			found, err := findingsHere(cmd.Context(), env, runOptions{})
			if err != nil {
				return err
			}
			s := session.Session{Provider: lab.NewDriver(network.Catalogue()), Workloads: env.workloads, Judge: words.NewJudge(env.workloads), Findings: found}
			return s.ServeGuest(cmd.Context(), env.in, env.known(), guest.NewWriter(env.out))
		},
	}
}
