// Package oltp is the workload oltp: sysbench's transactions on a cluster of three databases, MariaDB with Galera, in which
// each write takes part only when all nodes have it. The client speaks to the first node.
package oltp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"time"

	"netdelta/engine"
	"netdelta/internal/daemon"
	"netdelta/internal/latency"
	"netdelta/network"
	"netdelta/result"
	"netdelta/unit"
	"netdelta/workload"
	"netdelta/workload/oltp/galera"
	"netdelta/workload/tool/sysbench"
)

// burst is the shortest that says something: sysbench counts in whole seconds.
const burst = 2 * time.Second

// defaultConnections is how many connections a client has when nothing else is said.
const defaultConnections = 8

// Workload is oltp.
func Workload() workload.Workload {
	return workload.Workload{
		Name:        "oltp",
		Protocol:    network.TCP,
		Summary:     "transactions on a MariaDB Galera cluster of three nodes, by sysbench",
		UsedBy:      "web shops and everything else that keeps its data in a replicated SQL database",
		Headline:    "rate",
		Metrics:     append([]workload.Metric{{Name: "rate", Unit: "1/s", Better: "higher"}}, workload.LatencyMetrics()[:6]...), // without throughput
		Defaults:    result.Params{Connections: defaultConnections, CPU: "any", Own: result.Own{}.Or(parameters())},
		Parameters:  parameters(),
		Check:       check,
		SourcePorts: func(result.Params) int { return 0 }, // they are the kernel's to choose
		Demand:      demand,
		Target:      targeted(),
	}
}

// parameters are those that the workload declares: what transactions consist of, in sysbench's words.
func parameters() []result.Parameter {
	return result.Declare(
		result.Parameter{
			Key: "mix", Kind: result.KindWord, Words: "read_write|point_select|update_index|write_only", Default: "read_write",
			Says: "What transactions of a database consist of.",
		},
		result.Parameter{Key: "tables", Kind: result.KindCount, Low: 1, High: mostTables, Label: "% tables", Says: "Tables that transactions choose among; 4 where it is left out."},
		result.Parameter{Key: "rows", Kind: result.KindCount, Low: leastRows, High: mostRows, Label: "% rows each", Says: "Rows of each table, in the memory of three nodes or in the database of a target; 25,000 where it is left out."},
		result.Parameter{
			Key: dataKey, Kind: result.KindWord, Words: fresh + "|" + kept + "|" + prepared, Unset: fresh, ID: "data=%", Label: "% data",
			Says: "Where the tables of a target come from: made and dropped by the run, made once and left to later runs, or prepared by sysbench before.",
		},
	)
}

// Bounds of the parameters.
const (
	mostTables = 64
	leastRows  = 100
	mostRows   = 100_000_000
)

// dataOf are the tables that parameters ask for.
func dataOf(p result.Params) galera.Data {
	return galera.Data{Tables: cmp.Or(p.Own.Count("tables"), galera.Usual().Tables), Rows: cmp.Or(p.Own.Count("rows"), galera.Usual().Rows)}
}

// demand is the same for all parameters with the same tables: they share one cluster.
func demand(p result.Params) workload.Demand {
	if p.Target != "" { // its programs are looked for in its pods
		return workload.Demand{Burst: burst, Opaque: true, Put: tablesOf(p).put()}
	}
	data := dataOf(p)
	return workload.Demand{
		Programs: galera.Programs(), Burst: burst, Opaque: true, Memory: data.Memory() + clientMemory,
		Cluster: &workload.Cluster{Key: data.Key(), Pods: galera.Nodes, Ports: []uint16{galera.Port}, Serve: serve, Dial: dial},
	}
}

// serve starts a node of the cluster.
func serve(ctx context.Context, p result.Params, at workload.Member) (engine.Server, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	return galera.Serve(ctx, at, dataOf(p))
}

