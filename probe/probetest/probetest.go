// Package probetest gives the tests of probes something to observe: agents in two pods of a lab, on a node each, and a workload
// armed between them. The test binary has to be its own agent (agent.Become).
package probetest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"netdelta/agent"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
)

// Ahead has an agent, and what it starts, go before all else that runs on this machine but what has a real-time priority: other work then
// does not disturb what a test measures. The kernel shares a processor among sessions, of which each agent is one. For a user who may not
// raise priorities the program stays as it is.
func Ahead(p agent.Program) agent.Program {
	if os.Geteuid() != 0 {
		return p
	}
	const first = `echo -19 2>/dev/null >/proc/self/autogroup; exec nice -n -19 "$0" "$@"`
	p.Args = append([]string{"-c", first, p.Path}, p.Args...)
	p.Path = "/bin/sh"
	return p
}

// GoAhead is Ahead for this very process, where tests measure in it: it gets a session of its own.
func GoAhead() {
	if _, err := unix.Setsid(); err == nil && os.Geteuid() == 0 {
		_ = os.WriteFile("/proc/self/autogroup", []byte("-19"), 0) // without such groups it is as it was
	}
}

// Lab opens a lab, and starts an agent in each of its pods, as changed. All ends with the test.
func Lab(t testing.TB, spec testbed.Spec, changes ...func(agent.Program) agent.Program) (testbed.Testbed, []*agent.Agent) {
	t.Helper()
	require.Namespaces(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	program := agent.Program{Path: exe}
	for _, change := range changes {
		program = change(program)
	}
	tb, err := lab.NewDriver(network.Catalogue()).Open(t.Context(), spec)
	require.NoError(t, err)
	require.Closes(t, tb)
	var agents []*agent.Agent
	for _, pod := range tb.Pods() {
		a, err := agent.Start(t.Context(), pod, program)
		require.NoError(t, err)
		require.Closes(t, a)
		agents = append(agents, a)
	}
	return tb, agents
}

// Agents opens a lab of two nodes with a bridge, and starts an agent in the pod of each node, as changed. All ends with the test.
func Agents(t *testing.T, changes ...func(agent.Program) agent.Program) (client, server *agent.Agent) {
	t.Helper()
	_, all := Lab(t, testbed.Spec{Nodes: 2, PodsPerNode: 1, Network: "bridge", Link: testbed.Link{MTU: 1500}}, changes...)
	return all[0], all[1]
}

// Connection is a workload between two agents, its connections open.
type Connection struct {
	Client, Server *agent.Agent
	Session        int // of the client
	Service        int // of the server
}

// Connect opens a workload between the agents of Agents, its ends pinned to a processor; a negative one leaves them free.
func Connect(t *testing.T, workload string, p result.Params, cpu int, changes ...func(agent.Program) agent.Program) Connection {
	t.Helper()
	client, server := Agents(t, changes...)
	a := Connection{Client: client, Server: server}
	port, _ := server.Pod().Ports()
	at := netip.AddrPortFrom(server.Pod().Address(), port)
	var err error
	a.Service, err = server.Serve(t.Context(), workload, p, at, cpu)
	require.NoError(t, err)
	local := netip.AddrPortFrom(client.Pod().Address(), 3000)
	a.Session, err = client.Dial(t.Context(), workload, p, local, at, cpu)
	require.NoError(t, err)
	return a
}

// Threads are the threads of both ends, by agent.
func (a Connection) Threads(t *testing.T) map[*agent.Agent][]int {
	t.Helper()
	threads := map[*agent.Agent][]int{}
	for end, session := range map[*agent.Agent]int{a.Client: a.Session, a.Server: a.Service} {
		ids, err := end.Threads(t.Context(), session)
		require.NoError(t, err)
		threads[end] = ids
	}
	return threads
}

// Deafen has a pod drop everything that comes, by the program nft, until lift is called.
func Deafen(ctx context.Context, pod testbed.Pod, nft string) (lift func() error, err error) {
	call := func(command string) error {
		p, err := pod.Start(ctx, testbed.Command{Path: nft, Args: []string{command}})
		if err != nil {
			return err
		}
		return p.Wait()
	}
	err = call("add table inet deaf; add chain inet deaf in { type filter hook input priority 0; policy drop; }")
	return func() error { return call("delete table inet deaf") }, err
}

// Supported fails the test for an error, and skips it for one that says that this machine or user lacks something.
func Supported(t *testing.T, err error) {
	t.Helper()
	var unsupported *testbed.UnsupportedError
	var refused *testbed.PermissionError
	switch {
	case errors.As(err, &unsupported):
		require.Need(t, unsupported.Need, false)
	case errors.As(err, &refused):
		require.Need(t, refused.Need, false)
	case err != nil:
		t.Fatal(err)
	}
}

// Killed starts this same test in another process, where it has hold load eBPF programs and hang, kills that, and sees that the
// kernel holds no more programs of the given names afterwards than before. variable is the environment variable by which the
// other process knows what it is.
func Killed(t *testing.T, variable string, names []string, hold func()) {
	t.Helper()
	if os.Getenv(variable) != "" {
		hold()
		_, _ = os.Stdout.WriteString("holding\n")
		select {}
	}
	before := programs(t, names)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"=1")
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill() // again, if all went well
		_ = cmd.Wait()
	}()
	if _, err := stdout.Read(make([]byte, len("holding\n"))); err != nil {
		t.Fatal(err)
	}
	if programs(t, names) <= before {
		t.Fatal("the other process has loaded nothing")
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, require.Await(10*time.Second, "its programs are gone", func() error {
		if now := programs(t, names); now > before {
			return fmt.Errorf("%d programs, %d before", now, before)
		}
		return nil
	}))
}

// programs counts the eBPF programs of the given names that the kernel holds.
func programs(t *testing.T, names []string) int {
	t.Helper()
	count := 0
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return count
		}
		require.NoError(t, err)
		id = next
		if slices.Contains(names, programName(t, id)) {
			count++
		}
	}
}

// programName is "" for a program that has gone.
func programName(t *testing.T, id ebpf.ProgramID) string {
	t.Helper()
	p, err := ebpf.NewProgramFromID(id)
	if errors.Is(err, os.ErrNotExist) {
		return ""
	}
	require.NoError(t, err)
	defer func() { _ = p.Close() }()
	info, err := p.Info()
	require.NoError(t, err)
	return info.Name
}
