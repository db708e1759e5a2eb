package html

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/report/words"
	"netdelta/result"
	"netdelta/unit"
)

// fact is a line of the environment.
type fact struct{ Name, Value string }

// Environment is what the run ran on.
func (p *page) Environment() []fact {
	e := p.Run.Environment
	var all []fact
	add := func(name, value string) {
		if strings.TrimSpace(value) != "" {
			all = append(all, fact{name, value})
		}
	}
	if c := e.Cluster; c != nil {
		add("Cluster", c.Words())
		add("Network of its pods", c.Network)
		add("Services by", c.Proxy)
		for _, n := range c.Nodes {
			add("Node "+n.Name, n.Words())
		}
	}
	add("Run", p.Run.Run)
	add("Kernel", strings.TrimSpace(e.Kernel+" "+e.Arch))
	add("System", e.OS)
	add("Machine", e.Hostname)
	virtual := e.Virtual
	if virtual != "" {
		virtual = "a virtual machine (" + virtual + ")"
	}
	add("Hardware", virtual)
	if e.CPU.Count > 0 {
		add("Processors", fmt.Sprintf("%d × %s", e.CPU.Count, e.CPU.Model))
	}
	add("Governor", e.CPU.Governor)
	add("Mitigations", e.CPU.Mitigations)
	if e.Memory > 0 {
		add("Memory", e.Memory.String())
	}
	add("Clock", e.Clock)
	add("Measured on processor", numbers(e.Measuring))
	add("netdelta itself on", numbers(e.Controlling))
	add("netdelta", strings.TrimSpace(e.Netdelta+" "+e.GoVersion))
	for _, name := range slices.Sorted(maps.Keys(e.Versions)) {
		add(name, e.Versions[name])
	}
	return all
}

func numbers(list []int) string {
	parts := gather.Each(list, strconv.Itoa)
	return strings.Join(parts, ", ")
}

// linkRow is a device, and how many others are just the same.
type linkRow struct {
	result.Link
	Off string // the offloads that are off
	// Kind is the link's, and whether a bridge hands its packets to the firewall.
	Kind string
}

// Links are the testbed's devices as built; what every node or pod has alike stands there once for each network.
func (p *page) Links() []linkRow {
	var all []linkRow
	seen := map[string]bool{}
	for _, l := range p.Run.Environment.Links {
		off := gather.Where(slices.Sorted(maps.Keys(l.Offloads)), func(name string) bool { return !l.Offloads[name] })
		row := linkRow{l, strings.Join(off, ", "), l.Kind}
		if l.Netfilter != "" {
			row.Kind += ", netfilter " + string(l.Netfilter)
		}
		key := fmt.Sprint(l.Network, "\x00", l.Where, "\x00", l.Name, "\x00", row.Kind, "\x00", l.MTU, "\x00", row.Off)
		if !seen[key] {
			seen[key] = true
			all = append(all, row)
		}
	}
	return all
}

// Command is what repeats the run, typed in its folder.
func (p *page) Command() string {
	command := "netdelta run study.yaml"
	if p.Run.Seed != 0 {
		command += " --seed " + strconv.FormatUint(p.Run.Seed, 10)
	}
	return command
}

// Eyebrow is the line over the question: the study, and where it was run.
func (p *page) Eyebrow() string {
	parts := append([]string{p.Run.Study}, words.Machine(p.Run)...)
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// Heading is the question of the run, or for want of one its study.
func (p *page) Heading() string {
	return cmp.Or(p.Run.Question, p.Run.Study, "A run of netdelta")
}

// Margin is the change within which networks count as the same, such as "2%".
func (p *page) Margin() string { return fmt.Sprintf("%.4g%%", 100*p.Run.Margin) }

// Confidence is the confidence of the intervals, such as "95%".
func (p *page) Confidence() string {
	if p.Run.Exact != nil {
		return fmt.Sprintf("%d-seed", len(p.Run.Exact.Seeds))
	}
	return fmt.Sprintf("%.4g%%", 100*p.Run.Confidence)
}

// Ground is what the run was made on, in words.
func (p *page) Ground() string {
	if p.Run.Environment.Cluster != nil {
		return "the cluster"
	}
	return "the machine"
}

// Here is what findings are about, in words.
func (p *page) Here() string {
	if p.Run.Environment.Cluster != nil {
		return "these nodes and their kernel"
	}
	return "this kernel and this machine"
}

// Lab says whether the run was made in a lab of namespaces, which has limits of its own.
func (p *page) Lab() bool { return p.Run.Testbed == "" || p.Run.Testbed == "lab" }

// Baseline is the name of the network that all others are compared with.
func (p *page) Baseline() string { return baselineName(p.Run.Cells) }

// goalClass is the class of a goal's verdict.
func goalClass(verdict string) string {
	return cmp.Or(map[string]string{result.GoalPass: "faster", result.GoalFail: "slower"}[verdict], "unresolved")
}

// Took is how long the run lasted, "" if that is not known.
func (p *page) Took() string {
	if took := p.Run.Took().Round(time.Second); took > 0 {
		return took.String()
	}
	return ""
}

// Folded says whether there are too many settings to have all of them unfolded.
func (p *page) Folded() bool { return len(p.Settings) > inlineMost }

// claimClass is the class of a verdict on a claim.
func claimClass(verdict string) string {
	classes := map[string]string{insight.Confirmed: "same", insight.ConfirmedInPart: "same", insight.Contradicted: "slower"}
	return cmp.Or(classes[verdict], "unresolved")
}

// MeasuredHops are the ways that were seen in trials, for the table of counters.
func (p *page) MeasuredHops() []insight.Way {
	var all []insight.Way
	for _, place := range p.Ways {
		for _, w := range place.Ways {
			if w.Measured {
				all = append(all, w.Way)
			}
		}
	}
	return all
}

// Each is the mean size of a packet at a stop, "" where there was none.
func (p *page) Each(s insight.Stop) string {
	if s.Packets == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(s.Bytes)/float64(s.Packets), 'f', 1, 64)
}

