package foreign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/network"
	"netdelta/result"
)

// server is a program that serves. What it saw, its client tells.
type server struct {
	home    *daemon.Home
	program *daemon.Daemon
}

// errTaken is the error of a port that is in use.
var errTaken = errors.New("address already in use; end what listens there")

// serve starts the program and returns when it listens.
func (e Engine) serve(ctx context.Context, name string, p result.Params, listen netip.AddrPort, cpu int) (engine.Server, error) {
	fail := func(err error) (engine.Server, error) {
		return nil, fmt.Errorf("%s: serve by %s on %v: %w", name, e.name, listen, err)
	}
	if listen.Port() == 0 {
		return fail(errors.New("a server needs a port between 1 and 65535, so that it is the same in every network"))
	}
	if taken, err := listening(e.reached, listen); taken || err != nil {
		return fail(cmp.Or(err, errTaken)) // what listens already would be taken for this one
	}
	home, err := daemon.Open(room)
	if err != nil {
		return fail(err)
	}
	spec := e.server(p, listen)
	spec.CPUs = daemon.Pin(cpu)
	program, err := home.Start(spec)
	if err == nil {
		err = listens(ctx, program, e.reached, listen)
	}
	if err != nil {
		return fail(errors.Join(err, home.Close()))
	}
	return &server{home, program}, nil
}

// lookAgain is how long to wait before looking again whether a server listens.
const lookAgain = 5 * time.Millisecond

// listens waits until a port of this network namespace is listened on. It is looked for in the kernel's list, since a connection
// would be taken for a client.
func listens(ctx context.Context, program *daemon.Daemon, protocol network.Protocol, at netip.AddrPort) error {
	for {
		there, err := listening(protocol, at)
		if there || err != nil {
			return err
		}
		select {
		case <-program.Ended():
			return fmt.Errorf("%w; is the port in use?", program.Err())
		case <-ctx.Done():
			return fmt.Errorf("it does not listen: %w; %s", context.Cause(ctx), program.Log())
		case <-time.After(lookAgain):
		}
	}
}

// stateListens is TCP_LISTEN, as /proc/net/tcp has it.
const stateListens = "0A"

// listening says whether a port is listened on in this network namespace, by the kernel's list: a line has a number, the local
// address, the remote one and the state.
func listening(protocol network.Protocol, at netip.AddrPort) (bool, error) {
	file := "/proc/net/tcp"
	if protocol == network.UDP {
		file = "/proc/net/udp"
	}
	if at.Addr().Unmap().Is6() {
		file += "6"
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false, fmt.Errorf("ask the kernel who listens: %w", err)
	}
	port := fmt.Sprintf(":%04X", at.Port())
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.HasSuffix(f[1], port) && (protocol == network.UDP || f[3] == stateListens) {
			return true, nil
		}
	}
	return false, nil
}

// Totals implements engine.Server.
func (s *server) Totals() engine.Totals { return engine.Totals{} }

// Close implements engine.Server.
func (s *server) Close() error { return s.home.Close() }
