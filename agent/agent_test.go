package agent

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/machine"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/rpc"
	"netdelta/testbed/testbedtest"
	"netdelta/workload"
)

// The test binary is its own agent, with workloads that behave and misbehave on request.
func TestMain(m *testing.M) {
	if Asked() {
		if os.Getenv("AGENT_TEST_GARBAGE") != "" {
			fmt.Println("good morning")
		}
		Become(testWorkloads())
	}
	os.Exit(m.Run())
}

type fakeServer struct{}

func (fakeServer) Totals() engine.Totals { return engine.Totals{Transactions: 7} }
func (fakeServer) Threads() []int        { return []int{7, 8} }
func (fakeServer) Close() error          { return nil }

type fakeClient struct {
	burst func() error
	last  int64
	kept  int64
}

func (c *fakeClient) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.settle(spec.DropLast)
	c.last = 10
	return engine.Burst{Transactions: 10, P50: 1500, Duration: spec.Duration}, c.burst()
}

func (c *fakeClient) Collect(dropLast bool) (engine.Totals, error) {
	c.settle(dropLast)
	return engine.Totals{Transactions: c.kept}, nil
}

func (c *fakeClient) settle(drop bool) {
	if !drop {
		c.kept += c.last
	}
	c.last = 0
}

func (c *fakeClient) Close() error { return nil }

func testWorkloads() []workload.Workload {
	named := func(name string, burst func() error) workload.Workload {
		return workload.Workload{
			Name: name,
			Serve: func(context.Context, result.Params, netip.AddrPort, int) (engine.Server, error) {
				return fakeServer{}, nil
			},
			Dial: func(_ context.Context, _ result.Params, _, server netip.AddrPort, _ int) (engine.Client, error) {
				if server.Port() == 1 {
					return nil, errors.New("connection refused")
				}
				return &fakeClient{burst: burst}, nil
			},
		}
	}
	return []workload.Workload{
		sicklyWorkload(),
		named("steady", func() error { return nil }),
		named("hangs", func() error { select {} }),
		named("dies", func() error {
			fmt.Fprintln(os.Stderr, "out of luck")
			os.Exit(3)
			return nil
		}),
		named("fails", func() error { return errors.New("peer went away") }),
		named("overtime", func() error { return fmt.Errorf("burst not over: %w", context.DeadlineExceeded) }),
	}
}

// localPod runs commands on this machine: what the agent needs of a pod, without a network of its own.
type localPod struct{}

func (localPod) Name() string            { return "local" }
func (localPod) Node() string            { return "here" }
func (localPod) Address() netip.Addr     { return netip.MustParseAddr("127.0.0.1") }
func (localPod) Ports() (uint16, uint16) { return 20000, 20999 }
func (localPod) Start(_ context.Context, c testbed.Command) (testbed.Process, error) {
	return testbedtest.StartLocal(c, nil)
}

