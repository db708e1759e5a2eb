// Package testbedtest is the suite that each testbed driver has to pass, and the peer: a small program for the pods of tests,
// which is the test's own binary started again.
package testbedtest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/testbed"
	"netdelta/testbed/lab/udptun"
)

// Peer is the test's end of a peer in a pod.
type Peer struct {
	testbed.Process
	Pod testbed.Pod

	requests *json.Encoder
	answers  *json.Decoder
}

// ErrTooBig is the error of Probe for a packet that the path does not let through.
var ErrTooBig = errors.New(tooBig)

// StartPeer starts a peer in a pod.
func StartPeer(t testing.TB, pod testbed.Pod, cpus ...int) *Peer {
	t.Helper()
	p, err := NewPeer(t.Context(), pod, cpus...)
	require.NoError(t, err)
	return p
}

// StartPeers starts a peer in each of some pods, all at once: a cluster takes seconds to make one.
func StartPeers(t testing.TB, pods ...testbed.Pod) []*Peer {
	t.Helper()
	peers, errs := make([]*Peer, len(pods)), make([]error, len(pods))
	var all sync.WaitGroup
	for i, p := range pods {
		all.Go(func() { peers[i], errs[i] = NewPeer(t.Context(), p) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	return peers
}

// ask sends a request and waits for the answer.
func (p *Peer) ask(r request) (answer, error) {
	var a answer
	if err := p.requests.Encode(r); err != nil {
		return a, fmt.Errorf("ask the peer in %s: %w", p.Pod.Name(), err)
	}
	if err := p.answers.Decode(&a); err != nil {
		return a, fmt.Errorf("wait for the peer in %s: %w (%s)", p.Pod.Name(), err, p.Stderr())
	}
	if a.Error == tooBig {
		return a, ErrTooBig
	}
	if a.Error != "" {
		return a, fmt.Errorf("peer in %s: %s", p.Pod.Name(), a.Error)
	}
	return a, nil
}

// Serve starts a server on all addresses of the pod's family.
func (p *Peer) Serve(protocol string, port uint16) error {
	all := netip.IPv4Unspecified()
	if p.Pod.Address().Is6() {
		all = netip.IPv6Unspecified()
	}
	_, err := p.ask(request{Do: "serve", Protocol: protocol, At: netip.AddrPortFrom(all, port)})
	return err
}

// Exchange sends messages to a server, compares the answers, and returns how many had to be sent.
func (p *Peer) Exchange(protocol string, at netip.AddrPort, size, count int) (sent int, err error) {
	a, err := p.ask(request{Do: "exchange", Protocol: protocol, At: at, Size: size, Count: count})
	return a.Sent, err
}

// Probe sends an IP packet of the given size to a UDP server and back, unfragmented. It is ErrTooBig where that can't be.
func (p *Peer) Probe(at netip.AddrPort, size int) error {
	_, err := p.ask(request{Do: "probe", At: at, Size: size})
	return err
}

// Connect opens a connection to a server on which messages go round from now on.
func (p *Peer) Connect(at netip.AddrPort, size int) error {
	_, err := p.ask(request{Do: "connect", At: at, Size: size})
	return err
}

// Progress counts the messages of that connection that came back right.
func (p *Peer) Progress() (uint64, error) {
	a, err := p.ask(request{Do: "progress"})
	return a.Exchanged, err
}

// Advances waits until the connection carries messages again.
func (p *Peer) Advances(patience time.Duration) error {
	first, err := p.Progress()
	if err != nil {
		return err
	}
	return require.Await(patience, fmt.Sprintf("the connection from %s carries messages", p.Pod.Name()), func() error {
		now, err := p.Progress()
		if err == nil && now < first+3 {
			err = fmt.Errorf("it has carried %d", now-first)
		}
		return err
	})
}

// IgnoreEOF makes the peer go on when its input ends, and deaf to polite signals.
func (p *Peer) IgnoreEOF() error {
	_, err := p.ask(request{Do: "ignore"})
	return err
}

// Suspend stops the peer as SIGSTOP does; it answers no more.
func (p *Peer) Suspend() error { return p.requests.Encode(request{Do: "stop"}) }

// Die makes the peer write to its standard error and exit.
func (p *Peer) Die(says string, status int) error {
	return p.requests.Encode(request{Do: "die", Text: says, Count: status})
}

// Environment is the peer's, a variable a line.
func (p *Peer) Environment() (string, error) {
	a, err := p.ask(request{Do: "environment"})
	return a.Text, err
}

// ReadFile reads a file as the peer sees it.
func (p *Peer) ReadFile(path string) (string, error) {
	a, err := p.ask(request{Do: "read", Text: path})
	return a.Text, err
}

// Fork makes the peer start a child in a session of its own, which sleeps, and returns its process number.
func (p *Peer) Fork(seconds int) (int, error) {
	a, err := p.ask(request{Do: "fork", Count: seconds})
	return a.Sent, err
}

// Program is the environment that names the test's binary in pods where it has another path than here.
const Program = "NETDELTA_TEST_PROGRAM"

// NewPeer is StartPeer where there is no test.
func NewPeer(ctx context.Context, pod testbed.Pod, cpus ...int) (*Peer, error) {
	path, err := os.Executable()
	path = cmp.Or(os.Getenv(Program), path)
	if err != nil {
		return nil, fmt.Errorf("find the test's binary: %w", err)
	}
	proc, err := pod.Start(ctx, testbed.Command{Path: path, Env: []string{Role("peer"), "GORACE=" + os.Getenv("GORACE")}, CPUs: cpus})
	if err != nil {
		return nil, err
	}
	return &Peer{Process: proc, Pod: pod, requests: json.NewEncoder(proc), answers: json.NewDecoder(proc)}, nil
}

// role is the environment variable that makes the test's binary something other than a test.
const role = "NETDELTA_TEST_ROLE"

// secret is a variable of the environment of tests that nothing in a pod may see.
const secret = "NETDELTA_SECRET"

// Main is what TestMain of a package that uses the suite calls and exits with. Started in a pod, the binary becomes a peer;
// roles are further ones that the package has for itself. Otherwise it runs the tests and fails if they leave anything.
func Main(m *testing.M, roles map[string]func() int) int {
	if udptun.Asked() {
		return udptun.Become()
	}
	switch name := os.Getenv(role); name {
	case "":
		if err := os.Setenv(secret, "of the test"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return leak.Main(m)
	case "peer":
		return BePeer()
	default:
		if run, ok := roles[name]; ok {
			return run()
		}
		return 125
	}
}

// MainWithPeers is Main of a package whose pods see the files of this machine and start peers by the hundred. Where the race detector is on,
// they are a program of its own without it, which takes a third of the time: it would only see the code of tests in them.
func MainWithPeers(m *testing.M, roles map[string]func() int) int {
	info, _ := debug.ReadBuildInfo()
	raced := info != nil && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
	if !raced || udptun.Asked() || os.Getenv(role) != "" {
		return Main(m, roles)
	}
	dir, err := os.MkdirTemp("", "netdelta-peer-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left is a small file
	peer := filepath.Join(dir, "peer")
	if err := errors.Join(require.Build(context.Background(), "testbed/testbedtest/peertest", peer), os.Setenv(Program, peer)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return Main(m, roles)
}

// Role is the environment that makes the test's binary play a role.
func Role(name string) string { return role + "=" + name }

// Local is a program of this machine as the process of a pod that a test makes up.
type Local struct {
	io.Reader
	io.WriteCloser
	cmd    *exec.Cmd
	stderr bytes.Buffer
	wait   sync.Once
	err    error
}

var _ testbed.Process = (*Local)(nil)

// StartLocal starts one. within calls what starts it, from a namespace say; nil is from here.
func StartLocal(c testbed.Command, within func(start func() error) error) (*Local, error) {
	p := &Local{cmd: exec.Command(c.Path, c.Args...)}
	p.cmd.Env, p.cmd.Stderr = c.Env, &p.stderr
	var err error
	if p.WriteCloser, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if p.Reader, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if within == nil {
		return p, p.cmd.Start()
	}
	return p, within(p.cmd.Start)
}

// PID implements testbed.Process.
func (p *Local) PID() int { return p.cmd.Process.Pid }

// Kill implements testbed.Process.
func (p *Local) Kill() error { return p.cmd.Process.Kill() }

// Wait implements testbed.Process.
func (p *Local) Wait() error {
	p.wait.Do(func() { p.err = p.cmd.Wait() })
	return p.err
}

// Close implements testbed.Process.
func (p *Local) Close() error {
	const grace = 5 * time.Second
	defer time.AfterFunc(grace, func() { _ = p.Kill() }).Stop()
	return errors.Join(p.WriteCloser.Close(), p.Wait())
}

// Stderr implements testbed.Process: all of it, once the program has ended.
func (p *Local) Stderr() string {
	_ = p.Wait() // how it ended is told elsewhere
	return strings.TrimSpace(p.stderr.String())
}

// FailureReason implements testbed.Process.
func (p *Local) FailureReason() string { return "" }

// resume is how long a connection may take to carry messages again after a swap: TCP doubles the time between its attempts
// while there is no network.
const resume = 30 * time.Second

// testSwap swaps from each network to each other one under live connections on one node and between nodes, which must go
// on wherever pods are reached at their own addresses; and new connections must come about everywhere.
func (s Suite) testSwap(t *testing.T) {
	tb := s.open(t, true)
	pods := tb.Pods()
	peers := StartPeers(t, pods[:3]...)
	client, near, far := peers[0], peers[1], peers[2]
	clientFar := StartPeer(t, pods[0])
	for _, server := range []*Peer{near, far} {
		first, _ := server.Pod.Ports()
		require.NoError(t, server.Serve("tcp", first))
	}
	if !s.ReachByPod(s.Networks[0]) {
		t.Fatalf("the first network, %s, must reach pods at their own addresses", s.Networks[0])
	}
	nearPort, _ := near.Pod.Ports()
	farPort, _ := far.Pod.Ports()
	require.NoError(t, client.Connect(netip.AddrPortFrom(near.Pod.Address(), nearPort), 500))
	require.NoError(t, clientFar.Connect(netip.AddrPortFrom(far.Pod.Address(), farPort), 500))
	addresses := make([]netip.Addr, len(pods))
	for i, p := range pods {
		addresses[i] = p.Address()
	}
	for step, name := range tour(s.Networks) {
		began := time.Now()
		require.NoError(t, tb.Swap(t.Context(), name))
		took := time.Since(began)
		for i, p := range pods {
			if p.Address() != addresses[i] {
				t.Fatalf("step %d: %s changed the address of %s from %s to %s", step, name, p.Name(), addresses[i], p.Address())
			}
		}
		for _, to := range []*Peer{near, far} {
			first, _ := to.Pod.Ports()
			if _, err := client.Exchange("tcp", tb.Endpoint(client.Pod, to.Pod, first), 100, 2); err != nil {
				t.Fatalf("step %d: after the swap to %s: %v", step, name, err)
			}
		}
		if s.ReachByPod(name) {
			for _, c := range []*Peer{client, clientFar} {
				if err := c.Advances(resume); err != nil {
					t.Fatalf("step %d: after the swap to %s: %v", step, name, err)
				}
			}
		}
		t.Logf("step %d: %s in %s, carried on after %s", step, name, took.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	}
}

// tour visits networks, starting at the first, so that each ordered pair of them is a step: from network i to each later one
// and back, and then on to network i+1.
func tour(networks []string) []string {
	var steps []string
	for i := range networks {
		for j := i + 1; j < len(networks); j++ {
			steps = append(steps, networks[j], networks[i])
		}
		if i+1 < len(networks) {
			steps = append(steps, networks[i+1])
		}
	}
	return steps
}
