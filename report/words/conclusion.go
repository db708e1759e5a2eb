package words

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Conclusion says in a sentence what the table of a setting shows, "" of one without networks.
func Conclusion(c insight.Conclusion) string {
	var text string
	switch c.Outcome {
	case insight.NothingMeasured:
		text = "no network was measured"
	case insight.NoBaselineMeasured:
		text = "there was no baseline to compare with"
	case insight.NothingPaired:
		text = "nothing could be compared with " + c.Baseline + ": the trials failed, were disturbed or are still to come"
	case insight.Compared:
		text = strings.Join(clauses(c), "; ")
	default:
		return ""
	}
	return Where(c.Setting.Placement) + ", " + text + "."
}

// clauses are the parts of a conclusion. The ranking of what costs something comes last, so that the least and the most in it are of
// the networks not named before.
func clauses(c insight.Conclusion) []string {
	var all []string
	add := func(deltas []result.Delta, named []string, singular, plural string) {
		if len(deltas) > 0 {
			all = append(all, List(named)+" "+agree(len(deltas), singular, plural))
		}
	}
	add(c.Faster, sized(c.Faster), "is faster than "+c.Baseline, "are faster than "+c.Baseline)
	same := fmt.Sprintf("the same as %s to within %g%%", c.Baseline, math.Round(c.Margin*1e4)/100)
	add(c.Same, insight.Names(c.Same), "is "+same, "are "+same)
	open := "unresolved"
	if len(c.Open) == 1 && c.Open[0].Ratio > 0 {
		open += fmt.Sprintf(" (%s to %s)", Percent(*c.Open[0].RatioLow), Percent(*c.Open[0].RatioHigh))
	}
	add(c.Open, insight.Names(c.Open), "is "+open, "are "+open)
	add(c.Likely, sized(c.Likely), "probably differs, not yet significant", "probably differ, not yet significant")
	if c.Busy {
		add(c.WithinNoise, sized(c.WithinNoise), "may be what the other programs did", "may be what the other programs did")
	} else {
		add(c.WithinNoise, sized(c.WithinNoise), "is within the noise floor", "are within the noise floor")
	}
	if len(c.Early) > 0 {
		all = append(all, early(c))
	}
	return append(all, slower(c.Slower, c.Baseline, len(all) > 0)...)
}

// early speaks of deltas without an interval.
func early(c insight.Conclusion) string {
	builds, need, about := 0, 0, ""
	for _, d := range c.Early {
		builds, need = max(builds, d.Blocks), max(need, d.Need)
	}
	if len(c.Early) < len(c.Deltas) {
		about = " on " + List(insight.Names(c.Early))
	}
	return fmt.Sprintf("too few builds for a verdict%s (%d of %d)", about, builds, need)
}

// slower ranks the networks that are worse than the baseline. rest says that other networks were named before.
func slower(r insight.Ranking, baseline string, rest bool) []string {
	switch len(r.All) {
	case 0:
		return nil
	case 1:
		return []string{one(r.All[0])}
	}
	higher := insight.HigherBetter(r.All[0])
	if len(r.Least) == len(r.All) {
		verb := "cost more than"
		if higher {
			verb = "lose against"
		}
		return []string{fmt.Sprintf("%s %s %s %s, tied", List(insight.Names(r.All)), verb, baseline, span(r.All))}
	}
	verb := func(n int) string {
		if higher {
			return agree(n, "loses", "lose")
		}
		return agree(n, "costs", "cost")
	}
	lead := ""
	if rest {
		lead = "of the others, "
	}
	all := []string{fmt.Sprintf("%s%s %s the least %s and %s the most %s",
		lead, List(insight.Names(r.Least)), verb(len(r.Least)), span(r.Least), List(insight.Names(r.Most)), span(r.Most))}
	ties := gather.Each(r.Ties, func(group []result.Delta) string { return strings.Join(insight.Names(group), ", ") })
	if len(ties) > 0 {
		all = append(all, "tied: "+strings.Join(ties, " · "))
	}
	return all
}

// one speaks of a single network that is worse than the baseline.
func one(d result.Delta) string {
	name := insight.Name(d.Network, d.Path)
	switch {
	case d.Ratio == 0:
		return fmt.Sprintf("%s is worse than %s by %s", name, d.Baseline, Added(d)[1:])
	case insight.HigherBetter(d):
		return fmt.Sprintf("%s loses %s against %s (%s)", name, Percent(d.Ratio)[1:], d.Baseline, Added(d))
	}
	return fmt.Sprintf("%s costs %s more than %s (%s)", name, Percent(d.Ratio)[1:], d.Baseline, Added(d))
}

