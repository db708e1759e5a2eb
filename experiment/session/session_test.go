package session_test

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/experiment"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	"netdelta/experiment/session"
	"netdelta/experiment/study"
	"netdelta/internal/leak"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/testbedtest"
	"netdelta/workload/catalogue"
)

func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

// loopback is a provider whose pods are processes of this machine, each on an address of its own of the loopback device.
type loopback struct {
	opened *atomic.Int64
	closed *atomic.Int64
}

func (loopback) Kind() string { return "loopback" }

func (loopback) Capabilities() testbed.Capabilities {
	return testbed.Capabilities{Networks: []network.Network{{Name: "first"}, {Name: "second"}}, OwnsNodes: true}
}

func (loopback) Supports(_ context.Context, s testbed.Spec) error {
	if s.Network == "third" {
		return &testbed.UnsupportedError{Feature: "network third", Need: "a third loopback", Fix: "do without"}
	}
	return nil
}

func (l loopback) Open(_ context.Context, s testbed.Spec) (testbed.Testbed, error) {
	return &bed{spec: s, number: byte(l.opened.Add(1)), closed: l.closed}, nil
}

// bed is one testbed: the client is on the first node, a server on the second.
type bed struct {
	spec   testbed.Spec
	number byte
	closed *atomic.Int64
}

func (b *bed) Spec() testbed.Spec                 { return b.spec }
func (b *bed) Pods() []testbed.Pod                { return []testbed.Pod{pod{b, 1}, pod{b, 2}} }
func (b *bed) Swap(context.Context, string) error { return errors.ErrUnsupported }
func (b *bed) Instruments() testbed.Instruments   { return testbed.Instruments{} }
func (b *bed) Close() error                       { b.closed.Add(1); return nil }

func (b *bed) Endpoint(_, to testbed.Pod, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(to.Address(), port)
}

func (b *bed) Links(context.Context) ([]result.Link, error)       { return nil, nil }
func (b *bed) Sysctls(context.Context) (map[string]string, error) { return map[string]string{}, nil }

type pod struct {
	bed  *bed
	node byte
}

func (p pod) Name() string        { return "pod" + string('0'+p.node) }
func (p pod) Node() string        { return "node" + string('0'+p.node) }
func (p pod) Address() netip.Addr { return netip.AddrFrom4([4]byte{127, 77, p.bed.number, p.node}) }
func (p pod) Ports() (first, last uint16) {
	// A server listens on all addresses, so no two testbeds can have the same ports.
	first = 21000 + 100*uint16(p.bed.number)
	return first, first + 99
}

func (p pod) Start(_ context.Context, c testbed.Command) (testbed.Process, error) {
	return testbedtest.StartLocal(c, nil)
}

// quiet shows nothing.
type quiet struct{}

func (quiet) Update(experiment.Status) {}
func (quiet) Counted(int, int)         {}
func (quiet) Stop()                    {}

// onLoopback is a session of a small study.
func onLoopback(t *testing.T, networks ...string) (*session.Session, loopback) {
	t.Helper()
	l := loopback{&atomic.Int64{}, &atomic.Int64{}}
	return &session.Session{
		Study: &study.Study{
			Name: "small", Baseline: networks[0], Networks: networks, Placement: []result.Placement{result.CrossNode},
			Testbed:   study.Testbed{Kind: "loopback", Nodes: 2, Pods: 1, Link: study.Link{MTU: 1500}},
			Workloads: []study.Workload{{Name: "tcp-rr"}},
			Design: study.Design{
				Burst: 2 * time.Millisecond, Builds: 6, Rounds: 3, Confidence: 0.95, Margin: 0.02, TimeBudget: time.Minute, Seed: 42,
			},
		},
		Provider: l, Workloads: catalogue.Workloads(), Judge: words.NewJudge(catalogue.Workloads()), Progress: quiet{},
		Builds: 2, Location: session.Location{Out: filepath.Join(t.TempDir(), "run"), Warn: func(err error) { t.Error(err) }},
	}, l
}

