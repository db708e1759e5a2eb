// Package require skips tests on machines that lack what they need, always in the same words, so that skipped tests can be
// listed by name and reason, waits for events that tests need, and ends those in which a step fails.
package require

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"netdelta/internal/netns"
)

// Need skips the test unless this machine has what it needs. It fails the test where what it names is there after all: a skip must
// not hide a fault.
func Need(t testing.TB, what string, has bool) {
	t.Helper()
	if has {
		return
	}
	if there := present(what, hasProgram, kernelHas); there != "" {
		t.Fatalf("needs %s: %s, so this is no reason to skip", what, there)
	}
	t.Skipf("skip: %s: needs %s, this machine lacks it", t.Name(), what)
}

// NoError ends the test if a step of it has failed.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Closes closes what a test uses when the test ends, and fails the test where that fails.
func Closes(t testing.TB, used io.Closer) {
	t.Helper()
	t.Cleanup(func() {
		if err := used.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Namespaces skips the test unless this user may make network namespaces.
func Namespaces(t testing.TB) {
	t.Helper()
	n, err := netns.New(nil)
	if err != nil && !errors.Is(err, unix.EPERM) {
		t.Fatalf("find out whether network namespaces can be made: %v", err)
	}
	Need(t, "the right to make network namespaces (root)", err == nil)
	NoError(t, n.Close())
}

// Tool skips the test unless a program is on the PATH, and returns where.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	Need(t, "the program "+name, err == nil)
	return path
}

// GuestsVariable is the environment variable that is set where tests may boot guests.
const GuestsVariable = "NETDELTA_GUESTS"

// Long skips the test where only short ones are wanted: with -short, as "make test" runs them. "make check" runs the long ones.
func Long(t testing.TB) {
	t.Helper()
	Need(t, "the time of a long test (make check)", !testing.Short())
}

// Guests skips the test unless it is told that it may boot guests, which keep all processors busy for minutes. "make guest" runs the
// tests that call it, and finds them by their names: each has InGuest in it.
func Guests(t testing.TB) {
	t.Helper()
	named(t, "InGuest")
	Need(t, "guests (make guest)", os.Getenv(GuestsVariable) != "")
}

// KubeconfigVariable is the environment variable with the path of the kubeconfig of a cluster for tests.
const KubeconfigVariable = "NETDELTA_KUBECONFIG"

// Cluster skips the test unless it is told of a Kubernetes cluster, and returns the path of its kubeconfig. "make test-kubernetes"
// runs the tests that call it, and finds them by their names: each has OnCluster in it.
func Cluster(t testing.TB) string {
	t.Helper()
	named(t, "OnCluster")
	path := os.Getenv(KubeconfigVariable)
	Need(t, "a cluster (make cluster-up, "+KubeconfigVariable+")", path != "")
	return path
}

// named fails a test whose name does not tell the scripts what it needs.
func named(t testing.TB, word string) {
	t.Helper()
	if !strings.Contains(t.Name(), word) {
		t.Fatalf("the name of %s must contain %s: scripts find by it the tests that need what it needs", t.Name(), word)
	}
}

var (
	program = regexp.MustCompile(`\bthe program ([A-Za-z0-9_.+-]+)`)
	option  = regexp.MustCompile(`\bCONFIG_[A-Z0-9_]+`)
)

// present says which part of a need this machine has: a program on the PATH, or all options of the kernel that are named. It is
// empty where the need is true, or names neither.
func present(what string, hasProgram, hasOption func(string) bool) string {
	if named := program.FindStringSubmatch(what); named != nil && hasProgram(named[1]) {
		return named[1] + " is on PATH"
	}
	options := option.FindAllString(what, -1)
	for _, o := range options {
		if !hasOption(o) {
			return ""
		}
	}
	if len(options) > 0 {
		return "this kernel has " + strings.Join(options, ", ")
	}
	return ""
}

func hasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// kernelHas is true for an option that the running kernel was built with, in it or as a module; false where it does not tell.
func kernelHas(option string) bool {
	config, err := kernelConfig()
	return err == nil && (bytes.Contains(config, []byte("\n"+option+"=y\n")) || bytes.Contains(config, []byte("\n"+option+"=m\n")))
}

// kernelConfig reads what the running kernel was built with, once: a test that is skipped asks for a single line of thousands.
var kernelConfig = sync.OnceValues(func() ([]byte, error) {
	if packed, err := os.Open("/proc/config.gz"); err == nil {
		defer func() { _ = packed.Close() }()
		r, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		return io.ReadAll(r)
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return nil, err
	}
	return os.ReadFile("/boot/config-" + unix.ByteSliceToString(name.Release[:]))
})

// Program builds one of netdelta's commands for a test, into a file, as a static binary; env says what else is otherwise: "GOARCH=arm64".
func Program(t testing.TB, command, path string, env ...string) {
	t.Helper()
	NoError(t, Build(t.Context(), "cmd/"+command, path, env...))
}

// Build is Program of any of netdelta's packages, also before tests begin.
func Build(ctx context.Context, source, path string, env ...string) error {
	build := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", path, "netdelta/"+source)
	build.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	return nil
}

// Pipes are the standard input and output of a program that a test is about to start.
func Pipes(t testing.TB, cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	NoError(t, err)
	out, err := cmd.StdoutPipe()
	NoError(t, err)
	return in, out
}