// check returns an error that names the first parameter that is not usable, and what would be.
func check(p result.Params) error {
	if p.CPU != "" && p.CPU != "any" {
		return fmt.Errorf("oltp: cpu %q: a cluster of databases runs on any processor; leave it out", p.CPU)
	}
	if err := workload.CheckTarget(p, schemes()...); err != nil {
		return fmt.Errorf("oltp: %w", err)
	}
	if data := p.Own.Word(dataKey); data != "" && data != fresh && p.Target == "" {
		return fmt.Errorf("oltp: data %q is about the tables of a target, and netdelta's own databases begin with new ones: leave it out, or name a target", data)
	}
	return engine.Limits{Workload: "oltp", ConnectionsMost: galera.MaxConnections, Own: parameters(), Used: []string{"target"}}.Check(p)
}

// clientMemory is what the load generator takes at most.
const clientMemory = 64 * unit.MiB

// client loads a database by sysbench, which it starts for each burst.
type client struct {
	workload.ProgramClient
	cpus  []int
	run   sysbench.Run
	rate  float64       // transactions per second of the last run
	spent time.Duration // processor time of the burst's runs
	env   []string      // of the runs
	// node is the first node of netdelta's cluster; nil for a database of the user's own, which is asked for transactions alone.
	node *galera.Remote
	ask  asking
	data galera.Data
}

// clientHome is the size of the client's home, in which it writes nothing.
const clientHome = unit.MiB

// dial opens a client of netdelta's cluster.
func dial(ctx context.Context, p result.Params, at workload.Member) (engine.Client, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	if len(at.Peers) == 0 {
		return nil, errors.New("oltp: a client needs the address of a node")
	}
	home, err := daemon.Open(clientHome)
	if err != nil {
		return nil, fmt.Errorf("oltp: %w", err)
	}
	run := dataOf(p).Run()
	run.Server = netip.AddrPortFrom(at.Peers[0], cmp.Or(at.Port, galera.Port))
	node := &galera.Remote{Home: home, Address: run.Server}
	return newClient(ctx, p, home, "oltp: node 0 at "+run.Server.String(), at.CPU, &client{run: run, node: node, ask: node.Ask, data: dataOf(p)})
}

// newClient returns when a transaction on each of the client's connections has come back.
func newClient(ctx context.Context, p result.Params, home *daemon.Sandbox, name string, cpu int, c *client) (engine.Client, error) {
	c.cpus = daemon.Pin(cpu)
	c.run.Test = "oltp_" + p.Own.Or(parameters()).Word("mix")
	c.run.Threads = cmp.Or(p.Connections, defaultConnections)
	c.ProgramClient = workload.ProgramClient{Name: name, Home: home, Run: c.burst, Collected: c.collected, Resumes: true}
	run := c.run
	run.Events = int64(run.Threads)
	_, err := c.measure(ctx, run)
	if err == nil && c.node != nil {
		err = c.node.Clear(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), home.Close())
	}
	return c, nil
}

// measure is one run of sysbench.
func (c *client) measure(ctx context.Context, run sysbench.Run) (sysbench.Report, error) {
	ran, err := c.Home.Measure(ctx, daemon.Spec{Path: sysbench.Program, Args: run.Args(), Env: c.env, CPUs: c.cpus})
	if ctx.Err() != nil {
		return sysbench.Report{}, err
	}
	report, errParse := sysbench.Parse(ran.Output)
	var failed *sysbench.FailedError
	if err == nil || errors.As(errParse, &failed) {
		err = errParse // says why in fewer words
	}
	if err == nil {
		c.rate = float64(report.Transactions) / report.Time.Seconds()
		c.spent += ran.CPU
	}
	return report, err
}

func (c *client) burst(ctx context.Context, spec engine.BurstSpec) (b engine.Burst, m engine.More, err error) {
	if c.node != nil {
		if err := c.node.AwaitClear(ctx); err != nil {
			return b, m, err
		}
	}
	begin := time.Now()
	c.spent = 0
	run := c.run
	var warm sysbench.Report
	if spec.Warmup > 0 {
		// sysbench has no warm-up, and counts time in whole seconds: it is a run of its own, and ended by its transactions.
		run.Time, run.Events = spec.Warmup, max(int64(c.rate*spec.Warmup.Seconds()), int64(run.Threads))
		if warm, err = c.measure(ctx, run); err != nil {
			return b, m, err
		}
	}
	before, err := c.replication(ctx)
	if err != nil {
		return b, m, err
	}
	run.Time, run.Events = spec.Duration, spec.Transactions
	report, err := c.measure(ctx, run)
	if err != nil {
		return b, m, err
	}
	end := time.Now()
	after, err := c.replication(ctx)
	if err != nil {
		return b, m, err
	}
	b = describe(report)
	b.Start, b.Span = end.Add(-report.Time), end.Sub(begin)
	b.CPU, b.Work = c.spent, b.Transactions+warm.Transactions
	return b, more(report, between(before, after)), nil
}

