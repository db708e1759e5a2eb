package oltp_test

import (
	"testing"
	"time"

	"netdelta/result"
	"netdelta/testbed"
	"netdelta/workload"
)

func TestCluster(t *testing.T) {
	c := laid(t, testbed.Spec{Network: "host"})
	began := time.Now()
	if err := c.serve(t.Context(), result.Params{}); err != nil {
		t.Fatal(err)
	}
	t.Logf("three nodes after %v", time.Since(began))
	c.dial(t, result.Params{})
	for pod := range nodes {
		t.Logf("%+v", c.health(t, pod))
	}
	for _, network := range []string{"host", "vxlan", "routed"} {
		if err := c.Swap(t.Context(), network); err != nil {
			t.Fatal(err)
		}
		c.well(t)
		b := c.burst(t, workload.BurstSpec{Duration: 2 * time.Second, Warmup: time.Second})
		t.Logf("%s: %.0f/s %+v", network, float64(b.Transactions)/b.Duration.Seconds(), b)
	}
	totals := c.collect(t)
	totals.Histogram = ""
	t.Logf("%+v %+v", totals, totals.Replication)
}
