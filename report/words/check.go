package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Check puts a check in words: what was expected, and what was observed.
func Check(c insight.Check) result.Check {
	expected, observed := "", strings.Join(c.Found, "; ")
	share := fmt.Sprintf("%d of %d", c.N, c.Of)
	switch c.Name {
	case insight.CheckFinished:
		expected = "a trial that runs to its end"
	case insight.CheckMeasured:
		expected, observed = "a "+c.Expected[0]+" that can be paired with the baseline's", "no trial"
		if len(c.Reasons) > 0 {
			observed = strings.Join(counts(c.Reasons, "%s: %d"), ", ")
		}
	case insight.CheckBaseline:
		expected, observed = "a baseline of the same setting", "none was measured"
	case insight.CheckDisturbed:
		expected, observed = fmt.Sprintf("at most %.0f%% of bursts disturbed", 100*insight.DisturbedShare), share
	case insight.CheckLoss:
		expected, observed = lost(c)
	case insight.CheckHistogram:
		expected = "a histogram that can be read"
	case insight.CheckSender:
		expected, observed = "a rate that the network bounds", share+" searches that ended where the sender could do no more"
	case insight.CheckPath:
		expected = strings.Join(c.Expected, " > ")
	case insight.CheckSockets:
		expected = "sockets that turn nothing away, alike at both ends"
	case insight.CheckStalls:
		expected, observed = "something arriving all the time", stalled(c)
	case insight.CheckErrors:
		expected, observed = "0 errors", share
	case insight.CheckDisk:
		expected, observed = "a disk that is not the bottleneck", fmt.Sprintf("%.0f%% of what the disk does without a network", 100*c.Share)
		if c.Disk != nil {
			observed += fmt.Sprintf(" (%s operations/s)", digits(c.Disk.Rate))
		}
	case insight.CheckConfig:
		expected, observed = "a configuration that stays as it was built", reconfigured(c.Changes)
	case insight.CheckBusy:
		expected, observed = "processors that no other program keeps busy", fmt.Sprintf("busy throughout: other programs took %.0f%% of the processors' "+
			"time while nothing was measured (%d of %d builds), and no verdict is given on what that may have caused", 100*c.Share, c.N, c.Of)
	case insight.CheckStep:
		expected, observed = "one level against the baseline's", step(*c.Step)
	case insight.CheckCarry, insight.CheckScatter, insight.CheckLeftOut, insight.CheckState, insight.CheckNull:
		expected, observed = alike(c)
	case insight.CheckServices:
		expected, observed = "services that are well", strings.Join(counts(c.Reasons, "%s (%d bursts)"), "; ")
	}
	return result.Check{Trial: c.Trial, Check: c.Name, Expected: expected, Observed: observed}
}

// failedNull puts a null check that failed in words.
func failedNull(c insight.Check) string {
	means := "take changes of that size with doubt"
	if c.Strict {
		means = "no delta of this setting is called different"
	}
	return fmt.Sprintf("%s differs from itself by %s in %s, by more than chance: %s", c.Null.Baseline, change(*c.Null), c.Null.Metric, means)
}

// lost puts a check of datagrams, or of TCP's segments, in words.
func lost(c insight.Check) (expected, observed string) {
	expected, observed = "0 datagrams lost", fmt.Sprintf("%d lost", c.N)
	if c.Of > 0 {
		expected = fmt.Sprintf("at most %.1f%% of TCP's segments lost and sent again", 100*insight.ResentShare)
		observed = fmt.Sprintf("%.2g%% (%d of %d)", 100*float64(c.N)/float64(c.Of), c.N, c.Of)
	}
	return expected, observed + dropped(c.Drops)
}

// byState puts a delta that depends on the state of the machine in words.
func byState(s insight.StateSplit) string {
	return fmt.Sprintf("%s against %s: %s while the machine was fast, %s while slow", s.Network, s.Baseline, Percent(s.Fast), Percent(s.Slow))
}

