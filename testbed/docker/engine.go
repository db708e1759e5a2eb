package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"netdelta/network"
)

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
		{Name: Host, Summary: "containers in the host's own network namespace, over loopback", UsedBy: []string{"docker run --network host"}, Reach: network.ByNode, OwnPods: true},
		{Name: Bridge, Summary: "the engine's default bridge, from container to container", UsedBy: []string{"docker run"}, OwnPods: true},
		{Name: Published, Summary: "from the host to a published port at the host's address, by the firewall's rewriting", UsedBy: []string{"docker run --publish"}, Reach: network.ByNode, OwnPods: true},
		{Name: Proxied, Summary: "from the host to a published port at localhost, by the engine's proxy in user space where it has one", UsedBy: []string{"docker run --publish, userland-proxy"}, Reach: network.ByNode, OwnPods: true},
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
