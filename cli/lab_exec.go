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
	"netdelta/testbed/lab/keep"
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
