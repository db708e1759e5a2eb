package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"netdelta/experiment/study"
	"netdelta/insight"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/probe/probetest"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/lab"
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

// stallingDriver opens labs in which one network lets nothing through to the pod that clients talk to, again and again.
type stallingDriver struct {
	testbed.Driver
	network, nft string
}

func (d stallingDriver) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Driver.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &stallingBed{Testbed: tb.(*lab.Testbed), driver: d, calm: func() error { return nil }}, nil
}

// stallingBed is such a lab. calm ends what makes it stall.
type stallingBed struct {
	*lab.Testbed
	driver stallingDriver
	calm   func() error
}

func (b *stallingBed) Swap(ctx context.Context, network string) error {
	err := errors.Join(b.calm(), b.Testbed.Swap(ctx, network))
	b.calm = func() error { return nil }
	if err == nil && network == b.driver.network {
		b.calm = b.stall(ctx)
	}
	return err
}

func (b *stallingBed) Close() error { return errors.Join(b.calm(), b.Testbed.Close()) }

// stall silences the pod that clients talk to for most of each pause, until the function that it returns is called.
func (b *stallingBed) stall(ctx context.Context) func() error {
	const silent, pause = 900 * time.Millisecond, 1300 * time.Millisecond
	pods := b.Pods()
	var served testbed.Pod
	for _, p := range pods {
		if p.Node() != pods[0].Node() {
			served = p
			break
		}
	}
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
			lift, err := probetest.Deafen(context.WithoutCancel(ctx), served, b.driver.nft)
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
	}
}

// A database whose network is there on average, and lets nothing through now and then, is named with the times.
func TestStallingDatabaseIsNamed(t *testing.T) {
	s := transactions(t, "vxlan")
	c := setUpOn(t, network.Catalogue(), s, 2, nil)
	c.Driver = stallingDriver{c.Driver, "vxlan", require.Tool(t, "nft")}
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