// absence is a reason for which something was not measured.
type absence struct {
	Who, Why string
	// Unsupported tells what this machine can't do from what the run left out.
	Unsupported bool
}

// absences list why cells were not measured, each reason once: of what is unsupported the networks, else how many cells.
func (p *page) absences() []absence {
	var all []absence
	for _, a := range insight.Absences(p.Run.Cells) {
		all = append(all, absence{Who: words.Absent(a), Why: a.Why, Unsupported: a.Unsupported})
	}
	return all
}

// missing are a setting's networks that were to be measured and have no delta, with the reason.
func (p *page) missing(s *setting) []absence {
	have := map[string]bool{}
	for _, d := range s.part.Deltas {
		have[d.Cell] = have[d.Cell] || d.Headline
	}
	var all []absence
	for _, c := range s.part.Cells {
		if c.Role == result.RoleCell && !have[c.ID] {
			all = append(all, absence{Who: insight.Name(c.Network, c.Path), Why: cmp.Or(p.reasons[c.ID], "no trial of it is finished")})
		}
	}
	return all
}

// reasons say, by cell, what its failed checks found: of a trial that did not end what stopped it, before anything else.
func reasons(all []result.Check) map[string]string {
	by := map[string]string{}
	for _, c := range all {
		if !c.OK && c.Check != insight.CheckFinished && by[c.Trial] == "" {
			by[c.Trial] = c.Observed
		}
	}
	for _, c := range all {
		if i := strings.LastIndexByte(c.Trial, '#'); !c.OK && c.Check == insight.CheckFinished && i >= 0 {
			by[c.Trial[:i]] = c.Observed
		}
	}
	return by
}

// checks are all checks of one kind.
type checks struct {
	Name           string
	Failed, Passed int
	// Entries are the first of those that failed, Example is one that passed.
	Entries []result.Check
	Example *result.Check
}

// More counts the failed checks that are not listed.
func (c checks) More() int { return c.Failed - len(c.Entries) }

// Few says whether there is something to show and not so much of it that it would push away what follows.
func (c checks) Few() bool { return c.Failed > 0 && c.Failed <= checksOpenMost }

// checks sorts the run's checks by kind: those that failed first, the most frequent before the others.
func (p *page) checks() []checks {
	var all []checks
	for name, own := range insight.By(p.Run.Checks, func(c result.Check) string { return c.Check }) {
		group := checks{Name: name}
		for i, c := range own {
			switch {
			case c.OK:
				if group.Passed++; group.Passed == 1 {
					group.Example = &own[i]
				}
			default:
				if group.Failed++; group.Failed <= listMost {
					group.Entries = append(group.Entries, c)
				}
			}
		}
		all = append(all, group)
	}
	slices.SortStableFunc(all, func(a, b checks) int { return b.Failed - a.Failed })
	return all
}

// lost is a line of what was left out.
type lost struct{ What, Reason, Count, Example string }

// LeftOut is all that enters no delta.
func (p *page) LeftOut() []lost {
	var all []lost
	for _, e := range p.account.LostTrials {
		all = append(all, lost{"trials", e.Reason, unit.Thousands(e.Count) + " of " + unit.Thousands(p.account.Trials), e.Example})
	}
	for _, e := range p.account.LostBursts {
		all = append(all, lost{"bursts", e.Reason, unit.Thousands(e.Count) + " of " + unit.Thousands(p.account.Bursts), meaning(e.Reason)})
	}
	return all
}

// meaning explains a reason for which a burst is marked.
func meaning(reason string) string {
	if strings.HasPrefix(reason, insight.Unwell) {
		return "a daemon behind it was ill, or had to be started again"
	}
	return map[string]string{
		"cpu-pressure": "something else waited for a processor while it was measured",
		"preempted":    "the measuring thread was put aside by the kernel",
		"steal":        "the hypervisor gave the processor to another machine",
		"softirq":      "soft interrupts of something else took the processor",
		"throttled":    "a limit on processor time took hold",
	}[reason]
}

// Misrouted are the trials whose packets went another way, the first of them.
func (p *page) Misrouted() []insight.MisroutedTrial {
	return p.account.Misrouted[:min(len(p.account.Misrouted), listMost)]
}

// Proof is the summary of the paths.
func (p *page) Proof() string {
	a := p.account
	total := a.Proved + a.Weak + a.Unwatched + len(a.Misrouted)
	if total == 0 || total == a.Unwatched {
		return ""
	}
	text := fmt.Sprintf("The path is proved in %s of %s: counters and sampled packets show that the bytes went the way that the network says.",
		unit.Thousands(a.Proved), unit.Counted(total, "trial"))
	if a.Weak > 0 {
		text += fmt.Sprintf(" In %s the proof is weaker than it could be; the drawings say why.", unit.Thousands(a.Weak))
	}
	if a.Unwatched > 0 {
		text += fmt.Sprintf(" %s went unwatched.", unit.Thousands(a.Unwatched))
	}
	if n := len(a.Misrouted); n > 0 {
		text += fmt.Sprintf(" %s misrouted.", unit.Thousands(n))
	}
	return text
}
