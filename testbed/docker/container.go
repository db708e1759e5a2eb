package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/tail"
	"netdelta/result"
	"netdelta/testbed/nsmonitor"
)

const (
	// startWithin bounds the start of a container, and endWithin its end once its standard input has ended.
	startWithin = time.Minute
	endWithin   = time.Minute
	// lookEvery is how often it is looked whether a container runs.
	lookEvery = 20 * time.Millisecond
	// stderrKept is how much of the end of standard error is kept.
	stderrKept = 4 << 10
)

// container is one that does nothing but hold a network namespace. It ends with its standard input, and so with this program, however that
// ends; the engine then removes it.
type container struct {
	name  string
	space *netns.Namespace
	first uint16 // of the ports that are its own, on the host too
	// addresses are its own, by version of IP, and gateways are addresses of the host on its network; not valid where there is none.
	addresses, gateways map[result.Family]netip.Addr

	stdin io.Closer
	ended chan struct{}
	close sync.Once
}

// hold starts a container that holds a network namespace.
func (e engine) hold(ctx context.Context, image, name, joins string, more ...string) (*container, error) {
	args := append([]string{"run", "--interactive", "--rm", "--pull", "never", "--name", name, "--label", label, "--network", joins}, more...)
	cmd := exec.Command(e.program, append(args, image)...) //nolint:noctx // it ends with its standard input, in its own time
	stderr := tail.New(stderrKept)
	cmd.Stderr = stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // what is meant for this program must not end it
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, e.failure(args, err, "")
	}
	c := &container{name: name, stdin: stdin, ended: make(chan struct{})}
	var failed error
	go func() {
		failed = cmd.Wait()
		close(c.ended)
	}()
	pid, err := e.started(ctx, c)
	if err == nil {
		err = c.look(pid)
	}
	if err == nil {
		return c, nil
	}
	select {
	case <-c.ended:
		err = e.failure(args, failed, stderr.String())
	case <-time.After(5 * lookEvery): // it lives, or is about to end
	}
	return nil, errors.Join(fmt.Errorf("start a container on network %s: %w", joins, err), c.Close())
}

// started waits until the engine knows the number of the container's process.
func (e engine) started(ctx context.Context, c *container) (pid int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("it did not start within %s", startWithin))
	defer cancel()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		said, err := e.ask(ctx, nil, "inspect", "--format", "{{.State.Pid}}", c.name)
		if pid, _ := strconv.Atoi(said); err == nil && pid > 0 {
			return pid, nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return 0, errors.New("it ended at once")
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// look opens the container's namespace and reads the addresses there.
func (c *container) look(pid int) (err error) {
	if c.space, err = netns.Of(pid); err != nil {
		return fmt.Errorf("%w; the engine must run on this machine, not in a virtual one or elsewhere", err)
	}
	c.addresses, c.gateways = map[result.Family]netip.Addr{}, map[result.Family]netip.Addr{}
	return c.space.Do(func() error {
		all, err := nsmonitor.Interfaces()
		if err != nil {
			return err
		}
		for _, i := range all {
			for _, p := range i.Addresses {
				a := p.Addr()
				if f := familyOf(a); !a.IsLoopback() && !a.IsLinkLocalUnicast() && !c.addresses[f].IsValid() {
					c.addresses[f] = a
				}
			}
		}
		nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer nl.Close()
		routes, err := nsmonitor.List(func() ([]netlink.Route, error) { return nl.RouteList(nil, netlink.FAMILY_ALL) }) //nolint:forbidigo // List asks again
		for _, r := range routes {
			if a, ok := netip.AddrFromSlice(r.Gw); ok && (r.Dst == nil || r.Dst.IP.IsUnspecified()) {
				c.gateways[familyOf(a.Unmap())] = a.Unmap()
			}
		}
		return err
	})
}

// familyOf is the version of IP of an address.
func familyOf(a netip.Addr) result.Family {
	if a.Is4() {
		return result.IPv4
	}
	return result.IPv6
}

// Close ends the container. It is idempotent.
func (c *container) Close() (err error) {
	c.close.Do(func() {
		_ = c.stdin.Close() // it may have gone already
		select {
		case <-c.ended:
		case <-time.After(endWithin):
			err = fmt.Errorf("container %s did not end within %s of the end of its input; remove it by: docker rm --force %s", c.name, endWithin, c.name)
		}
		if c.space != nil {
			err = errors.Join(err, c.space.Close())
		}
	})
	return err
}