// Contrast is the size of a contrast with its interval: "+12% [+11, +13]".
func Contrast(c result.Contrast) string {
	size, low, high := Percent(c.Ratio), c.RatioLow, c.RatioHigh
	if c.Ratio == 0 {
		size, low, high = Difference("ratio", c.Difference), c.DifferenceLow, c.DifferenceHigh
	}
	if low == nil || high == nil {
		return size + ", too few builds"
	}
	if c.Ratio == 0 {
		return fmt.Sprintf("%s [%s, %s]", size, Difference("ratio", *low), Difference("ratio", *high))
	}
	return fmt.Sprintf("%s [%s, %s]", size, Percent(*low), Percent(*high))
}

// Added is a delta's difference in the unit of its workload: "+0.41 µs".
func Added(d result.Delta) string { return Difference(Unit(d), d.Difference) }

// change is a delta as a percentage, or where it has no ratio as a difference.
func change(d result.Delta) string {
	if d.Ratio == 0 {
		return Added(d)
	}
	return Percent(d.Ratio)
}

// sized are the deltas' networks, each with its size: "vxlan (+1.2%, +0.41 µs)".
func sized(deltas []result.Delta) []string {
	each := make([]string, len(deltas))
	for i, d := range deltas {
		each[i] = insight.Name(d.Network, d.Path) + " " + span([]result.Delta{d})
	}
	return each
}

// span is the size of one delta in brackets, "(+1.2%, +0.41 µs)", or the range of several, "(+10% to +12%)".
func span(deltas []result.Delta) string {
	low, high := deltas[0], deltas[0]
	if len(deltas) == 1 && low.Ratio != 0 {
		return "(" + Percent(low.Ratio) + ", " + Added(low) + ")"
	}
	for _, d := range deltas {
		if insight.Cost(d) < insight.Cost(low) {
			low = d
		}
		if insight.Cost(d) > insight.Cost(high) {
			high = d
		}
	}
	from, to := change(low), change(high)
	if from == to {
		return "(" + from + ")"
	}
	return "(" + from + " to " + to + ")"
}

// EffectTitle names a step of a factor: "policy from none to nftables:1000".
func EffectTitle(t insight.EffectTable) string {
	return factor(t.Factor) + " from " + t.From + " to " + t.To
}

// EffectHeading is the title for a line of its own, beginning with a capital.
func EffectHeading(t insight.EffectTable) string {
	title := []rune(EffectTitle(t))
	if len(title) > 0 {
		title[0] = unicode.ToUpper(title[0])
	}
	return string(title)
}

// factor is what a factor is called in a sentence.
func factor(name string) string {
	plain := map[string]string{
		"link.rate": "link rate", "link.delay": "link delay", "link.loss": "link loss", "link.nodes": "links of nodes", "bond": "links", "rps": "RPS", "mtu": "MTU", "qos": "QoS",
		"from": "client's place", "family": "version of IP", "nagle": "Nagle",
	}[name]
	if plain != "" {
		return plain
	}
	if offload, ok := strings.CutPrefix(name, "offload."); ok {
		return strings.ToUpper(offload)
	}
	return strings.ReplaceAll(name, "_", " ")
}

// Effect says in a sentence what a step of a factor does. Networks are sorted by their verdicts and not ranked.
func Effect(t insight.EffectTable) string {
	by := map[stats.Verdict][]result.Delta{}
	const tooFew = "too few"
	for _, d := range t.Headlines() {
		verdict := stats.Verdict(d.Verdict)
		if !insight.HasInterval(d) {
			verdict = tooFew
		}
		by[verdict] = append(by[verdict], d)
	}
	within := fmt.Sprintf("the same to within %g%%", math.Round(t.Margin*1e4)/100)
	var parts []string
	add := func(verdict stats.Verdict, names func([]result.Delta) []string, singular, plural string) {
		if deltas := by[verdict]; len(deltas) > 0 {
			parts = append(parts, List(names(deltas))+" "+agree(len(deltas), singular, plural))
		}
	}
	add(stats.Slower, sized, "is slower", "are slower")
	add(stats.Faster, sized, "is faster", "are faster")
	add(stats.Same, insight.Names, "stays "+within, "stay "+within)
	add(stats.Unresolved, insight.Names, "is unresolved", "are unresolved")
	add(tooFew, insight.Names, "has too few builds for a verdict", "have too few builds for a verdict")
	says := Where(t.Setting.Placement) + ", with " + EffectTitle(t) + ", " + strings.Join(parts, "; ") + "."
	return strings.TrimSpace(says + " " + Across(t.Headlines()))
}

