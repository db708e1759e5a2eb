package oltp_test

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"netdelta/engine"
	"netdelta/internal/require"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/oltp"
)

// TestCluster kills a node while it joins, which begins again, has networks swapped beneath the cluster while sysbench runs, holds what bursts
// yield against itself, and ends the agents.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := laid(t, testbed.Spec{Network: "host"})
	began := time.Now()
	five := result.OwnOf("tables", 5, "rows", 30_000) // sysbench fails where one is missing
	killed := make(chan error, 1)
	go func() { killed <- c.killJoining(2) }()
	if err := errors.Join(c.serve(t.Context(), result.Params{Own: five}), <-killed); err != nil {
		t.Fatal(err)
	}
	t.Logf("three nodes after %v", time.Since(began))
	c.dial(t, result.Params{Connections: 4, Own: five})
	memory := unit.Bytes(0)
	for pod := range nodes {
		h := c.health(t, pod)
		if len(h.Services) != 1 || h.Services[0].Name != fmt.Sprintf("mariadbd.%d", pod) || !strings.Contains(h.Services[0].Version, "MariaDB") {
			t.Errorf("node %d: %+v", pod, h)
		}
		memory += h.Services[0].Memory
	}
	if most := oltp.Workload().Demands(result.Params{Own: five}).Memory; memory == 0 || memory > most {
		t.Errorf("the databases take %v, want at most %v", memory, most)
	}
	t.Logf("the databases take %v", memory)
	c.taken(t)
	var sum engine.Burst
	for _, network := range []string{"vxlan", "routed", "host"} {
		b := c.swapped(t, network)
		sum.Transactions += b.Transactions
		sum.Errors += b.Errors
		c.well(t)
	}
	c.totals(t, sum)
	if again := c.collect(t); again.Transactions != 0 || again.Histogram != "" || again.Replication != nil {
		t.Errorf("a second collect: %+v", again)
	}
	for _, a := range c.agents {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// taken starts a database where one is that has its ports.
func (c *cluster) taken(t *testing.T) {
	t.Helper()
	_, err := c.agents[1].ServeCluster(t.Context(), "oltp", result.Params{}, workload.Member{Pod: 1, Peers: c.peers, CPU: -1}, patience)
	if err == nil || !strings.Contains(err.Error(), "node 1") || !strings.Contains(err.Error(), "3306") || !strings.Contains(err.Error(), unix.EADDRINUSE.Error()) {
		t.Errorf("a second database in one pod: %v", err)
	}
}

// swapped is a burst in whose midst the network is swapped.
func (c *cluster) swapped(t *testing.T, network string) engine.Burst {
	t.Helper()
	before := c.Spec().Network
	var b engine.Burst
	err := errors.New("not tried")
	for range 3 {
		swap := make(chan error, 1)
		time.AfterFunc(1500*time.Millisecond, func() { swap <- c.Swap(t.Context(), network) })
		b, err = c.agents[nodes].Burst(t.Context(), c.session, engine.BurstSpec{Duration: 3 * time.Second, Warmup: 100 * time.Millisecond, Deadline: patience})
		if err := <-swap; err != nil {
			t.Fatal(err)
		}
		if err == nil {
			break
		}
		// On a busy machine the network may be gone when sysbench connects, not when it is connected.
		t.Logf("again: %v", err)
		if err := c.Swap(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if b.Transactions < 1 || b.Duration < 2900*time.Millisecond || b.Span < b.Duration || time.Since(b.Start) > patience || b.Work <= b.Transactions {
		t.Errorf("%s: %+v", network, b)
	}
	if !slices.IsSorted([]float64{1, b.Min, b.P50, b.P90, b.P99, b.Max}) || b.Mean < b.Min {
		t.Errorf("%s: latencies are not in order: %+v", network, b)
	}
	t.Logf("%.0f/s with a swap to %s in their midst, longest %v", float64(b.Transactions)/b.Duration.Seconds(), network, time.Duration(b.Max))
	return b
}

// totals holds what is collected against the sum of the bursts.
func (c *cluster) totals(t *testing.T, sum engine.Burst) {
	t.Helper()
	totals := c.collect(t)
	if totals.Transactions != sum.Transactions || totals.Errors != sum.Errors {
		t.Errorf("totals %+v, want %d transactions and %d errors", totals, sum.Transactions, sum.Errors)
	}
	h, err := hdrhistogram.Decode([]byte(totals.Histogram))
	if err != nil || h.TotalCount() != sum.Transactions {
		t.Errorf("the histogram has %d of %d transactions, %v", h.TotalCount(), sum.Transactions, err)
	}
	var series int64
	last := math.Inf(-1)
	for _, s := range totals.Series {
		if s.At <= last || s.Span <= 0 {
			t.Errorf("the series is not in order: %+v", totals.Series)
		}
		last, series = s.At, series+s.Transactions
	}
	if series != sum.Transactions {
		t.Errorf("the series has %d of %d transactions", series, sum.Transactions)
	}
	r := totals.Replication
	if r == nil || r.Samples < 1 || r.Min <= 0 || r.Mean < r.Min || r.Max < r.Mean {
		t.Errorf("replication %+v", r)
	}
	t.Logf("replication %+v", r)
}

// holder is the variable of the environment by which the test's program is told to hold a cluster.
const holder = "NETDELTA_OLTP_TEST_HOLD"

// TestKilled kills a program that holds a cluster over IPv6, and sees that no database stays.
func TestKilled(t *testing.T) {
	t.Parallel()
	if os.Getenv(holder) != "" {
		c := start(t, testbed.Spec{Network: "vxlan", Family: result.IPv6}, result.Params{Own: result.OwnOf("mix", "point_select")})
		b := c.burst(t, engine.BurstSpec{Transactions: 500})
		fmt.Printf("holding %d", b.Transactions)
		for pod := range nodes {
			fmt.Printf(" %d", c.daemonOf(t, pod))
		}
		fmt.Println()
		select {}
	}
	needed(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), holder+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	var transactions int
	var pids [nodes]int
	if n, errScan := fmt.Sscanf(said, "holding %d %d %d %d", &transactions, &pids[0], &pids[1], &pids[2]); n != 1+nodes || transactions != 500 {
		t.Fatalf("the other process said %q: %v, %v", said, err, errScan)
	}
	for _, pid := range pids {
		require.Eventually(t, recovery, fmt.Sprintf("process %d is no database any more", pid), func() bool {
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			return err != nil || string(comm) != "mariadbd\n"
		})
	}
}
