// Package cli is netdelta's command line: one file per verb, each a thin layer over the packages that do the work.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"netdelta/agent/program"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/report/ui"
	"netdelta/testbed/kube"
	"netdelta/testbed/kube/survey"
	"netdelta/testbed/lab"
	"netdelta/testbed/lab/udptun"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// Exit statuses: a contract with scripts.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNothing     = 3
	exitRegressed   = 4
	exitInterrupted = 130
)

// exitError carries an exit status with an error.
type exitError struct {
	status int
	err    error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func withStatus(status int, err error) error { return &exitError{status, err} }

// environment is what the verbs work with: the streams and the catalogues.
type environment struct {
	in        io.Reader
	out, err  io.Writer
	terminal  io.Writer // what out writes to: it tells whether a person is reading
	console   io.Writer // what err writes to
	getenv    func(string) string
	workloads []workload.Workload
	lab       *lab.Driver
	surveyed  *survey.Survey // of the cluster of this call; nil until it is made
}

// Main runs the command line and returns its exit status.
func Main(args []string, in io.Reader, out, errw io.Writer) int {
	if udptun.Asked() {
		return udptun.Become() // a lab has started this program as part of a network
	}
	if lab.AskedForMark() {
		return lab.TellMark(out, errw) // a clean-up has started this program in a namespace that it can't enter itself
	}
	if err := machine.CheckLimits(); err != nil {
		printError(errw, err.Error()) // before anything is begun: the runtime would end with a trace of its stacks
		return exitFailed
	}
	ctx, stop := untilSignalled()
	defer stop()
	answer, messages := &stream{to: out, until: ctx.Done()}, &stream{to: errw, until: ctx.Done(), most: messageMost}
	env := &environment{
		in: in, out: answer, terminal: out, err: messages, console: errw, getenv: os.Getenv, workloads: catalogue.Workloads(), lab: lab.NewDriver(network.Catalogue()),
	}
	root := newRoot(env)
	asPlugin(root, os.Args[0])
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(answer)
	root.SetErr(messages)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil && answer.failed != nil {
		err = fmt.Errorf("writing the answer: %w; nothing else went wrong", answer.failed)
	}
	if err == nil {
		return exitDone
	}
	if exit, is := errors.AsType[*exitError](err); is {
		if msg := exit.err.Error(); msg != "" {
			printError(messages, msg)
		}
		return exit.status
	}
	if ctx.Err() != nil {
		printError(messages, interrupted(err))
		return exitInterrupted
	}
	printError(messages, err.Error())
	if isUsage(err) {
		fmt.Fprintf(messages, "See '%s --help'.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailed
}

// interrupted is what is said of a call that the user stopped: how it failed then is no news, but what it had to leave in a cluster is.
func interrupted(err error) string {
	if left, is := errors.AsType[*kube.LeftError](err); is {
		return "interrupted; " + left.Error()
	}
	return "interrupted"
}

func printError(w io.Writer, msg string) {
	// Names of files and what others said are part of messages: a terminal must not obey them.
	lines := strings.Split(strings.TrimSpace(msg), "\n")
	for i, l := range lines {
		lines[i] = ui.Clean(l)
		// Nor may a server of continuous integration, which takes lines that begin so for commands.
		if begins := strings.TrimSpace(lines[i]); strings.HasPrefix(begins, "::") || strings.HasPrefix(begins, "##[") {
			lines[i] = "- " + begins
		}
	}
	fmt.Fprintf(w, "netdelta: %s\n", strings.Join(lines, "\n"))
}

// usageError is a call that the command line can't take.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func isUsage(err error) bool {
	var u usageError
	// cobra has no type for an unknown verb; all else of a call's form is wrapped by the flag and argument hooks below.
	return errors.As(err, &u) || err != nil && strings.HasPrefix(err.Error(), "unknown command")
}

func newRoot(env *environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "netdelta",
		Short: "What does this container network cost my workload, where, and what should I change?",
		Long: `netdelta measures what each container network costs a workload: it puts networks side by side on a testbed, under the same load,
and prints how each differs from a baseline, with an interval.

EXIT STATUS
  0    done
  1    failed, or some trials of a run failed
  2    bad usage or study file
  3    nothing could be measured, or compared
  4    compare found a regression, or a goal failed
  130  interrupted`,
		Version:           machine.Version(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError{flagError(cmd, err)} })
	root.AddCommand(
		env.rootless(newRunCommand(env), true),
		env.rootless(newAdviseCommand(env), true),
		promptly(newShowCommand(env)),
		promptly(newReportCommand(env)),
		promptly(newCompareCommand(env)),
		newServeCommand(env),
		promptly(newImportCommand(env)),
		env.rootless(newHopsCommand(env), true),
		env.rootless(newWhyCommand(env), true),
		newFlameCommand(env),
		env.rootless(newFleetCommand(env), true),
		env.rootless(newPairsCommand(env), true),
		newPoliciesCommand(env),
		newDoctorCommand(env),
		env.rootless(newListCommand(env), false),
		newLabCommand(env),
		newCleanupCommand(env),
		newImageCommand(env),
		newKubeCommand(env),
		newVMCommand(env),
		newGuestExactCommand(env),
		newGuestRunCommand(env),
		newVersionCommand(env),
		newManCommand(),
	)
	root.SetOut(env.out) // the library's verb for completions remembers it
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	for _, cmd := range root.Commands() {
		env.complete(cmd)
	}
	showExamples(root)
	env.explain(root)
	for _, v := range program.Verbs(env.in, env.terminal, env.workloads) {
		root.AddCommand(newSentCommand(v))
	}
	root.AddCommand(newSentCommand(program.Verb{
		Name: kube.PluginVerb, Short: "Run a plugin that a kubeconfig names, and keep what it prints in bounds", Arguments: true,
		Run: func(ctx context.Context, args []string) error { return kube.RunPlugin(ctx, args, os.Stdin, os.Stdout) },
	}))
	return root
}

// showExamples gives the verbs of the library the examples that all others have.
func showExamples(root *cobra.Command) {
	for path, example := range map[string]string{
		"help":                  "  netdelta help run\n  netdelta help lab up",
		"completion":            "  source <(netdelta completion bash)\n  netdelta completion fish | source",
		"completion bash":       "  netdelta completion bash >/usr/share/bash-completion/completions/netdelta",
		"completion zsh":        "  netdelta completion zsh >/usr/share/zsh/site-functions/_netdelta",
		"completion fish":       "  netdelta completion fish >~/.config/fish/completions/netdelta.fish",
		"completion powershell": "  netdelta completion powershell | Out-String | Invoke-Expression",
	} {
		if verb, _, err := root.Find(strings.Fields(path)); err == nil {
			verb.Example = example
		}
	}
}

// newSentCommand is a hidden verb for what netdelta does where it was sent to.
func newSentCommand(v program.Verb) *cobra.Command {
	cmd := &cobra.Command{
		Use: v.Name, Short: v.Short, Hidden: true, DisableFlagParsing: v.Arguments,
		RunE: func(cmd *cobra.Command, a []string) error { return v.Run(cmd.Context(), a) },
	}
	if !v.Arguments {
		cmd.Args = args(cobra.NoArgs)
	}
	return cmd
}

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the manual pages into a folder",
		Hidden: true,
		Args:   args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := os.MkdirAll(a[0], 0o755); err != nil {
				return fmt.Errorf("making the folder for manual pages: %w", err)
			}
			header := &doc.GenManHeader{Title: "NETDELTA", Section: "1", Source: "netdelta", Manual: "netdelta manual"}
			return doc.GenManTree(cmd.Root(), header, a[0])
		},
	}
}