// alike puts a check of networks that should be alike in words.
func alike(c insight.Check) (expected, observed string) {
	switch u := c.Uneven; {
	case c.Null != nil:
		return "a baseline that does not differ from its A/A control", failedNull(c)
	case c.State != nil:
		return "the same delta while the machine is fast and while it is slow", byState(*c.State)
	case u == nil:
		return fmt.Sprintf("networks that are as fast after this one as after others, to within %g%%", 100*insight.CarriedShare),
			fmt.Sprintf("%+.2f%% (standard error %.2f%%); its part in a delta is this divided by the number of networks", 100*c.Share, 100*c.Error)
	case c.Name == insight.CheckLeftOut:
		return "as many bursts left out as disturbed as of " + u.Baseline,
			fmt.Sprintf("%.1f%% of %s, %.1f%% of %s: what is not caught on one of them is in the delta",
				100*u.LeftOut, cmp.Or(u.Network, "the networks'"), 100*u.BaselineLeftOut, u.Baseline)
	default:
		return "bursts that scatter as " + u.Baseline + "'s do",
			fmt.Sprintf("the delta of %s, %s, is of the middle 60%% of bursts: the typical burst is at %s, the mean of all at %s",
				u.Network, Percent(u.Middle), Percent(u.Typical), Percent(u.Mean))
	}
}

// counts prints each reason with its count, in the order of the alphabet.
func counts(reasons map[string]int, format string) []string {
	return gather.Each(slices.Sorted(maps.Keys(reasons)), func(reason string) string { return fmt.Sprintf(format, reason, reasons[reason]) })
}

// stallsMost is how many stalls of one trial are listed one by one.
const stallsMost = 3

// dropped says where packets were dropped, the most first.
func dropped(drops []result.Drop) string {
	drops = slices.SortedFunc(slices.Values(drops), func(a, b result.Drop) int { return cmp.Compare(b.Packets, a.Packets) })
	const most = 3
	var parts []string
	for _, d := range drops[:min(most, len(drops))] {
		at := d.Device
		if d.Queue != "" {
			at = d.Queue + " of " + at
		}
		parts = append(parts, fmt.Sprintf("%d by %s", d.Packets, at))
	}
	if len(parts) == 0 {
		return ""
	}
	return "; dropped in this build of the network: " + strings.Join(parts, ", ")
}

// step says where the level of a trial changes.
func step(s insight.LevelStep) string {
	who := ""
	if s.Baseline {
		who = "the baseline and its A/A control move apart: "
	}
	return fmt.Sprintf("%s%s changes its level %s between rounds %d and %d, at %.1f s", who, s.Metric, times(s.Ratio), s.After, s.Before, s.At.Seconds())
}

// times is a ratio of levels as a percentage, or as times where it is large.
func times(ratio float64) string {
	switch {
	case ratio >= 2:
		return fmt.Sprintf("to %.1f times", ratio)
	case ratio <= 0.5:
		return fmt.Sprintf("to 1/%.1f", 1/ratio)
	}
	return fmt.Sprintf("by %+.0f%%", 100*(ratio-1))
}

// changesMost is how many changes of a configuration are listed one by one.
const changesMost = 6

// reconfigured lists changes of a configuration.
func reconfigured(changes []result.ConfigChange) string {
	var parts []string
	for i, c := range changes {
		if i == changesMost && len(changes) > changesMost+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(changes)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s: %s was %s and is %s %s", c.Device, strings.TrimSpace(c.Setting), c.Was, c.Is, when(c)))
	}
	return strings.Join(parts, "; ")
}

// when says between which rounds a configuration changed.
func when(c result.ConfigChange) string {
	switch {
	case c.After >= 0 && c.Before >= 0:
		return fmt.Sprintf("(between rounds %d and %d)", c.After, c.Before)
	case c.Before >= 0:
		return fmt.Sprintf("(before round %d)", c.Before)
	case c.After >= 0:
		return fmt.Sprintf("(after round %d)", c.After)
	}
	return "(at some time in the build)"
}

// stalled lists a trial's stalls.
func stalled(c insight.Check) string {
	var parts []string
	for i, s := range c.Stalls {
		if i == stallsMost && len(c.Stalls) > stallsMost+1 {
			parts = append(parts, fmt.Sprintf("and %d more", len(c.Stalls)-i))
			break
		}
		parts = append(parts, s.String())
	}
	return strings.Join(parts, "; ")
}

