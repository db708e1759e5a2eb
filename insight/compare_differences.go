package insight

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// The groups of differences between two runs, in the order in which they are listed.
const (
	GroupMachine  = "machine"
	GroupKernel   = "kernel"
	GroupProgram  = "program"
	GroupTestbed  = "testbed"
	GroupSettings = "settings"
	GroupStudy    = "study"
)

// differences are what two runs do not have in common, apart from what they measured.
func differences(before, after result.Run) []result.Difference {
	a, b := before.Environment, after.Environment
	var all []result.Difference
	add := func(group, what, was, is string) {
		if was != is {
			all = append(all, result.Difference{Group: group, What: what, Old: was, New: is})
		}
	}
	add(GroupMachine, "host name", a.Hostname, b.Hostname)
	add(GroupMachine, "processor", a.CPU.Model, b.CPU.Model)
	add(GroupMachine, "processors", known(a.CPU.Count), known(b.CPU.Count))
	add(GroupMachine, "architecture", a.Arch, b.Arch)
	add(GroupMachine, "hypervisor", a.Virtual, b.Virtual)
	if !nearly(a.Memory, b.Memory) {
		add(GroupMachine, "memory", known(a.Memory), known(b.Memory))
	}
	add(GroupMachine, "frequency governor", a.CPU.Governor, b.CPU.Governor)
	add(GroupKernel, "kernel", a.Kernel, b.Kernel)
	add(GroupKernel, "system", a.OS, b.OS)
	add(GroupKernel, "mitigations", a.CPU.Mitigations, b.CPU.Mitigations)
	add(GroupKernel, "clock source", a.Clock, b.Clock)
	add(GroupProgram, "netdelta", a.Netdelta, b.Netdelta)
	add(GroupProgram, "Go", a.GoVersion, b.GoVersion)
	for _, tool := range keys(a.Versions, b.Versions) {
		add(GroupProgram, tool, a.Versions[tool], b.Versions[tool])
	}
	add(GroupTestbed, "kind", before.Testbed, after.Testbed)
	was, is := clusterOf(a), clusterOf(b)
	add(GroupTestbed, "cluster", was.Name, is.Name)
	add(GroupTestbed, "Kubernetes", was.Version, is.Version)
	add(GroupTestbed, "network of the cluster's pods", was.Network, is.Network)
	add(GroupTestbed, "services by", was.Proxy, is.Proxy)
	add(GroupTestbed, "nodes", nodeNames(was), nodeNames(is))
	add(GroupTestbed, "cards of the servers", cards(a.Servers), cards(b.Servers))
	add(GroupTestbed, "largest packets between the servers", largest(a.Ways), largest(b.Ways))
	add(GroupTestbed, "processors measured on", processors(a.Measuring), processors(b.Measuring))
	all = append(all, linkDifferences(a.Links, b.Links)...)
	if len(a.Sysctls) == 0 || len(b.Sysctls) == 0 {
		add(GroupSettings, "settings of the kernel", kept(len(a.Sysctls)), kept(len(b.Sysctls)))
	} else {
		for _, name := range keys(a.Sysctls, b.Sysctls) {
			add(GroupSettings, plainName(name), a.Sysctls[name], b.Sysctls[name])
		}
	}
	add(GroupStudy, "study", before.Study, after.Study)
	add(GroupStudy, "question", before.Question, after.Question)
	add(GroupStudy, "margin", percentage(before.Margin), percentage(after.Margin))
	add(GroupStudy, "confidence", percentage(before.Confidence), percentage(after.Confidence))
	add(GroupStudy, "stops when resolved", yesNo(before.Adaptive), yesNo(after.Adaptive))
	return all
}

// clusterOf is the cluster that a run was measured on, an empty one where it was on none.
func clusterOf(e result.Environment) result.Cluster {
	if e.Cluster == nil {
		return result.Cluster{}
	}
	return *e.Cluster
}

// nodeNames are the names of a cluster's nodes, with what runs on them.
func nodeNames(c result.Cluster) string {
	var names []string
	for _, n := range c.Nodes {
		names = append(names, strings.TrimSpace(strings.Join([]string{n.Name, n.Kubelet, n.Runtime}, " ")))
	}
	return strings.Join(names, ", ")
}

