package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"netdelta/internal/machine"
	"netdelta/testbed"
)

// Greeter is a greeting that can be refused.
type Greeter interface{ Check() error }

// Meet waits until a process has introduced itself, as long as deadline, and refuses one of another version. A program may be too old or too
// new to understand the greeting, and end: the same one, started by the command, then tells its version on its own.
func Meet[G Greeter](ctx context.Context, c *Client, pod testbed.Pod, version testbed.Command, deadline time.Duration) (G, error) {
	hello, err := Do[G](ctx, c, OpHello, nil, deadline)
	if err == nil {
		return hello, hello.Check()
	}
	if !errors.Is(err, ErrGone) {
		return hello, err
	}
	there := versionOf(ctx, pod, version)
	if there == "" || there == machine.Version() && !errors.Is(err, errNotProtocol) {
		return hello, err
	}
	return hello, fmt.Errorf("%s: it is netdelta %s and does not speak protocol %d of this netdelta, which is %s: use the same netdelta on both sides", c.who, there, Version, machine.Version())
}

// versionWithin bounds how long a program may take to tell its version, and versionMost what it says.
const (
	versionWithin = 20 * time.Second
	versionMost   = 200
)

// versionOf is what a program says of its version: "netdelta-agent version 1.2". It is "" where it does not tell.
func versionOf(ctx context.Context, pod testbed.Pod, command testbed.Command) string {
	ctx, cancel := context.WithTimeout(ctx, versionWithin)
	defer cancel()
	p, err := pod.Start(ctx, command)
	if err != nil {
		return ""
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	said, _ := io.ReadAll(io.LimitReader(p, versionMost)) // what came before it ended
	stop()
	_ = p.Close() // it has ended, or is ended
	name, version, told := strings.Cut(strings.TrimSpace(string(said)), " version ")
	if !told || !strings.HasPrefix(name, "netdelta") {
		return ""
	}
	return version
}
