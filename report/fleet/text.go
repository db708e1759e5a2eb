// Package fleet shows what fleets have measured, as tables for a terminal.
package fleet

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"netdelta/experiment/fleet"
	insight "netdelta/insight/fleet"
	"netdelta/report/ui"
	"netdelta/result"
	"netdelta/unit"
)

// shownFailures is how many failures of a network are printed; the JSON has more.
const shownFailures = 5

// WriteText prints a report. It fails if w does.
func WriteText(w io.Writer, r insight.Report) error {
	out := bufio.NewWriter(w)
	put(out, "%s against %s, %s, volleys of %v on %s\n\n", count(r.Clients, "client"), count(r.Servers, "server"), ui.Clean(r.Workload), r.Volley, ui.Clean(r.Testbed))
	writeNetworks(out, r)
	writeDeltas(out, r)
	for _, n := range r.Networks {
		writeStart(out, n)
	}
	for _, n := range r.Networks {
		writeFailures(out, n)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("print the fleets: %w", err)
	}
	return nil
}

func writeNetworks(out io.Writer, r insight.Report) {
	table := ui.NewTable()
	put(table, "network\tclients\ttotal\tfor each\tp50\tp99\tp99.9\tfairness\tslowest client\n")
	for _, n := range r.Networks {
		if len(n.Volleys) == 0 {
			put(table, "%s\t0\tnothing measured\n", name(n))
			continue
		}
		clients := n.Volleys[len(n.Volleys)-1].Clients
		total, each := speed(n, median(n.Volleys, total(n))), speed(n, median(n.Volleys, total(n))/float64(clients))
		p50, p99, p999 := "-", "-", "-"
		if q := n.Latency; q != nil {
			p50, p99, p999 = ns(q.P50), ns(q.P99), ns(q.P999)
		}
		put(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%.3f\t%s\n", name(n), clients, total, each, p50, p99, p999, fairness(n), slowest(n))
	}
	_ = table.Print(out)
}

// name of a network; the A/A control of the baseline is marked.
func name(n fleet.Network) string {
	if n.Role == result.RoleTwin {
		return ui.Clean(n.Network) + " (twin)"
	}
	return ui.Clean(n.Network)
}

// total is what a network's volleys are compared by: transactions where their latencies are known, else payload.
func total(n fleet.Network) func(fleet.Volley) float64 {
	if n.Latency != nil {
		return func(v fleet.Volley) float64 { return v.Rate }
	}
	return func(v fleet.Volley) float64 { return v.Throughput }
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

func median(volleys []fleet.Volley, of func(fleet.Volley) float64) float64 {
	var all []float64
	for _, v := range volleys {
		all = append(all, of(v))
	}
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
func writeDeltas(out io.Writer, r insight.Report) {
	if len(r.Deltas) == 0 {
		return
	}
	table := ui.NewTable()
	put(table, "against %s\tmetric\tdelta\t95%% interval\tverdict\n", ui.Clean(r.Deltas[0].Baseline))
	for _, d := range r.Null {
		writeDelta(table, d, " (twin)")
	}
	for _, d := range r.Deltas {
		writeDelta(table, d, "")
	}
	_ = table.Print(out)
}

func writeDelta(table io.Writer, d insight.Delta, mark string) {
	interval := fmt.Sprintf("%d of %d builds", d.Blocks, d.Need)
	if d.RatioLow != nil && d.RatioHigh != nil {
		interval = fmt.Sprintf("[%s, %s]", unit.Ratio(*d.RatioLow).Percent(), unit.Ratio(*d.RatioHigh).Percent())
	}
	delta := "-"
	if d.Ratio > 0 {
		delta = unit.Ratio(d.Ratio).Percent()
	}
	verdict := string(d.Verdict)
	if d.Excluded > 0 {
		verdict += fmt.Sprintf("; %s left out, clients were missing", count(d.Excluded, "round"))
	}
	put(table, "%s\t%s\t%s\t%s\t%s\n", ui.Clean(d.Network)+mark, d.Metric, delta, interval, verdict)
}

// writeStart says how long a network's fleet took to start, and how well its clients began together.
func writeStart(out io.Writer, n fleet.Network) {
	if len(n.Builds) == 0 || n.Late == nil {
		return
	}
	var pods, armed time.Duration
	for _, b := range n.Builds {
		pods, armed = max(pods, b.Pods), max(armed, b.Armed)
	}
	put(out, "%s: pods after %s, all clients armed after %s; they began %s after the common instant (p50; p99 %s, last %s), by clocks known to +-%s\n",
		name(n), unit.Duration(pods), unit.Duration(armed), ns(n.Late.P50), ns(n.Late.P99), ns(n.Late.Max), unit.Duration(n.ClockError))
}

func writeFailures(out io.Writer, n fleet.Network) {
	if n.Failed == 0 {
		return
	}
	put(out, "%s: %s failed; the others went on\n", name(n), count(n.Failed, "client or pod", "clients or pods"))
	for _, f := range n.Failures[:min(len(n.Failures), shownFailures)] {
		where := "build " + fmt.Sprint(f.Build+1)
		if f.Pod != "" {
			where += ", " + f.Pod
		}
		if f.Node != "" {
			where += " on " + f.Node
		}
		put(out, "  %s: %s\n", ui.Clean(where), ui.Clean(strings.Join(strings.Fields(f.Why), " ")))
	}
	if more := n.Failed - shownFailures; more > 0 {
		put(out, "  and %d more\n", more)
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

func put(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