// largest is the size of packets that get from any server to any other, "" where that is not known.
func largest(ways []result.Way) string {
	if len(ways) == 0 {
		return ""
	}
	least := slices.MinFunc(ways, func(a, b result.Way) int { return cmp.Compare(a.MTU, b.MTU) }).MTU
	if least == 0 {
		return ""
	}
	return fmt.Sprintf("%d bytes", least)
}

// cards are what joined the nodes that were servers.
func cards(servers []result.Server) string {
	var all []string
	for _, s := range servers {
		text := s.Name + " " + s.Mode + ":"
		for i, c := range append([]result.ServerCard{s.ServerCard}, s.Further...) {
			if i > 0 {
				text += " and "
			}
			text += fmt.Sprintf("%s, MTU %d", c.Card, c.MTU)
			if c.Speed > 0 {
				text += ", " + unit.BitsPerSecond(c.Speed).String()
			}
			if c.Bond != "" {
				text += ", " + c.Bond
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// kept is how many settings were recorded, "" for none.
func kept(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d recorded", n)
}

// plainName puts a plain name before the name of a kernel setting, for the settings that change results most.
func plainName(setting string) string {
	plain := map[string]string{
		"net.ipv4.tcp_congestion_control":    "congestion control",
		"net.core.default_qdisc":             "queueing discipline",
		"net.ipv4.tcp_rmem":                  "TCP receive buffer",
		"net.ipv4.tcp_wmem":                  "TCP send buffer",
		"net.core.rmem_max":                  "largest receive buffer",
		"net.core.wmem_max":                  "largest send buffer",
		"net.core.busy_poll":                 "busy polling",
		"net.ipv4.tcp_timestamps":            "TCP timestamps",
		"net.bridge.bridge-nf-call-iptables": "firewall on bridges",
	}[setting]
	if plain == "" {
		return setting
	}
	return plain + " (" + setting + ")"
}

// keys are the keys of both maps, sorted.
func keys(a, b map[string]string) []string { return slices.Sorted(maps.Keys(union(a, b))) }

// union has the keys of both maps.
func union[K comparable](a, b map[K]string) map[K]string {
	both := map[K]string{}
	maps.Copy(both, a)
	maps.Copy(both, b)
	return both
}

// known prints a value, "" for one that was not recorded.
func known[T int | unit.Bytes](v T) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint(v)
}

func percentage(share float64) string { return fmt.Sprintf("%.4g%%", 100*share) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func processors(list []int) string {
	if len(list) == 0 {
		return ""
	}
	return "CPU " + strings.ReplaceAll(strings.Trim(fmt.Sprint(list), "[]"), " ", ", ")
}

// nearly allows for what kernels keep of a machine's memory for themselves.
func nearly(a, b unit.Bytes) bool {
	return math.Abs(float64(a)-float64(b)) <= 0.02*float64(max(a, b))
}

// devices are the values of one property by kind of device. A network's devices are known by where they are and by
// name, both without their numbers: how many pods there are depends on what was measured and makes no difference.
type devices map[[3]string]string

// linkDifferences compares the devices of the networks that both runs have. What differs in one way at many devices is one
// difference.
func linkDifferences(before, after []result.Link) []result.Difference {
	both := map[string]bool{}
	for _, l := range before {
		both[l.Network] = slices.ContainsFunc(after, func(o result.Link) bool { return o.Network == l.Network })
	}
	a, b := properties(before, both), properties(after, both)
	type kind struct{ what, was, is string }
	where := map[kind][]string{}
	for key := range union(a, b) {
		if a[key] != b[key] {
			k := kind{key[0], a[key], b[key]}
			where[k] = append(where[k], key[1]+" "+key[2])
		}
	}
	all := make([]result.Difference, 0, len(where))
	for k, places := range where {
		slices.Sort(places)
		all = append(all, result.Difference{Group: GroupTestbed, What: k.what, Old: k.was, New: k.is, Where: places})
	}
	slices.SortFunc(all, func(a, b result.Difference) int {
		return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.Old, b.Old), cmp.Compare(a.New, b.New))
	})
	return all
}

// properties are the kind, the MTU and each offload of the devices of some networks: the values that occur, joined.
func properties(links []result.Link, networks map[string]bool) devices {
	values := map[[3]string]map[string]bool{}
	add := func(l result.Link, what, value string) {
		key := [3]string{what, l.Network, unnumbered(l.Where) + " " + unnumbered(l.Name)}
		if values[key] == nil {
			values[key] = map[string]bool{}
		}
		values[key][value] = true
	}
	for _, l := range links {
		if !networks[l.Network] {
			continue
		}
		add(l, "kind of device", l.Kind)
		add(l, "MTU", strconv.Itoa(l.MTU))
		if l.Netfilter != "" {
			add(l, "bridge netfilter", string(l.Netfilter))
		}
		for name, on := range l.Offloads {
			value := "off"
			if on {
				value = "on"
			}
			add(l, "offload "+name, value)
		}
	}
	joined := devices{}
	for key, set := range values {
		joined[key] = strings.Join(slices.Sorted(maps.Keys(set)), " and ")
	}
	return joined
}

// drawn is what is drawn at random in the name of a pod of a run on a cluster, and at the end of the name of a pod's device on a node.
var drawn = regexp.MustCompile(`netdelta-[0-9a-f]{8}-t\d+-|[0-9a-f]{6,}$`)

// unnumbered is a name without what is random in it, and without the number at its end.
func unnumbered(name string) string {
	return strings.TrimRightFunc(drawn.ReplaceAllString(name, ""), func(r rune) bool { return unicode.IsDigit(r) || r == '.' })
}

// NothingCompared is the verdict on two runs of which no delta could be compared.
const NothingCompared = "nothing"

// overall is the verdict on all changes together.
func overall(changes []result.Change) string {
	found, compared := map[string]bool{}, false
	for _, c := range changes {
		if c.Headline {
			found[c.Verdict] = true
			known, _ := moved(c)
			compared = compared || known
		}
	}
	if !compared {
		return NothingCompared
	}
	for _, v := range []stats.Verdict{stats.Regressed, stats.Unresolved, stats.Improved} {
		if found[string(v)] {
			return string(v)
		}
	}
	return string(stats.Same)
}

// moved reports whether a change has an interval, and on which side of no change the whole of it lies: -1 better, 1 worse, 0
// on both.
func moved(c result.Change) (known bool, side int) {
	low, high, none := c.ChangeLow, c.ChangeHigh, 1.0
	if c.Change == 0 {
		low, high, none = c.ShiftLow, c.ShiftHigh, 0
	}
	if low == nil || high == nil {
		return false, 0
	}
	switch {
	case *low > none:
		side = 1
	case *high < none:
		side = -1
	}
	if c.Better == string(stats.HigherBetter) {
		side = -side
	}
	return true, side
}

// ChangeAsDelta is a change as a delta against no change.
func ChangeAsDelta(c result.Change) result.Delta {
	return result.Delta{
		Network: c.Network, Path: c.Path, Unit: c.Unit, Judgement: result.Judgement{
			Ratio: c.Change, RatioLow: c.ChangeLow, RatioHigh: c.ChangeHigh, Difference: c.Shift, DifferenceLow: c.ShiftLow, DifferenceHigh: c.ShiftHigh,
			Blocks: min(c.Old.Blocks, c.New.Blocks), Need: c.Need, Verdict: c.Verdict,
		},
	}
}

// Judged are the changes that decide the outcome.
func Judged(c result.Comparison) []result.Change {
	return slices.DeleteFunc(slices.Clone(c.Changes), func(d result.Change) bool { return !d.Headline })
}

// ByVerdict are the judged changes of a comparison with this verdict.
func ByVerdict(c result.Comparison, verdict stats.Verdict) []result.Change {
	return slices.DeleteFunc(Judged(c), func(d result.Change) bool { return d.Verdict != string(verdict) })
}

// MarginOf is the margin that a change was compared with, as a share.
func MarginOf(c result.Comparison, change result.Change) float64 {
	if change.Change == 0 {
		return c.LossMargin
	}
	return c.Margin
}

// Group is the changes of one metric in one setting: what a table shows.
type Group struct {
	Changes  []result.Change
	Baseline *result.BaselineChange // nil where the metric is not judged
}

// Groups sorts the changes of a comparison into tables, in the order in which they come.
func Groups(c result.Comparison) []Group {
	type key struct {
		setting result.Setting
		metric  string
	}
	var all []Group
	for k, changes := range By(c.Changes, func(d result.Change) key { return key{d.Setting, d.Metric} }) {
		g := Group{Changes: changes}
		for i, b := range c.Baselines {
			if (key{b.Setting, b.Metric}) == k {
				g.Baseline = &c.Baselines[i]
			}
		}
		all = append(all, g)
	}
	return all
}
