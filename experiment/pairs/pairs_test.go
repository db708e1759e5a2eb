package pairs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"netdelta/agent"
	"netdelta/experiment/pairs"
	"netdelta/experiment/plan"
	"netdelta/experiment/record"
	insight "netdelta/insight/pairs"
	"netdelta/internal/leak"
	"netdelta/internal/require"
	"netdelta/network"
	"netdelta/stats"
	"netdelta/testbed"
	"netdelta/testbed/lab"
	"netdelta/workload"
	"netdelta/workload/catalogue"
)

// The test binary is its own agent.
func TestMain(m *testing.M) {
	if agent.Asked() {
		agent.Become(catalogue.Workloads())
	}
	os.Exit(leak.Main(m))
}

// burdened opens labs in which one pod's packets pass a long chain of rules.
type burdened struct {
	testbed.Provider
	nft string
	pod int
}

// rounds are few: builds scatter more, and what is looked for is many times as large.
const rounds = 4

// rules is how long the chain is: each packet is held against all of them.
const rules = 3000

func (d burdened) Open(ctx context.Context, spec testbed.Spec) (testbed.Testbed, error) {
	tb, err := d.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	var chain strings.Builder
	chain.WriteString("table inet burden {\n chain in { type filter hook input priority 0; policy accept;\n")
	for i := range rules {
		fmt.Fprintf(&chain, "  ip daddr 203.0.%d.%d drop\n", i/250, i%250)
	}
	chain.WriteString(" }\n}\n")
	p, err := tb.Pods()[d.pod].Start(ctx, testbed.Command{Path: d.nft, Args: []string{"-f", "-"}})
	if err == nil {
		_, err = io.WriteString(p, chain.String())
		err = errors.Join(err, p.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("burden a pod: %w", err), tb.Close())
	}
	return tb, nil
}

// run carries pairs out in memory.
func run(ctx context.Context, c pairs.Config) (pairs.Outcome, error) {
	rec, err := record.Conduct(ctx, c.Head(), nil, nil, c.Measure)
	if rec.Run.Ended == plan.EndedInterrupted {
		err = errors.Join(err, ctx.Err())
	}
	return pairs.Of(rec.Run, rec.Trials), err
}

func measure(t *testing.T, driver testbed.Provider, nodes, builds int) pairs.Outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	o, err := run(t.Context(), pairs.Config{
		Load:   record.Load{Program: agent.Program{Path: self}, Workload: w, Params: w.Defaults, Networks: []string{"bridge"}, Builds: builds, Burst: 10 * time.Millisecond, Warmup: time.Millisecond, Seed: 7},
		Driver: driver, Spec: testbed.Spec{Nodes: nodes}, Rounds: rounds,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A node whose packets pass a chain of rules is found among five, and no other is.
func TestBurdenedNodeIsFound(t *testing.T) {
	require.Namespaces(t)
	nft := require.Tool(t, "nft")
	const nodes, burden = 5, 3
	o := measure(t, burdened{lab.NewDriver(network.Catalogue()), nft, burden}, nodes, 6)
	n := o.Networks[0]
	if len(o.Nodes) != nodes || len(n.Pairs) != nodes*(nodes-1) || len(n.Failures) > 0 {
		t.Fatalf("nodes %v, %d pairs, failures %v", o.Nodes, len(n.Pairs), n.Failures)
	}
	for _, p := range n.Pairs {
		if len(p.Builds) != 6 || p.Builds[0].Bursts != rounds || p.Builds[0].Value <= 0 || p.Client == p.Server {
			t.Errorf("a pair of %+v", p)
		}
	}
	judged := insight.Judge(o, stats.Options{Margin: 0.1}).Judged[0]
	for i, node := range judged.Nodes {
		if want := i == burden; node.Odd != want {
			t.Errorf("node %s: odd %v, by %.2f [%v], p %v", node.Node, node.Odd, node.Ratio, node.Verdict, node.PAdjusted)
		}
	}
}

func TestFailures(t *testing.T) {
	require.Namespaces(t)
	w := workload.Find(catalogue.Workloads(), "tcp-rr")
	c := pairs.Config{
		Load:   record.Load{Program: agent.Program{Path: "/no/such/program"}, Workload: w, Params: w.Defaults, Networks: []string{"bridge"}, Builds: 1, Burst: time.Millisecond, Seed: 1},
		Driver: lab.NewDriver(network.Catalogue()), Spec: testbed.Spec{Nodes: 2}, Rounds: 1, Margin: 0.05,
	}
	if _, err := run(t.Context(), c); !errors.Is(err, record.ErrNothing) || !strings.Contains(err.Error(), "/no/such/program") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run(ctx, c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*pairs.Config){
		"name a network":  func(c *pairs.Config) { c.Networks = nil },
		"1 nodes":         func(c *pairs.Config) { c.Spec.Nodes = 1 },
		"0 builds":        func(c *pairs.Config) { c.Builds = 0 },
		"a share between": func(c *pairs.Config) { c.Margin = 1 },
		"bursts of 0s":    func(c *pairs.Config) { c.Burst = 0 },
		"workload oltp n": func(c *pairs.Config) { c.Workload = workload.Find(catalogue.Workloads(), "oltp") },
	} {
		bad := c
		spoil(&bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
