package server

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"netdelta/internal/netns"
	"netdelta/network"
	"netdelta/testbed/joined"
)

// Networks are those that can join servers.
func Networks() []network.Network { return append(network.Found(), network.Catalogue()...) }

// serve is the node: it waits for its cards and serves the controller. It ends with its input, and when the controller is silent.
func serve(ctx context.Context, in io.Reader, out io.Writer, silence time.Duration) error {
	ready := os.NewFile(3, "ready")
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		return errors.New("the supervisor ended before the node had its cards")
	}
	_ = ready.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := watched{in, out, time.AfterFunc(silence, cancel), silence}
	// A write to a half-open connection must not keep the node: what it has ends with the process.
	context.AfterFunc(ctx, func() { time.AfterFunc(grace-time.Second, func() { os.Exit(1) }) })
	own, err := netns.OfFile(4)
	if err != nil {
		return err
	}
	defer func() { _ = own.Close() }() // it ends with the process in any case
	return joined.ServeBeside(ctx, w, Networks(), own)
}