// RequestLine is what a network is of a request, in words.
type RequestLine struct {
	Name, Added string
	// Share is what part of the request is added, with its interval where there is one.
	Share, Verdict string
	// Class is the verdict's: same where it does not matter, faster where it saves, slower where it matters, else unresolved.
	Class string
}

// Request puts a share of a request in words. A share within the margin does not matter. The page does the same for what its reader
// chooses (request.js), and a test holds the two equal.
func Request(s insight.RequestShare, margin float64) RequestLine {
	line := RequestLine{
		Name: insight.Name(s.Delta.Network, s.Delta.Path), Added: Difference("ns", s.Added), Share: fmt.Sprintf("%+.1f%%", 100*s.Share),
		Verdict: "can't be told yet", Class: "unresolved",
	}
	if s.Known {
		line.Share += fmt.Sprintf(" [%+.1f, %+.1f]", 100*s.Low, 100*s.High)
	}
	switch yes, no := s.Matters(margin); {
	case no:
		line.Verdict, line.Class = fmt.Sprintf("no: within %g%%", 100*margin), "same"
	case yes && s.Share < 0:
		line.Verdict, line.Class = "yes, it saves", "faster"
	case yes:
		line.Verdict, line.Class = "yes", "slower"
	}
	return line
}

// Surprises explain figures of a run that a reader would not expect, a line each.
func Surprises(run result.Run) []string {
	var all []string
	seen := func(is func(result.Delta) bool) bool {
		return slices.ContainsFunc(run.Deltas, func(d result.Delta) bool { return d.Headline && is(d) })
	}
	if seen(func(d result.Delta) bool {
		return d.Network == "sockmap" && d.Verdict == string(stats.Faster) && d.Placement == result.SameNode
	}) {
		all = append(all, "sockmap beats loopback: it moves data from socket to socket, past TCP and IP, which loopback goes through twice.")
	}
	if seen(func(d result.Delta) bool { return d.Network == "xdp" && d.Verdict == string(stats.Slower) }) {
		all = append(all, "xdp is slow between veths: each packet is copied for XDP, and without offloads programs compute checksums and cut segments.")
	}
	if seen(func(d result.Delta) bool { return d.Verdict == string(stats.Slower) && insight.CutUp(run, d.Setting) }) {
		all = append(all, "Datagrams larger than a link's MTU are cut up in every network and taken whole by loopback: such settings don't count in the summary.")
	}
	return all
}

// Caveats are at most three lines on what could overturn a choice that is made by a run's figures: they stand with its first table.
func Caveats(run result.Run) []string {
	all := usualCaveats(run)
	if busy, found := gather.First(run.Checks, func(c result.Check) bool { return c.Check == insight.CheckBusy }); found {
		all = append([]string{"This machine was " + busy.Observed + "."}, all...)
	}
	return all
}

// usualCaveats are those of every run on such a testbed.
func usualCaveats(run result.Run) []string {
	switch {
	case run.Testbed == result.Imported:
		return []string{"Measured elsewhere: netdelta saw neither the packets' paths nor what else ran."}
	case run.Environment.Cluster != nil:
		return []string{"These nodes, their cards and kernels, the load of this hour: others may differ."}
	}
	if len(run.Environment.Servers) > 0 {
		return []string{"These servers, their cards and kernels, the load of this hour: others may differ."}
	}
	all := []string{"One machine, nodes joined in memory: no card, no wire. Others may well differ."}
	if n := run.Environment.CPU.Count; n > 0 {
		all[0] = fmt.Sprintf("One machine of %s, nodes joined in memory: no card, no wire.", unit.Counted(n, "processor"))
	}
	loopback := func(d result.Delta) bool { return d.Baseline == "host" && d.Placement == result.SameNode }
	if slices.ContainsFunc(run.Deltas, loopback) {
		all = append(all, "On one node host is loopback, whose MTU of 65,535 favours it in large messages.")
	}
	return all
}
