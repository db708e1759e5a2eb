// Package docker is a testbed of the networks that a container engine on this machine has: Docker, or Podman, which takes the same
// commands. The engine makes a container for each pod and joins it to its network; what is measured runs in the container's network
// namespace and is confined by nothing else, as in a lab, so that the two can be held against each other.
package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
	"netdelta/internal/tail"
	"netdelta/network"
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

// answerWithin bounds what the engine's own program may take for an answer.
const answerWithin = 30 * time.Second

// engine is a container engine, spoken to by its own program, which knows where the daemon listens and who the user is to it.
type engine struct{ program string }

// ask runs the program to its end and returns what it said, without blanks around.
func (e engine) ask(ctx context.Context, input io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.program, args...)
	var said, failed bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &said, &failed
	err := cmd.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", e.failure(args, err, failed.String())
	}
	return strings.TrimSpace(said.String()), nil
}

// failure says what the engine could not do, in its own words where it has some.
func (e engine) failure(args []string, err error, said string) error {
	what := fmt.Sprintf("%s %s", e.program, strings.Join(args[:min(2, len(args))], " "))
	said = strings.TrimSpace(said)
	switch {
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: there is no such program: install docker or podman, or name its file by --docker", what)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: no answer within %s; look whether the daemon hangs", what, answerWithin)
	case strings.Contains(said, "Cannot connect to the Docker daemon"):
		return fmt.Errorf("%s: %s; start the daemon, or name another by DOCKER_HOST", what, lastLine(said))
	case said != "":
		return fmt.Errorf("%s: %s", what, lastLine(said))
	}
	return fmt.Errorf("%s: %w", what, err)
}

// lastLine is the last line of a text that says something of what went wrong: the program's advice to read its help does not.
func lastLine(text string) string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i > 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" && !strings.HasPrefix(line, "See '") && !strings.HasPrefix(line, "Run '") {
			return line
		}
	}
	return strings.TrimSpace(lines[0])
}

// found is a network as the engine lists it.
type found struct{ name, driver string }

// networks lists the engine's.
func (e engine) networks(ctx context.Context) ([]found, error) {
	said, err := e.ask(ctx, nil, "network", "ls", "--format", "{{.Name}} {{.Driver}}")
	if err != nil {
		return nil, err
	}
	var all []found
	for line := range strings.Lines(said) {
		name, driver, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, found{name, driver})
	}
	return all, nil
}

// Kind is the name that studies and --testbed have for the testbed.
const Kind = "docker"

// Prefix begins the names of an engine's networks: "docker:NAME" is the engine's network NAME.
const Prefix = "docker:"

// Networks that every engine has.
const (
	// Host is the engine's own network namespace.
	Host = Prefix + "host"
	// Bridge is the network that containers are joined to unless they name another.
	Bridge = Prefix + "bridge"
	// Published reaches a container of Bridge from the host, at a published port of the host's address: the firewall rewrites it.
	Published = Prefix + "published"
	// Proxied is Published at the loopback address, which Docker's proxy in user space serves. Podman has none.
	Proxied = Prefix + "published-proxy"
)

// none is the engine's network without anything in it.
const none = Prefix + "none"

// Networks are those that every engine has, in the order in which they are listed. They have no plan.
func Networks() []network.Network {
	return []network.Network{
		{Name: Host, Summary: "containers in the host's own network namespace, over loopback", UsedBy: []string{"docker run --network host"}, Reach: network.ByNode, OwnPods: true, SharesPorts: true},
		{Name: Bridge, Summary: "the engine's default bridge, from container to container", UsedBy: []string{"docker run"}, OwnPods: true},
		{Name: Published, Summary: "from the host to a published port at the host's address, by the firewall's rewriting", UsedBy: []string{"docker run --publish"}, Reach: network.ByNode, OwnPods: true, SharesPorts: true},
		{Name: Proxied, Summary: "from the host to a published port at localhost, by the engine's proxy in user space where it has one", UsedBy: []string{"docker run --publish, userland-proxy"}, Reach: network.ByNode, OwnPods: true, SharesPorts: true},
	}
}

// own is a network of the user's, of which the engine says its driver.
func own(f found) network.Network {
	return network.Network{
		Name: Prefix + f.name, Summary: fmt.Sprintf("network %s of the engine, driver %s", f.name, f.driver),
		UsedBy: []string{"docker run --network " + f.name}, OwnPods: true,
	}
}

// catalogue are the engine's networks: those that every engine has, and the user's own.
func catalogue(listed []found) []network.Network {
	all := Networks()
	for _, f := range listed {
		if !slices.Contains([]string{"host", "none", "bridge", "podman"}, f.name) { // the last is Podman's name of its bridge
			all = append(all, own(f))
		}
	}
	return all
}

// engineName is what the engine calls the network that a container is joined to.
func engineName(name string) string {
	switch name {
	case Published, Proxied:
		name = Bridge
	}
	return strings.TrimPrefix(name, Prefix)
}
