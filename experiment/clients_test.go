package experiment_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"netdelta/engine"
	"netdelta/internal/latency"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
)

// exchanges are what each of many clients does in a burst, however long it is, and manyClients how many there are.
const (
	exchanges   = 100
	manyClients = 3
)

// many is a workload that is served by a cluster of two pods, to several clients.
func many() workload.Workload {
	w := echoing("many")
	w.Demand = func(result.Params) workload.Demand {
		return workload.Demand{
			// They may begin four tenths of a second apart.
			Programs: shell(), Opaque: true, Burst: 2 * time.Second, Memory: unit.MiB, Clients: manyClients,
			Cluster: &workload.Cluster{Key: "many", Pods: 2, Serve: serveFleet, Dial: func(_ context.Context, _ result.Params, at workload.Member) (engine.Client, error) {
				c, err := dialEcho(netip.AddrPortFrom(at.Peers[0], fleetPort))
				return &countingClient{echoClient: c}, err
			}},
		}
	}
	return w
}

// countingClient makes so many round trips in each burst.
type countingClient struct {
	*echoClient
	tally engine.Tally
}

func (c *countingClient) Burst(spec engine.BurstSpec) (engine.Burst, error) {
	c.tally.Settle(spec.DropLast)
	b := engine.Burst{Start: time.Now()}
	var all []time.Duration
	for range exchanges {
		took, err := c.exchange(order, 10*time.Second)
		if err != nil {
			return b, err
		}
		all = append(all, took)
	}
	b.Duration, b.Transactions, b.Bytes, b.Moved, b.Work = time.Since(b.Start), exchanges, 128*exchanges, 128*exchanges, exchanges
	b.Span, b.Throughput = b.Duration, float64(b.Bytes)*8/b.Duration.Seconds()
	c.tally.Take(b, engine.More{Latencies: func(h *latency.Histogram) {
		for _, took := range all {
			h.Record(took.Nanoseconds(), 1)
		}
	}})
	return b, nil
}

func (c *countingClient) Collect(drop bool) (engine.Totals, error) { return c.tally.Collect(drop) }

// Clients in several pods, on nodes of their own, make one burst together: what all of them did is in it, and each way was proved.
func TestClientsInSeveralPods(t *testing.T) {
	t.Parallel()
	c := setUp(t, served("many"), 2, nil)
	if c.Testbed.Nodes != 2+manyClients {
		t.Errorf("on %d nodes", c.Testbed.Nodes)
	}
	mustRun(t, c)
	for _, tr := range journal(t, c) {
		if tr.Failed != "" || tr.Path == nil || !tr.Path.OK || tr.Path.Payload != manyClients*exchanges*128 {
			t.Errorf("%s: failed %q, path %+v", tr.ID(), tr.Failed, tr.Path)
			continue
		}
		if len(tr.Clients) != manyClients || slices.ContainsFunc(tr.Clients, func(c result.ClientRate) bool { return c.Node == "" || c.Rate <= 0 }) {
			t.Errorf("%s: its clients did %+v", tr.ID(), tr.Clients)
		}
		kept := int64(0)
		for i, n := range tr.Bursts.Transactions {
			if n != manyClients*exchanges || tr.Bursts.P99[i] < tr.Bursts.P50[i] || tr.Bursts.P50[i] <= 0 {
				t.Errorf("%s: a burst of %d transactions, p50 %v, p99 %v", tr.ID(), n, tr.Bursts.P50[i], tr.Bursts.P99[i])
			}
			if tr.Bursts.Disturbed[i] == "" {
				kept += n
			}
		}
		h, err := result.MergeHistograms(tr.Histogram)
		if err != nil || h.TotalCount() != kept || tr.Transactions != kept {
			t.Errorf("%s: of %d transactions the histogram has %d, the totals %d, %v", tr.ID(), kept, h.TotalCount(), tr.Transactions, err)
		}
	}
}
