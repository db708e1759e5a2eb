package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/tool/fio"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become([]workload.Workload{blocks()})
	}
	os.Exit(leak.Main(m))
}

// blocks is a workload that reads and writes blocks of the cluster.
func blocks() workload.Workload {
	return workload.Workload{Name: "blocks", Demand: func(result.Params) workload.Demand {
		return workload.Demand{Cluster: &workload.Cluster{Key: Key(OSDs), Pods: OSDs, Serve: serve, Dial: dial}}
	}}
}

func serve(ctx context.Context, _ result.Params, at workload.Member) (engine.Server, error) {
	return Serve(ctx, at)
}

// client runs fio for each burst.
type client struct {
	home   *daemon.Sandbox
	target fio.Target
	params result.Params
}

func dial(ctx context.Context, p result.Params, at workload.Member) (engine.Client, error) {
	h, err := daemon.Open(unit.MiB)
	if err != nil {
		return nil, err
	}
	c := &client{home: h, params: p}
	if c.target, err = Attach(ctx, h, at); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return c, nil
}

func (c *client) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	out, err := c.home.Run(context.Background(), daemon.Spec{Path: fio.Program, Env: c.target.Env, Args: fio.Args(fio.Job{
		Target: c.target, Operation: c.params.Own.Word("operation"), Block: c.params.Own.Size("block"), Depth: c.params.Own.Count("depth"), Clients: 1,
		Warmup: spec.Warmup, Duration: spec.Duration,
	})})
	if err != nil {
		return engine.Burst{}, err
	}
	report, err := fio.Parse(out)
	if err != nil {
		return engine.Burst{}, err
	}
	d := report.Jobs[0].Done()
	return engine.Burst{Transactions: d.Operations, Duration: d.Duration, P50: d.Latency.Quantile(0.5), Errors: report.Jobs[0].Errors}, nil
}

func (c *client) Collect(bool) (engine.Totals, error) { return engine.Totals{}, nil }
func (c *client) Close() error                        { return c.home.Close() }

// smallReads are one block at a time, each waited for.
func smallReads() result.Params {
	return result.Params{Own: result.OwnOf("operation", "randread", "block", 4*unit.KiB, "depth", 1)}
}

// A cluster outlives the networks beneath it, daemons that are killed, and says what ails it. All in one test: a cluster takes
// its time to start.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := launch(t, testbed.Spec{Network: "host"}, OSDs)
	c.well(t)
	t.Run("services", func(t *testing.T) { services(t, c) })
	t.Run("swaps", func(t *testing.T) { swaps(t, c) })
	t.Run("an OSD hangs", func(t *testing.T) { hangs(t, c, 1) })
	t.Run("the monitor dies", func(t *testing.T) { dies(t, c, 0, "ceph-mon", "ceph-mon.a: signal: killed") })
	t.Run("memory is full", func(t *testing.T) { fills(t, c, 2) })
	t.Run("the run is killed", func(t *testing.T) { abandoned(t, c, 0) })
}

// services sees that each daemon says what it is, and that all together stay within what was announced.
func services(t *testing.T, c *cluster) {
	var names []string
	var sum unit.Bytes
	for pod := range OSDs {
		for _, s := range c.health(t, pod).Services {
			names, sum = append(names, s.Name), sum+s.Memory
			if !strings.Contains(s.Version, ".") || s.Memory < unit.MiB {
				t.Errorf("%+v", s)
			}
		}
	}
	if want := []string{"ceph-mon.a", "ceph-osd.0", "ceph-osd.1", "ceph-osd.2"}; !slices.Equal(names, want) {
		t.Errorf("services %q, want %q", names, want)
	}
	if sum > processes {
		t.Errorf("the daemons take %v, more than %v", sum, processes)
	}
	t.Logf("the daemons take %v", sum)
}

// swaps replaces the network beneath the cluster, which stays well, and serves over each.
func swaps(t *testing.T, c *cluster) {
	for _, name := range []string{"vxlan", "routed", "host"} {
		if err := c.testbed.Swap(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		c.well(t)
		b := c.burst(t, smallReads())
		t.Logf("%s: %.0f reads/s, p50 %v", name, float64(b.Transactions)/b.Duration.Seconds(), time.Duration(b.P50))
	}
	for _, operation := range []string{"randwrite", "read", "write"} {
		c.burst(t, result.Params{Own: result.OwnOf("operation", operation, "block", 64*unit.KiB, "depth", 4)})
	}
}

// dies kills a daemon, which is named, and started again.
func dies(t *testing.T, c *cluster, pod int, program, want string) {
	if err := syscall.Kill(c.pid(t, pod, program), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h := c.ended(t, pod)
	if !strings.HasPrefix(h.Unwell, "ceph not healthy: "+want) {
		t.Errorf("killed %s: %q", program, h.Unwell)
	}
	c.restart(t, pod)
	c.well(t)
	c.burst(t, smallReads())
}

// hangs stops an OSD, which is named, and ended and started again.
func hangs(t *testing.T, c *cluster, pod int) {
	require.Stop(t, 10*time.Second, c.pid(t, pod, "ceph-osd"))
	h, err := c.pods[pod].Health(t.Context(), c.sessions[pod], time.Second)
	if want := fmt.Sprintf("ask ceph-osd.%d for status by its admin socket", pod); err != nil || h.Ended || !strings.Contains(h.Unwell, want) {
		t.Errorf("an OSD that hangs: %+v, %v; want %s", h, err, want)
	}
	c.restart(t, pod)
	c.well(t)
	c.burst(t, smallReads())
}

// fills takes away the memory in which an OSD keeps its blocks; when that is given back, the cluster can be fixed.
func fills(t *testing.T, c *cluster, pod int) {
	filler := fmt.Sprintf("/proc/%d/root%s/filler", c.pid(t, pod, "ceph-osd"), daemon.Folder)
	held, err := os.Open(filepath.Dir(filler)) // the process by which it is found will end
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	f, err := os.Create(filler)
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, unit.MiB))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	session, err := c.client.DialCluster(t.Context(), "blocks", result.Params{Own: result.OwnOf("operation", "randwrite", "block", 64*unit.KiB, "depth", 8)}, c.place, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	writes := make(chan error, 1)
	go func() {
		_, err := c.client.Burst(t.Context(), session, engine.BurstSpec{Duration: time.Second, Deadline: time.Minute})
		writes <- err
	}()
	if h := c.ended(t, pod); !strings.Contains(h.Unwell, "No space left on device") {
		t.Errorf("full memory: %q", h.Unwell)
	}
	if err := os.Remove(fmt.Sprintf("/proc/self/fd/%d/filler", held.Fd())); err != nil {
		t.Fatal(err)
	}
	c.restart(t, pod)
	if err := <-writes; err != nil {
		t.Errorf("writes that wait for an OSD go on when it is back: %v", err)
	}
	c.well(t)
}

// abandoned kills the process that started a pod's daemons: they end with it.
func abandoned(t *testing.T, c *cluster, pod int) {
	pid := c.pid(t, pod, "ceph-osd")
	if err := syscall.Kill(c.pods[pod].PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	require.Ended(t, time.Minute, pid)
}

// A cluster speaks IPv6 as well, and may have a single OSD.
func TestIPv6(t *testing.T) {
	t.Parallel()
	c := launch(t, testbed.Spec{Network: "vxlan", Family: result.IPv6}, 1)
	c.well(t)
	c.burst(t, smallReads())
}