// replication is what replication has taken at the first node so far; nil where there is none.
func (c *client) replication(ctx context.Context) (*result.Replication, error) {
	if c.node == nil {
		return nil, nil
	}
	return c.node.Replication(ctx)
}

// more is what a report says in addition to the figures of a burst.
func more(r sysbench.Report, replication *result.Replication) engine.More {
	return engine.More{
		Latencies: func(h *latency.Histogram) { r.Each(h.Record) },
		Series:    func(at float64) []result.Second { return series(r, at) },
		Add:       func(t *engine.Totals) { t.Replication = merge(t.Replication, replication) },
	}
}

// describe is a report as the figures of a burst.
func describe(r sysbench.Report) engine.Burst {
	return engine.Burst{
		Duration: r.Time, Transactions: r.Transactions, Errors: r.Errors + r.Reconnects,
		Min: r.Lowest(), P50: r.Quantile(0.5), P90: r.Quantile(0.9), P99: r.Quantile(0.99), Mean: r.Mean, Max: math.Max(r.Max, r.Quantile(1)),
	}
}

// collectTime is how long a node may take to begin anew, and its tables to be counted: more than mostCounted rows are not.
const (
	collectTime = 10 * time.Second
	mostCounted = 5_000_000
)

// collected counts the tables' rows and has the figures of replication cleared for the next trial.
func (c *client) collected(*engine.Totals) error {
	ctx, cancel := context.WithTimeout(context.Background(), collectTime)
	defer cancel()
	if c.node != nil {
		_ = c.node.Clear(ctx) // the next burst says that a node does not answer
	}
	if err := counted(ctx, c.data, c.ask); err != nil {
		return fmt.Errorf("look at its tables after they were used: %w", err)
	}
	return nil
}

// series cuts a run that begins at the given second of the trial into its seconds. They hold as many transactions as the run:
// sysbench rounds its seconds, and does not report the last one.
func series(r sysbench.Report, at float64) []result.Second {
	var points []result.Second
	var before int64
	for i, s := range r.Seconds {
		upTo := min(before+int64(math.Round(s.TPS)), r.Transactions)
		if float64(i+1) >= r.Time.Seconds() {
			upTo = r.Transactions
		}
		points = append(points, result.Second{At: at + float64(i), Span: 1, Transactions: upTo - before})
		before = upTo
	}
	rest := r.Time.Seconds() - float64(len(r.Seconds))
	switch {
	case before == r.Transactions:
	case rest > 0.1 || len(points) == 0:
		points = append(points, result.Second{At: at + float64(len(points)), Span: max(rest, 0), Transactions: r.Transactions - before})
	default: // the last transactions end a little after the last second
		points[len(points)-1].Transactions += r.Transactions - before
	}
	return points
}

// between is what replication took between two readings of its figures; nil where nothing was replicated. Its least and its
// greatest are those since the figures were cleared.
func between(before, after *result.Replication) *result.Replication {
	if before == nil || after == nil || after.Samples < before.Samples {
		return after
	}
	if after.Samples == before.Samples {
		return nil
	}
	sum := after.Mean.Seconds()*float64(after.Samples) - before.Mean.Seconds()*float64(before.Samples)
	r := *after
	r.Samples -= before.Samples
	r.Mean = min(max(time.Duration(sum/float64(r.Samples)*float64(time.Second)), r.Min), r.Max)
	return &r
}

// merge is what two spans of replication were together; either may be nil.
func merge(a, b *result.Replication) *result.Replication {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	all := a.Samples + b.Samples
	mean := (a.Mean.Seconds()*float64(a.Samples) + b.Mean.Seconds()*float64(b.Samples)) / float64(all)
	return &result.Replication{
		Min: min(a.Min, b.Min), Mean: time.Duration(mean * float64(time.Second)), Max: max(a.Max, b.Max), Samples: all,
	}
}
