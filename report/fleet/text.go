// Package fleet shows what fleets have measured, as tables for a terminal.
package fleet

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/fleet"
	"netdelta/insight"
	fleetinsight "netdelta/insight/fleet"
	"netdelta/internal/gather"
	"netdelta/report/ui"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// shownFailures is how many failures of a network are printed; the JSON has more.
const shownFailures = 5

// WriteText prints a report. It fails if w does.
func WriteText(w io.Writer, r fleetinsight.Report) error {
	return ui.Print(w, "the fleets", func(out ui.Text) {
		out.Put("%s against %s, %s, bursts of %v on %s\n\n", count(r.Clients, "client"), count(r.Servers, "server"), ui.Clean(r.Workload), r.Burst, ui.Clean(r.Testbed))
		writeNetworks(out, r)
		writeDeltas(out, r)
		for _, n := range r.Networks {
			writeStart(out, n)
		}
		for _, n := range r.Networks {
			writeFailures(out, n)
		}
	})
}

func writeNetworks(out ui.Text, r fleetinsight.Report) {
	table := ui.NewTable("network", "clients", "total", "for each", "p50", "p99", "p99.9", "fairness", "slowest client")
	for _, n := range r.Networks {
		if len(n.Bursts) == 0 {
			table.Row(name(n), 0, "nothing measured")
			continue
		}
		clients := n.Bursts[len(n.Bursts)-1].Clients
		total := median(n.Bursts, total(n))
		p50, p99, p999 := "-", "-", "-"
		if q := n.Latency; q != nil {
			p50, p99, p999 = ns(q.P50), ns(q.P99), ns(q.P999)
		}
		table.Row(name(n), clients, speed(n, total), speed(n, total/float64(clients)), p50, p99, p999, fmt.Sprintf("%.3f", fairness(n)), slowest(n))
	}
	out.Table(table)
}

// name of a network; the A/A control of the baseline is marked.
func name(n fleet.Network) string {
	if n.Role == result.RoleControl {
		return ui.Clean(n.Network) + " (A/A control)"
	}
	return ui.Clean(n.Network)
}

// total is what a network's bursts are compared by: transactions where their latencies are known, else payload.
func total(n fleet.Network) func(fleet.Burst) float64 {
	if n.Latency != nil {
		return func(v fleet.Burst) float64 { return v.Rate }
	}
	return func(v fleet.Burst) float64 { return v.Throughput }
}

// speed is a rate in the network's unit.
func speed(n fleet.Network, perSecond float64) string {
	if n.Latency == nil {
		return unit.BitsPerSecond(perSecond).String()
	}
	switch {
	case perSecond >= 1e6:
		return fmt.Sprintf("%.2fM/s", perSecond/1e6)
	case perSecond >= 1e4:
		return fmt.Sprintf("%.1fk/s", perSecond/1e3)
	}
	return fmt.Sprintf("%.0f/s", perSecond)
}

func slowest(n fleet.Network) string {
	c := n.Slowest
	if c == nil {
		return "-"
	}
	rate := c.Throughput
	if n.Latency != nil {
		rate = c.Rate
	}
	return fmt.Sprintf("%s on %s, %s", ui.Clean(c.Pod), ui.Clean(c.Node), speed(n, rate))
}

// fairness is the median of the builds'.
func fairness(n fleet.Network) float64 {
	var all []float64
	for _, b := range n.Builds {
		if b.Clients > 0 {
			all = append(all, b.Fairness)
		}
	}
	return middle(all)
}

func median(bursts []fleet.Burst, of func(fleet.Burst) float64) float64 {
	all := gather.Each(bursts, of)
	return middle(all)
}

// middle is the upper median, 0 of nothing.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// writeDeltas prints one row for each network and metric, the null check first.
func writeDeltas(out ui.Text, r fleetinsight.Report) {
	if len(r.Deltas) == 0 {
		return
	}
	table := ui.NewTable("against "+r.Deltas[0].Baseline, "metric", "delta", "95% interval, %", "verdict")
	for i, d := range slices.Concat(r.Null, r.Deltas) {
		mark, delta, verdict := "", "-", d.Verdict
		if i < len(r.Null) {
			mark = " (A/A control)"
			if insight.Differs(d) {
				verdict = "null check failed"
			}
		}
		interval := fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
		if d.RatioLow != nil && d.RatioHigh != nil {
			interval = words.Interval(d)
		}
		if d.Ratio > 0 {
			delta = words.Change(d.Ratio, d) + "%"
		}
		if n := fleetinsight.Excluded(d); n > 0 {
			verdict += fmt.Sprintf("; %s left out, clients were missing", count(n, "round"))
		}
		table.Row(ui.Clean(d.Network)+mark, d.Metric, delta, interval, verdict)
	}
	out.Table(table)
	for _, c := range r.Checks {
		out.Put("A/A control: %s\n\n", ui.Clean(c.Observed))
	}
}

// writeStart says how long a network's fleet took to start, and how well its clients began together.
func writeStart(out ui.Text, n fleet.Network) {
	if len(n.Builds) == 0 || n.Late == nil {
		return
	}
	var pods, armed time.Duration
	for _, b := range n.Builds {
		pods, armed = max(pods, b.Pods), max(armed, b.Armed)
	}
	out.Put("%s: pods after %s, all clients armed after %s; they began %s after the common instant (p50; p99 %s, last %s), by clocks known to +-%s\n",
		name(n), unit.Duration(pods), unit.Duration(armed), ns(n.Late.P50), ns(n.Late.P99), ns(n.Late.Max), unit.Duration(n.ClockError))
}

func writeFailures(out ui.Text, n fleet.Network) {
	if n.Failed == 0 {
		return
	}
	out.Put("%s: %s failed; the others went on\n", name(n), count(n.Failed, "client or pod", "clients or pods"))
	for _, f := range n.Failures[:min(len(n.Failures), shownFailures)] {
		where := "build " + fmt.Sprint(f.Build+1)
		if f.Pod != "" {
			where += ", " + f.Pod
		}
		if f.Node != "" {
			where += " on " + f.Node
		}
		out.Put("  %s: %s\n", ui.Clean(where), ui.Clean(strings.Join(strings.Fields(f.Why), " ")))
	}
	if more := n.Failed - shownFailures; more > 0 {
		out.Put("  and %d more\n", more)
	}
}

// count is a number with its noun; without a plural of its own it takes an s.
func count(n int, noun string, plural ...string) string {
	if n == 1 {
		return "1 " + noun
	}
	if len(plural) > 0 {
		noun = plural[0]
	} else {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func ns(v float64) string { return unit.Duration(time.Duration(v)) }
