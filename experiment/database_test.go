package experiment_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"netdelta/experiment"
	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload"
)

// transactions is a study of a database over two networks, of a length that finds what is broken and no more.
func transactions(t *testing.T, suspect string) *study.Study {
	t.Helper()
	for _, program := range []string{"mariadbd", "sysbench", "nft"} {
		require.Tool(t, program)
	}
	s := small([]string{"host", suspect}, result.CrossNode)
	s.Workloads = []study.Workload{{Name: "oltp"}}
	s.Design.Rounds, s.Design.Blocks = 1, 2
	return s
}

// A database whose network silently takes another link between two nodes is named with the link, and enters no delta, while its
// transactions go on as if nothing was.
func TestMisroutedDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	c := setUpOn(t, astray(t), transactions(t, "routed"), 2, nil)
	run := mustRun(t, c)
	wrong := 0
	for _, tr := range journal(t, c) {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
			continue
		}
		if tr.Path == nil {
			t.Errorf("%s has no proof of its path", tr.ID())
			continue
		}
		if astray := strings.HasPrefix(tr.Cell, "routed/"); astray == tr.Path.OK {
			t.Errorf("%s: proved is %v: %+v", tr.ID(), tr.Path.OK, tr.Path)
		} else if astray {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("no trial went astray")
	}
	for _, d := range run.Deltas {
		if d.Network == "routed" {
			t.Errorf("there is a delta of %s: %s %.2f", d.Cell, d.Metric, d.Ratio)
		}
	}
	named := false
	for _, check := range run.Checks {
		named = named || check.Check == insight.CheckPath && !check.OK && strings.Contains(check.Observed, "eth1 carried")
	}
	if !named {
		t.Errorf("the other link is not named in %+v", run.Checks)
	}
}

// Databases with other tables take the same ports in the same pods: which can't be measured together is said before anything is.
func TestDatabasesOfOtherTablesAreRefused(t *testing.T) {
	t.Parallel()
	s := transactions(t, "bridge")
	s.Workloads[0].Levels = study.Levels{"rows": {25_000, 30_000}}
	s.Parameters = result.Parameters(workload.Parameters(workloads())...)
	p, err := experiment.Prepare(t.Context(), s, lab.NewDriver(network.Catalogue()), workloads())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Cells {
		if other := c.Params.Own.Count("rows") == 30_000; other != strings.Contains(c.Unsupported, "both take port 3306") {
			t.Errorf("%s is unsupported: %q", c.ID, c.Unsupported)
		}
	}
}

// troubledDriver opens labs in which something befalls the pods each time they are swapped onto one network.
type troubledDriver struct {
	testbed.Provider
	network string
	befall  func(context.Context, []testbed.Pod) (calm func() error, err error)
}

func (d troubledDriver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &troubledBed{Testbed: tb.(*lab.Testbed), driver: d, calm: func() error { return nil }}, nil
}

// troubledBed is such a lab. calm ends what befalls it.
type troubledBed struct {
	*lab.Testbed
	driver troubledDriver
	calm   func() error
}

func (b *troubledBed) Swap(ctx context.Context, network string) error {
	err := errors.Join(b.calm(), b.Testbed.Swap(ctx, network))
	b.calm = func() error { return nil }
	if err != nil || network != b.driver.network {
		return err
	}
	calm, err := b.driver.befall(ctx, b.Pods())
	if err == nil {
		b.calm = calm
	}
	return err
}

func (b *troubledBed) Close() error { return errors.Join(b.calm(), b.Testbed.Close()) }

// elsewhere are the pods on other nodes than the client's, which is on the first.
func elsewhere(pods []testbed.Pod) []testbed.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p testbed.Pod) bool { return p.Node() == pods[0].Node() })
}

// stall returns what silences the pod that clients talk to for most of each pause, until it is calmed.
func stall(nft string) func(context.Context, []testbed.Pod) (func() error, error) {
	const silent, pause = 900 * time.Millisecond, 1300 * time.Millisecond
	return func(ctx context.Context, pods []testbed.Pod) (func() error, error) {
		served := elsewhere(pods)[0]
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan error, 1)
		go func() {
			for {
				select {
				case <-ctx.Done():
					done <- nil
					return
				case <-time.After(pause):
				}
				lift, err := probetest.Deafen(context.WithoutCancel(ctx), served, nft)
				if err == nil {
					time.Sleep(silent)
					err = lift()
				}
				if err != nil {
					done <- err
					return
				}
			}
		}()
		return func() error {
			cancel()
			return <-done
		}, nil
	}
}

// A database whose network is there on average, and lets nothing through now and then, is named with the times.
func TestStallingDatabaseIsNamed(t *testing.T) {
	t.Parallel()
	s := transactions(t, "vxlan")
	c := setUpOn(t, network.Catalogue(), s, 2, nil)
	c.Driver = troubledDriver{c.Driver, "vxlan", stall(require.Tool(t, "nft"))}
	run := mustRun(t, c)
	for _, check := range run.Checks {
		if check.Check == insight.CheckStalls && strings.HasPrefix(check.Trial, "vxlan/") {
			t.Log(check.Trial, check.Observed)
			return
		}
	}
	for _, tr := range journal(t, c) {
		t.Logf("%s failed %q, bursts %+v", tr.ID(), tr.Failed, tr.Bursts)
	}
	t.Errorf("no stall of vxlan is named: %+v, %q", run.Checks, run.Notes)
}

// A database whose nodes a swap keeps apart for so long that none has a quorum is fixed, what was asked of it meanwhile counts
// for nothing, and the run goes on.
func TestDatabaseThatLosesItsQuorum(t *testing.T) {
	t.Parallel()
	// A node is out after 16 s of silence, by the servers' settings; clients give up after 30 s.
	const apart = 40 * time.Second
	nft := require.Tool(t, "nft")
	lost := false
	s := transactions(t, "vxlan")
	s.Design.TimeBudget = 10 * time.Minute
	c := setUpOn(t, network.Catalogue(), s, 2, nil)
	c.Driver = troubledDriver{c.Driver, "vxlan", func(ctx context.Context, pods []testbed.Pod) (func() error, error) {
		if lost {
			return func() error { return nil }, nil
		}
		lost = true
		var lifts []func() error
		for _, p := range elsewhere(pods) {
			lift, err := probetest.Deafen(context.WithoutCancel(ctx), p, nft)
			if err != nil {
				return nil, err
			}
			lifts = append(lifts, lift)
		}
		done := make(chan error, 1)
		go func() {
			time.Sleep(apart)
			var failed []error
			for _, lift := range lifts {
				failed = append(failed, lift())
			}
			done <- errors.Join(failed...)
		}()
		return func() error { return <-done }, nil
	}}
	run := mustRun(t, c)
	trials := journal(t, c)
	named := slices.ContainsFunc(run.Notes, func(n string) bool { return strings.Contains(n, "quorum") })
	for _, tr := range trials {
		if tr.Failed != "" {
			t.Errorf("%s failed: %s", tr.ID(), tr.Failed)
		}
		for _, why := range tr.Bursts.Disturbed {
			named = named || strings.Contains(why, "quorum")
		}
		t.Logf("%s: %q %+v", tr.ID(), tr.Bursts.Disturbed, tr.Services)
	}
	if !named {
		t.Errorf("the lost quorum is not named in %q", run.Notes)
	}
	if last := trials[len(trials)-1]; last.Build != 1 || !slices.Contains(last.Bursts.Disturbed, "") {
		t.Errorf("the database did not go on: the last trial is %s, %q", last.ID(), last.Bursts.Disturbed)
	}
}