// Bounded says what bounded the networks of a setting, and what its deltas are therefore; "" where that is not known.
func Bounded(bounds []insight.Bound) string {
	switch len(bounds) {
	case 0:
		return ""
	case 1:
		name, means := bound(bounds[0].By)
		return "Bounded by " + name + ": " + means + "."
	}
	parts := make([]string, len(bounds))
	for i, b := range bounds {
		name, _ := bound(b.By)
		parts[i] = List(b.Networks) + " by " + name
	}
	return "Bounded differently: " + strings.Join(parts, ", ") + "; the deltas measure more than one thing."
}

// bound names a bound, and says what deltas under it are.
func bound(by string) (name, means string) {
	switch by {
	case result.BoundCPU:
		return "CPU", "these deltas are CPU costs"
	case result.BoundLink:
		return "the link", "these deltas are what headers take of the link's rate, not what networks could do on a faster one"
	case result.BoundDisk:
		return "the disk", "networks can't differ by more than the disk lets them"
	}
	return by, "no link, disk or processor is full, and each answer is waited for"
}

// loads lists the loads of settings, each once.
func loads(settings []result.Setting) string {
	var all []string
	for _, s := range settings {
		if load := Load(s); !slices.Contains(all, load) {
			all = append(all, load)
		}
	}
	return List(all)
}

// ByState says of which networks of a setting the delta is another while the machine is slow, a sentence for each; "" where it is of none.
func ByState(checks []result.Check, cells []result.Cell) string {
	var says []string
	for _, c := range checks {
		if c.Check == insight.CheckState && slices.ContainsFunc(cells, func(cell result.Cell) bool { return cell.ID == c.Trial }) {
			says = append(says, c.Observed+".")
		}
	}
	return strings.Join(says, " ")
}

// Reasons says where the differences between the ways to a cluster's pods arise; "" where nothing is known of it.
func Reasons(all []insight.Reason) string {
	return strings.Join(gather.Each(all, reason), " ")
}

func reason(r insight.Reason) string {
	services := "what leads to services"
	switch r.Proxy {
	case "iptables", "nftables", "ipvs":
		services += ", kube-proxy with " + r.Proxy + ","
	case "ebpf":
		services += ", eBPF in place of kube-proxy,"
	}
	switch r.Kind {
	case insight.ReasonPods:
		between := ""
		if r.Wire != "" {
			between = " and, between the nodes, " + r.Wire
		}
		return fmt.Sprintf("What %s adds to %s is in the devices and rules that lead packets into pods%s.", r.Network, r.Than, between)
	case insight.ReasonNoTunnel:
		return fmt.Sprintf("%s is %s against %s: it goes to the node's own address, and so skips the tunnel (%s).", r.Network, Percent(r.Ratio), r.Than, r.Wire)
	case insight.ReasonNoServices:
		return fmt.Sprintf("%s is as %s: %s adds nothing that shows.", r.Network, r.Than, services)
	case insight.ReasonServices:
		return fmt.Sprintf("%s is %s against %s: that is %s.", r.Network, Percent(r.Ratio), r.Than, strings.TrimSuffix(services, ","))
	}
	return ""
}

// Across says how the headline deltas of a setting were taken that are across states of the cluster; "" where there are none.
func Across(deltas []result.Delta) string {
	fewest, most := 0, 0
	var first *result.Delta
	for i, d := range deltas {
		switch {
		case d.Across == nil:
			continue
		case first == nil:
			first, fewest, most = &deltas[i], d.Blocks, d.Blocks
		}
		fewest, most = min(fewest, d.Blocks), max(most, d.Blocks)
	}
	if first == nil {
		return ""
	}
	visits := unit.Counted(most, "visit")
	if fewest < most {
		visits = fmt.Sprintf("%d to %s", fewest, visits)
	}
	how := "the figures of the visits are compared as they are"
	if r := first.Across.Reference; r != "" {
		how = fmt.Sprintf("double differences, of what each visit differs from %s in the same visit, which the null checks say is tighter", r)
	}
	return fmt.Sprintf("Against %s, across %s to each state of the cluster, paired block by block: %s.", first.Baseline, visits, how)
}
