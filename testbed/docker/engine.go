package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"time"
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
