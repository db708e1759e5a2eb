package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab/keep"
	"netdelta/testbed/lab/rootless"
)

// Exit statuses of lab exec in addition to the program's own, as in shells.
const (
	exitNoStart = 126
	exitNoFile  = 127
)

func newLabExecCommand(env *environment) *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "exec POD|NODE [-- COMMAND [ARGUMENT...]]",
		Short: "Run a program inside a pod or node",
		Long: `Run a program inside a pod, a node, or the switch between the nodes, with this terminal, these streams, this folder and this
environment; only the network is another's. Without a program it is your shell. The program ends with the lab.

EXIT STATUS
  that of the program, else
  1    failed
  2    bad usage, or no such lab, pod or node
  126  the program can't be started
  127  there is no such program`,
		Example: `  netdelta lab exec pod0 -- ping -c 3 198.19.1.10
  netdelta lab exec node1 -- tcpdump -ni eth0
  netdelta lab exec --name other pod0`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			program := a[1:]
			if len(program) > 0 && program[0] == "--" {
				program = program[1:]
			}
			return labExec(cmd.Context(), env, name, a[0], program)
		},
		ValidArgsFunction: env.completePlaces,
	}
	// What follows the pod belongs to the program.
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&name, "name", "", "which lab (default: the only one)")
	return cmd
}

func labExec(ctx context.Context, env *environment, name, where string, program []string) error {
	if len(program) == 0 {
		program = []string{cmp.Or(env.getenv("SHELL"), "/bin/sh")}
	}
	folder, chosen, err := env.chooseLab(name)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(program[0])
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return noStart(err)
	}
	door, err := folder.Enter(ctx, chosen, where)
	if err != nil {
		return badName(err)
	}
	err = door.Exec(path, program, os.Environ())
	return noStart(errors.Join(err, door.Close()))
}

// noStart gives errors of a program that does not start the statuses that shells give them.
func noStart(err error) error {
	var start *keep.StartError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return withStatus(exitNoFile, err)
	case errors.As(err, &start), errors.Is(err, fs.ErrPermission):
		return withStatus(exitNoStart, err)
	}
	return err
}

// completePlaces offers the pods of the only lab.
func (env *environment) completePlaces(cmd *cobra.Command, a []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(a) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	none := cobra.ShellCompDirectiveNoFileComp
	folder, chosen, err := env.chooseLab("")
	if err != nil {
		return nil, none
	}
	s, err := folder.Status(cmd.Context(), chosen)
	if err != nil {
		return nil, none
	}
	names := gather.Each(s.Pods, func(p keep.Pod) string { return p.Name })
	return append(names, nodesOf(s)...), none
}

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