func start(t *testing.T, env ...string) *Agent {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	a, err := Start(t.Context(), localPod{}, Program{Path: exe, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

// local is an address with no listener.
func local() netip.AddrPort { return netip.MustParseAddrPort("127.0.0.1:20000") }

func dial(t *testing.T, a *Agent, name string) int {
	t.Helper()
	s, err := a.Dial(t.Context(), name, result.Params{}, local(), local(), -1)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBurstsAndTotals(t *testing.T) {
	a := start(t)
	srv, err := a.Serve(t.Context(), "steady", result.Params{}, local(), -1)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, a, "steady")
	for i := range 3 {
		b, err := a.Burst(t.Context(), c, engine.BurstSpec{Duration: time.Millisecond, Deadline: time.Minute, DropLast: i == 2})
		if err != nil {
			t.Fatal(err)
		}
		if b.P50 != 1500 || b.Duration != time.Millisecond {
			t.Errorf("burst %d came back as %+v", i, b)
		}
	}
	totals, err := a.Collect(t.Context(), c, false)
	if err != nil {
		t.Fatal(err)
	}
	if totals.Transactions != 20 {
		t.Errorf("kept %d transactions of three bursts with one dropped, want 20", totals.Transactions)
	}
	if got, err := a.Totals(t.Context(), srv); err != nil || got.Transactions != 7 {
		t.Errorf("server's totals: %+v, %v", got, err)
	}
	if got, err := a.Threads(t.Context(), srv); err != nil || !slices.Equal(got, []int{7, 8}) {
		t.Errorf("the server's threads: %v, %v", got, err)
	}
	if got, err := a.Spent(t.Context(), srv); err == nil || !strings.Contains(err.Error(), "has no programs") {
		t.Errorf("a server that knows nothing of its processor time, and has no programs, used %+v, %v", got, err)
	}
	if got, err := a.Threads(t.Context(), c); err != nil || len(got) != 0 {
		t.Errorf("threads of a client that knows none: %v, %v", got, err)
	}
	if err := a.Drop(t.Context(), c); err != nil {
		t.Error(err)
	}
	if _, err := a.Burst(t.Context(), c, engine.BurstSpec{Deadline: time.Minute}); err == nil {
		t.Error("a closed session still measures")
	}
	if _, err := a.Threads(t.Context(), c); err == nil {
		t.Error("a closed session still has threads")
	}
}

func TestFaults(t *testing.T) {
	spec := engine.BurstSpec{Duration: time.Millisecond, Deadline: time.Millisecond}
	t.Run("a workload's error keeps the agent", func(t *testing.T) {
		a := start(t)
		if _, err := a.Burst(t.Context(), dial(t, a, "fails"), spec); err == nil || !strings.Contains(err.Error(), "peer went away") {
			t.Errorf("got %v", err)
		}
		if _, err := a.Burst(t.Context(), dial(t, a, "steady"), spec); err != nil {
			t.Errorf("the agent did not survive a failed burst: %v", err)
		}
	})
	t.Run("a burst that hangs", func(t *testing.T) {
		a := start(t)
		if _, err := a.Burst(t.Context(), dial(t, a, "overtime"), spec); !errors.Is(err, ErrHung) || errors.Is(err, rpc.ErrGone) {
			t.Errorf("got %v, want one that matches ErrHung alone", err)
		}
		if _, err := a.Burst(t.Context(), dial(t, a, "fails"), spec); err == nil || errors.Is(err, ErrHung) {
			t.Errorf("a failure counts as a hang: %v", err)
		}
	})
	t.Run("hang", func(t *testing.T) {
		a := start(t)
		_, err := a.Burst(t.Context(), dial(t, a, "hangs"), spec)
		if !errors.Is(err, ErrHung) || !errors.Is(err, rpc.ErrNoAnswer) || !strings.Contains(err.Error(), `"burst"`) {
			t.Errorf("got %v", err)
		}
		if _, err = a.Dial(t.Context(), "steady", result.Params{}, netip.AddrPort{}, netip.AddrPort{}, -1); !errors.Is(err, rpc.ErrGone) {
			t.Errorf("a hung agent was used again: %v", err)
		}
	})
	t.Run("death", func(t *testing.T) {
		a := start(t)
		_, err := a.Burst(t.Context(), dial(t, a, "dies"), engine.BurstSpec{Deadline: time.Minute})
		if !errors.Is(err, rpc.ErrGone) || !strings.Contains(err.Error(), "out of luck") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		a := start(t)
		_, err := a.Dial(t.Context(), "steady", result.Params{}, netip.AddrPort{}, netip.MustParseAddrPort("127.0.0.1:1"), -1)
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("got %v", err)
		}
		if _, err := a.Serve(t.Context(), "unheard-of", result.Params{}, netip.AddrPort{}, -1); err == nil {
			t.Error("an unknown workload was served")
		}
	})
	t.Run("garbage", func(t *testing.T) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), localPod{}, Program{Path: exe, Env: []string{"AGENT_TEST_GARBAGE=1"}})
		if err == nil || !strings.Contains(err.Error(), "good morning") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("interrupt", func(t *testing.T) {
		a := start(t)
		session := dial(t, a, "hangs")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		if _, err := a.Burst(ctx, session, engine.BurstSpec{Deadline: time.Minute}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// A process number must not be taken for the agent's when it is that of the program in front of it.
func TestLocalIsTheAgentItself(t *testing.T) {
	if a := start(t); !a.Local() {
		t.Error("a child of this process is not local")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	behind := Program{Path: "/bin/sh", Args: []string{"-c", `"` + exe + `" agent; exit`}}
	a, err := Start(t.Context(), localPod{}, behind)
	if err != nil {
		t.Fatal(err)
	}
	if a.Local() {
		t.Error("an agent behind a shell counts as the shell")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}

// An agent whose controller is gone must end by itself, even when its workload hangs.
func TestEndsWithItsInput(t *testing.T) {
	a := start(t)
	session := dial(t, a, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = a.Burst(ctx, session, engine.BurstSpec{Deadline: time.Minute})
	p := a.Process().(*testbedtest.Local)
	if err := p.WriteCloser.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the agent outlived its input")
	}
}

// TestOlderAgent: an agent of a version that does not even understand the greeting is refused by both versions, with the fix.
func TestOlderAgent(t *testing.T) {
	old := filepath.Join(t.TempDir(), "netdelta-agent")
	script := `#!/bin/sh
if [ "$1" = --version ]; then echo "netdelta-agent version v0.1"; exit 0; fi
echo "netdelta agent: reading a request: invalid character '\x01' looking for beginning of value" >&2
exit 1
`
	if err := os.WriteFile(old, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), localPod{}, Program{Path: old})
	if err == nil || strings.Contains(err.Error(), "invalid character") {
		t.Fatalf("got %v", err)
	}
	for _, says := range []string{"it is netdelta v0.1", "this netdelta, which is " + machine.Version(), "use the same netdelta on both sides"} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%q is not in: %v", says, err)
		}
	}
}