// A provider that this project has never seen runs a whole study to a run folder, resumed and followed up, through the session that
// all others use.
func TestAnyProviderRunsAStudy(t *testing.T) {
	s, l := onLoopback(t, "first", "second", "third")
	s.Notes = []string{"said by the caller"}
	var followed session.Measured
	s.Then = append(s.Then, func(_ context.Context, m session.Measured) error { followed = m; return nil })
	run, folder, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := folder.Dir()
	if dir != s.Out || followed.Folder != folder || run.Testbed != "loopback" || !slices.Contains(run.Notes, "said by the caller") {
		t.Errorf("run of testbed %s in %s, followed up in %s, with notes %q", run.Testbed, dir, followed.Folder.Dir(), run.Notes)
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
	trials, err := result.LoadTrials(dir)
	if err != nil || len(trials.Trials) != 6 || len(run.Deltas) == 0 {
		t.Errorf("%d trials, %d deltas: %v", len(trials.Trials), len(run.Deltas), err)
	}
	for _, trial := range trials.Trials {
		if trial.Failed != "" {
			t.Errorf("%s failed: %s", trial.ID(), trial.Failed)
		}
	}
	again, _ := onLoopback(t, "first", "second", "third")
	again.Builds, again.Resume = 3, dir
	if _, folder, err = again.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
	if trials, err = result.LoadTrials(dir); err != nil || len(trials.Trials) != 9 {
		t.Errorf("%d trials after it was resumed: %v", len(trials.Trials), err)
	}
	// The time that it is given further need hold another build alone; less is refused, and what would do is said.
	again, _ = onLoopback(t, "first", "second", "third")
	again.Builds, again.Resume, again.Study.Design.TimeBudget = 0, dir, time.Millisecond
	_, _, err = again.Run(t.Context())
	var short *plan.BudgetError
	if !session.IsInput(err) || !errors.As(err, &short) || short.Cells != 3 || short.Rounds != 3 || short.Builds != 0 {
		t.Fatalf("a run that goes on for a millisecond: %v", err)
	}
	again.Study.Design.TimeBudget = short.Least
	if _, folder, err = again.Run(t.Context()); err != nil {
		t.Fatalf("in the time that it was said to take: %v", err)
	}
	if err := folder.Close(); err != nil {
		t.Error(err)
	}
	if trials, err = result.LoadTrials(dir); err != nil || len(trials.Trials) < 12 {
		t.Errorf("%d trials after it went on for %v: %v", len(trials.Trials), short.Least, err)
	}
	if l.opened.Load() == 0 || l.opened.Load() != l.closed.Load() {
		t.Errorf("%d testbeds were opened and %d closed", l.opened.Load(), l.closed.Load())
	}
}

// What can't be as it was asked for is told from what failed, and makes no folder.
func TestRefusedSessions(t *testing.T) {
	s, _ := onLoopback(t, "third")
	if _, folder, err := s.Run(t.Context()); !errors.Is(err, record.ErrNothing) || folder != nil {
		t.Errorf("nothing to measure: %v, folder %v", err, folder)
	}
	s, _ = onLoopback(t, "first", "second")
	s.Study.Design.TimeBudget = time.Millisecond
	if _, folder, err := s.Run(t.Context()); !session.IsInput(err) || folder != nil {
		t.Errorf("no time: %v, folder %v", err, folder)
	}
	if _, err := os.Stat(s.Out); !os.IsNotExist(err) {
		t.Errorf("a folder was made: %v", err)
	}
	s, _ = onLoopback(t, "first", "second")
	s.Out = t.TempDir()
	if err := os.WriteFile(filepath.Join(s.Out, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, folder, err := s.Run(t.Context()); !session.IsInput(err) || folder != nil {
		t.Errorf("a folder with something in it: %v, folder %v", err, folder)
	}
}
