package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// frozen is another tool's client that stands still between its turns: it is stopped and continued by signals, so that
// even a tool that knows nothing of bursts can be interleaved with others, turn by turn.
type frozen struct{ programPair }

// openFrozen starts a tool's server and client, both pinned, waits until the client says that it has begun and for another
// while, and stops it.
func openFrozen(ends *namespaces, cpu int, begun string, settle time.Duration, server, client []string) (*frozen, error) {
	pinned := func(args []string) *exec.Cmd {
		return exec.Command("taskset", append([]string{"-c", strconv.Itoa(cpu), "stdbuf", "-oL"}, args...)...)
	}
	f := &frozen{programPair{server: pinned(server), client: pinned(client)}}
	said, err := f.client.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := start(ends.server, f.server); err != nil {
		return nil, err
	}
	time.Sleep(200 * time.Millisecond)
	if err := start(ends.client, f.client); err != nil {
		f.close()
		return nil, err
	}
	for lines := bufio.NewScanner(said); ; {
		if !lines.Scan() {
			f.close()
			return nil, fmt.Errorf("%s did not begin", client[0])
		}
		if strings.Contains(lines.Text(), begun) {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	time.Sleep(settle)
	return f, f.client.Process.Signal(syscall.SIGSTOP)
}

// turn lets the client run while body does.
func (f *frozen) turn(body func() error) error {
	if err := f.client.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	return errors.Join(body(), f.client.Process.Signal(syscall.SIGSTOP))
}

// finish lets the client run until it ends by itself.
func (f *frozen) finish() error {
	if err := f.client.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = f.client.Wait() // what it has to say is in its log
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s did not end", f.client.Args[5])
	}
}

// programPair is the client and the server of a tool.
type programPair struct{ client, server *exec.Cmd }

func (p programPair) close() {
	for _, cmd := range []*exec.Cmd{p.client, p.server} {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		}
	}
}
