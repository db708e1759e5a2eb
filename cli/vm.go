package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"netdelta/experiment/guest"
	"netdelta/experiment/session"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/testbed/lab"
	"netdelta/testbed/rpc"
	"netdelta/testbed/vm"
	"netdelta/testbed/vm/image"
	"netdelta/unit"
)

func newVMCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "vm",
		Short: "Build and boot the guest that has every kind of link",
		Long: `The guest is a virtual machine with the distribution's own kernel, which has every kind of link, and QEMU. It is built once, in
netdelta/vm of your cache folder; nothing is installed, and it needs no rights. Guests reach no network of this machine.`,
		Example: `  netdelta vm build
  netdelta run --testbed vm
  netdelta vm exec -- sh -c 'ip link; dmesg | tail'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newVMBuildCommand(env), promptly(newVMShowCommand(env)), newVMExecCommand(env), newVMRemoveCommand(env))
	return cmd
}

// buildImage builds the guest's image where there is none, and says so.
func (env *environment) buildImage(ctx context.Context, refresh bool) (image.Image, error) {
	return image.Build(ctx, image.Options{Refresh: refresh, Progress: func(line string) {
		fmt.Fprintf(env.err, "building a guest: %s\n", ui.Clean(line))
	}})
}

func newVMBuildCommand(env *environment) *cobra.Command {
	var refresh bool
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the guest's image, or say which there is",
		Example: `  netdelta vm build
  netdelta vm build --refresh`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			i, err := env.buildImage(cmd.Context(), refresh)
			if err != nil {
				return err
			}
			return env.printImage(i)
		},
	}
	cmd.Flags().BoolVar(&refresh, "refresh", false, "look for newer packages, and build an image of them if there are any")
	return cmd
}

func newVMShowCommand(env *environment) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Say which guest is built, of what, and whether it is whole",
		Example: `  netdelta vm show
  netdelta vm show --json`,
		Args: args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			i, err := image.Open(image.Options{})
			if errors.Is(err, fs.ErrNotExist) {
				return errors.New("no guest is built: netdelta vm build")
			}
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(env.out).Encode(i)
			}
			return env.printImage(i)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (env *environment) printImage(i image.Image) error {
	fmt.Fprintf(env.out, "folder  %s\nsuite   %s\nkernel  %s\nQEMU    %s\n", i.Dir, i.Suite, i.Kernel, i.QEMU)
	for _, l := range i.Lacks {
		fmt.Fprintf(env.out, "lacks   %s\n", l)
	}
	return nil
}

func newVMRemoveCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "remove",
		Short:   "Remove all built guests",
		Example: "  netdelta vm remove",
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := image.Remove(cmd.Context(), image.Options{})
			if err != nil {
				return err
			}
			fmt.Fprintf(env.out, "removed %s\n", dir)
			return nil
		},
	}
}

// vmExecOptions are the flags of vm exec.
type vmExecOptions struct {
	files   []string
	cpus    int
	memory  string
	cards   int
	accel   string
	dir     string
	program string
	timing  bool
	env     []string
}

func newVMExecCommand(env *environment) *cobra.Command {
	var o vmExecOptions
	cmd := &cobra.Command{
		Use:   "exec -- COMMAND [ARGUMENT...]",
		Short: "Boot a guest, run a program in it, and switch it off",
		Long: `Boot a guest, run a program in it as root, pass on its output and its exit status, and switch the guest off. This program is
/netdelta there. The guest sees no file of this machine but those that --file brings.

EXIT STATUS
  that of the program, else
  1    failed
  2    bad usage
  126  the program can't be started, or a signal ended it
  127  there is no such program`,
		Example: `  netdelta vm exec -- /netdelta doctor
  netdelta vm exec --file ./study.yaml:/study.yaml -- /netdelta run /study.yaml
  netdelta vm exec --cards 2 -- sh -c 'ip link; dmesg | tail'`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error { return env.vmExec(cmd.Context(), o, a) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.StringArrayVar(&o.files, "file", nil, "bring a file or folder along, as `HERE:THERE` (repeatable)")
	flags.StringArrayVar(&o.env, "env", nil, "set a variable, as `KEY=VALUE` (repeatable)")
	flags.StringVar(&o.dir, "dir", "/", "start the program in this `folder` of the guest")
	flags.IntVar(&o.cpus, "cpus", 2, "how many processors the guest has")
	flags.StringVar(&o.memory, "memory", "1GiB", "how much memory it has; with cards at most 2815MiB")
	flags.IntVar(&o.cards, "cards", 0, "how many network cards with virtual functions it has (emulated)")
	flags.StringVar(&o.accel, "accel", "", "kvm or tcg (default: what works)")
	flags.StringVar(&o.program, "program", "", "a netdelta to be the guest's first process, linked statically (default: this one)")
	flags.BoolVar(&o.timing, "timing", false, "say on standard error what booting took")
	return cmd
}

func (o vmExecOptions) machine() (vm.Machine, error) {
	memory, err := unit.ParseBytes(o.memory)
	if err != nil {
		return vm.Machine{}, usageError{fmt.Errorf("--memory: %w", err)}
	}
	m := vm.Machine{CPUs: o.cpus, Memory: memory, Cards: o.cards, Accel: vm.Accel(o.accel), Program: o.program}
	for _, f := range o.files {
		here, there, ok := strings.Cut(f, ":")
		if !ok || here == "" {
			return vm.Machine{}, usageError{fmt.Errorf("--file %s: it takes HERE:THERE", f)}
		}
		m.Files = append(m.Files, vm.File{Host: here, Guest: there})
	}
	return m, nil
}

func (env *environment) vmExec(ctx context.Context, o vmExecOptions, command []string) (err error) {
	m, err := o.machine()
	if err != nil {
		return err
	}
	i, err := env.buildImage(ctx, false)
	if err != nil {
		return err
	}
	g, err := vm.Boot(ctx, i, m)
	if _, is := errors.AsType[*vm.InvalidError](err); is {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if o.timing {
		fmt.Fprintf(env.err, "the guest (kernel %s, %s) was ready after %.1f s, %.1f s of processor time\n", g.Hello.Kernel, g.Machine.Accel,
			g.Ready.Wall.Seconds(), g.Ready.CPU.Seconds())
	}
	stderr := &stream{to: env.console, until: ctx.Done()} // the program's own, of which nothing may be lost
	p, err := g.Exec(ctx, vm.Command{Path: command[0], Args: command[1:], Env: o.env, Dir: o.dir, Stdout: env.out, Stderr: stderr})
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return withStatus(exitNoFile, err)
	}
	if err != nil {
		return withStatus(exitNoStart, err)
	}
	go func() {
		in, ok := env.in.(*os.File)
		// A terminal that a background job reads from would stop it.
		if !ok || !foreground(in) {
			_ = p.CloseWrite()
			return
		}
		_, _ = in.WriteTo(p) // the program may read no more
		_ = p.CloseWrite()
	}()
	err = p.Wait()
	var failed *rpc.ExitError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &failed) && failed.Exit.Status > 0:
		return withStatus(failed.Exit.Status, errors.New(""))
	case errors.As(err, &failed) && failed.Exit.Signal != 0:
		return withStatus(exitNoStart, fmt.Errorf("%s was ended by signal %v", command[0], unix.Signal(failed.Exit.Signal)))
	}
	return err
}

// foreground says whether reading from a file can't stop this program: it is no terminal, or this program's job is in front.
func foreground(f *os.File) bool {
	group, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err != nil || group == unix.Getpgrp()
}

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