// What kubectl calls this program: kubectl netdelta runs the file of the first name, and users know it by the second.
const (
	pluginFile = "kubectl-netdelta"
	pluginName = "kubectl netdelta"
)

// asPlugin makes the command line one of kubectl's plugin where the program was called by its name: it calls itself as users do,
// and a testbed that is not named is the cluster.
func asPlugin(root *cobra.Command, called string) {
	if filepath.Base(called) != pluginFile {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: pluginName}
	for _, verb := range root.Commands() {
		if flag := verb.Flags().Lookup("testbed"); flag != nil && flag.Value.Set(kubeTestbed) == nil {
			flag.DefValue = kubeTestbed
			flag.Usage, _, _ = strings.Cut(flag.Usage, " (default")
		}
	}
}

// calledAs is how the user calls this program where it is not on the PATH by its name: as a plugin, or by a path from here, as bin/netdelta.
func calledAs() string {
	called := os.Args[0]
	switch {
	case filepath.Base(called) == pluginFile:
		return pluginName
	case strings.Contains(called, "/") && !filepath.IsAbs(called):
		return called
	}
	return ""
}

// untilSignalled ends with the first signal that asks the program to end. A terminal that is gone asks for it too, unless nohup has
// the program stay.
func untilSignalled() (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	// The first signal ends the verb in good order; after it the signals have their usual effect again.
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// promptly has a verb that computes and has nothing to give back end with the first signal, wherever it is.
func promptly(cmd *cobra.Command) *cobra.Command {
	inner := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, a []string) error {
		done := make(chan error, 1)
		go func() { done <- inner(cmd, a) }()
		select {
		case err := <-done:
			return err
		case <-cmd.Context().Done():
			return withStatus(exitInterrupted, errors.New("interrupted"))
		}
	}
	return cmd
}
