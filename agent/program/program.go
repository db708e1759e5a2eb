// Package program is what netdelta does where it was sent to: in pods, on nodes, in guests. cmd/netdelta-agent is nothing else, and
// the main program has the same verbs, so that on this machine it is its own agent.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"netdelta/agent"
	"netdelta/internal/machine"
	"netdelta/network"
	"netdelta/testbed/joined"
	"netdelta/testbed/kube/inside"
	"netdelta/testbed/kube/nodeagent"
	"netdelta/testbed/lab/udptun"
	"netdelta/testbed/servers/server"
	guest "netdelta/testbed/vm/inside"
	"netdelta/testbed/vm/wire"
	"netdelta/workload"
)

// Verb is one thing to do. All but the guest's first process are spoken to over standard input and output.
type Verb struct {
	Name, Short string
	// Arguments says that it takes any; else it takes none.
	Arguments bool
	Run       func(ctx context.Context, args []string) error
}

// Verbs are all that there are.
func Verbs(in io.Reader, out io.Writer, workloads []workload.Workload) []Verb {
	return []Verb{
		{agent.Subcommand, "Run workloads inside a pod, spoken to over standard input and output", false, func(context.Context, []string) error {
			agent.Become(workloads)
			return nil
		}},
		{inside.Verb, "Keep a pod of a cluster up, and start programs in it", true, func(_ context.Context, args []string) error {
			return inside.Do(args)
		}},
		{nodeagent.Verb, "Look at devices and packets inside a pod or on a node, asked over standard input and output", false, func(context.Context, []string) error {
			return nodeagent.Serve(in, out)
		}},
		{joined.Verb, "Be a node of a testbed, asked over standard input and output", false, func(ctx context.Context, _ []string) error {
			return joined.Serve(ctx, duplex{in, out}, network.Catalogue())
		}},
		{server.Verb, "Make a node of a server and put back what it had, asked over standard input and output", true, func(ctx context.Context, args []string) error {
			return server.Do(ctx, args, in, out)
		}},
		{wire.Verb, "Be the first process of a guest", false, func(context.Context, []string) error {
			guest.Run()
			return nil
		}},
	}
}

// duplex is standard input and output as one.
type duplex struct {
	io.Reader
	io.Writer
}

// Close implements io.Closer: a read that is under way ends with the process.
func (duplex) Close() error { return nil }

// Main is cmd/netdelta-agent: it returns the exit status, 2 for arguments that it does not take.
func Main(args []string, workloads []workload.Workload) int {
	if udptun.Asked() {
		return udptun.Become() // a lab has started this program as part of a network
	}
	verbs := Verbs(os.Stdin, os.Stdout, workloads)
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("netdelta-agent version", machine.Version())
		return 0
	}
	i := slices.IndexFunc(verbs, func(v Verb) bool { return len(args) > 0 && v.Name == args[0] })
	if i < 0 || len(args) > 1 && !verbs[i].Arguments {
		fmt.Fprintln(os.Stderr, "netdelta-agent: netdelta starts this program where it measures; on its own it only tells its --version")
		return 2
	}
	// As in the main program: the first interrupt from a terminal is for the one that started this, which then ends it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	if err := verbs[i].Run(ctx, args[1:]); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "netdelta-agent:", err)
		return 1
	}
	return 0
}
