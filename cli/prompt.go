package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

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
