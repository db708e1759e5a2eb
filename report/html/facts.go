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
	"netdelta/result"
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
}

// Links are the testbed's devices as built; what every node or pod has alike stands there once for each network.
func (p *page) Links() []linkRow {
	var all []linkRow
	seen := map[string]bool{}
	for _, l := range p.Run.Environment.Links {
		off := gather.Where(slices.Sorted(maps.Keys(l.Offloads)), func(name string) bool { return !l.Offloads[name] })
		row := linkRow{l, strings.Join(off, ", ")}
		key := fmt.Sprint(l.Network, "\x00", l.Where, "\x00", l.Name, "\x00", l.Kind, "\x00", l.MTU, "\x00", row.Off)
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

// Eyebrow is the line over the question.
func (p *page) Eyebrow() string {
	parts := []string{"netdelta report", p.Run.Study, p.Run.Run}
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
