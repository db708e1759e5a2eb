package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/rootless"
)

// rootless has a verb that builds labs carried out in a user namespace where this user lacks the rights for them. A verb that
// must not fail for the lack of rights is carried out as it is where the kernel refuses that.
func (env *environment) rootless(cmd *cobra.Command, must bool) *cobra.Command {
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		ended, err := enter(func() bool { return env.elsewhere(cmd, a) }, func() { sweep(cmd.Context(), env) })
		var refused *testbed.PermissionError
		switch {
		case err == nil && ended == nil, errors.As(err, &refused) && !must:
			return inner(cmd, a)
		case err != nil:
			return err
		}
		if status := rootless.Pass(ended); status != exitDone {
			return withStatus(status, errors.New(""))
		}
		return nil
	}
	return cmd
}

// enter carries this call out in a user namespace and tells how it ended, or nothing where that is not needed, or done, or where the
// testbed is elsewhere. What has to be done outside comes before.
func enter(elsewhere func() bool, before func()) (*os.ProcessState, error) {
	if _, entered := rootless.Entered(); entered {
		return nil, rootless.Verify()
	}
	if lacking, err := rootless.Lacking(); err != nil || !lacking || elsewhere() {
		return nil, err
	}
	before()
	return rootless.Run(os.Args[1:], os.Stdout)
}

// elsewhere says whether a call asks for a testbed that is not made of this machine's kernel, and so for none of its rights.
func (env *environment) elsewhere(cmd *cobra.Command, a []string) bool {
	if exact, err := cmd.Flags().GetBool("exact"); err == nil && exact {
		return true
	}
	name, err := cmd.Flags().GetString("testbed")
	if err != nil {
		return false
	}
	if resume, _ := cmd.Flags().GetString("resume"); resume != "" {
		if run, err := result.Load(resume); err == nil {
			name = run.Testbed
		}
	}
	if name == "" && len(a) == 1 {
		if s, err := env.readStudy(a[0]); err == nil {
			name = s.Testbed.Kind
		}
	}
	k, err := findKind(name)
	return err == nil && !k.here
}
