package kube

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
)

// PluginVerb is the argument with which this program runs a plugin that a kubeconfig names. The library would keep whatever that prints, and
// wait for it whatever happens.
const PluginVerb = "credential-plugin"

// wrapPlugin has this program stand between the library and the plugin of a configuration. One that is not there is left to the library, which
// says how to install it.
func wrapPlugin(c *rest.Config) error {
	if c.ExecProvider == nil {
		return nil
	}
	if _, err := exec.LookPath(c.ExecProvider.Command); errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	plugin := c.ExecProvider.DeepCopy()
	plugin.Args = append([]string{PluginVerb, plugin.Command}, plugin.Args...)
	plugin.Command = self
	c.ExecProvider = plugin
	return nil
}

// RunPlugin is this program between the library and a plugin. It ends with the program that has started it.
func RunPlugin(ctx context.Context, argv []string, in, out *os.File) error {
	if len(argv) == 0 {
		return errors.New("this is started by netdelta: it takes a command")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for { // until nobody reads what this prints
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(out.Fd())}}, -1); !errors.Is(err, unix.EINTR) {
				cancel()
				return
			}
		}
	}()
	fail := func(err error) error {
		return fmt.Errorf("run the plugin %s, which the kubeconfig names: %w", argv[0], err)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stderr, cmd.WaitDelay = in, os.Stderr, time.Second
	said := &atMost{left: int(namedMost), over: cancel}
	cmd.Stdout = said
	err := cmd.Run()
	if said.left < 0 {
		return fail(fmt.Errorf("it prints more than %v, and no credentials have so much: it was ended", namedMost))
	}
	if err != nil {
		return fail(err)
	}
	_, err = io.Copy(out, &said.kept)
	return err
}

// atMost keeps what is written to it, up to a limit.
type atMost struct {
	kept bytes.Buffer
	left int // below 0 there was more
	over func()
}

// Write implements io.Writer.
func (a *atMost) Write(b []byte) (int, error) {
	if a.left -= len(b); a.left < 0 {
		a.over()
		return 0, io.ErrShortBuffer
	}
	return a.kept.Write(b)
}

// abandoning has requests end with their context, also those that wait for a plugin.
type abandoning struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a abandoning) RoundTrip(r *http.Request) (*http.Response, error) {
	type answer struct {
		*http.Response
		error
	}
	came := make(chan answer, 1)
	go func() {
		response, err := a.base.RoundTrip(r)
		came <- answer{response, err}
	}()
	select {
	case one := <-came:
		return one.Response, one.error
	case <-r.Context().Done():
		go func() {
			if one := <-came; one.Response != nil {
				_ = one.Body.Close() // nobody reads it
			}
		}()
		return nil, context.Cause(r.Context())
	}
}

// WrappedRoundTripper is what the library asks for the connections.
func (a abandoning) WrappedRoundTripper() http.RoundTripper { return a.base }
