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
type server struct{ home *daemon.Sandbox }

// errTaken is the error of a port that is in use.
var errTaken = errors.New("address already in use; end what listens there")

// lookAgain is how long to wait before looking again whether a server listens.
const lookAgain = 5 * time.Millisecond

// serve starts the program and returns when it listens. It is looked for in the kernel's list, since a connection would be taken for
// a client.
func (e Engine) serve(ctx context.Context, name string, p result.Params, listen netip.AddrPort, cpu int) (_ engine.Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: serve by %s on %v: %w", name, e.Name, listen, err)
		}
	}()
	if listen.Port() == 0 {
		return nil, errors.New("a server needs a port between 1 and 65535, so that it is the same in every network")
	}
	if taken, err := listening(e.Reached, listen); taken || err != nil {
		return nil, cmp.Or(err, errTaken) // what listens already would be taken for this one
	}
	home, err := daemon.Open(room)
	if err != nil {
		return nil, err
	}
	spec := e.Server(p, listen)
	spec.CPUs = daemon.Pin(cpu)
	program, err := home.Start(spec)
	if err == nil {
		err = daemon.Until(ctx, program, lookAgain, func(context.Context) error {
			there, err := listening(e.Reached, listen)
			switch {
			case err != nil:
				return daemon.FinalError{Err: err}
			case !there:
				return errors.New("it does not listen; is the port in use?")
			}
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(err, home.Close())
	}
	return &server{home}, nil
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
