package insight

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// directs holds networks of a setting against each other in the headline metric, each delta's Network against its Baseline: the pairs
// that a user could change between (network.Moves, and the ways to a pod of a cluster), and in all settings the network whose worst
// cost is the greatest against the one whose worst cost is the least. Their p values are corrected as one family.
func (b *basis) directs(run result.Run) []result.Delta {
	wanted := pairs(run)
	parts := make([][]*contrast, len(b.sets))
	inParallel(len(b.sets), func(i int) {
		t := &b.sets[i]
		if t.baseline == nil {
			return
		}
		groups := t.groups(b.all)
		b.remembering(b.headline(t), func(m metric) {
			for _, to := range t.cells {
				for _, from := range t.cells {
					if !wanted[pair{from.Network, to.Network}] && !wanted[pair{Name(from.Network, from.Path), Name(to.Network, to.Path)}] {
						continue
					}
					if c, ok := t.direct(from, to, m, groups, b.all, b.options); ok {
						c.of = t
						parts[i] = append(parts[i], &c)
					}
				}
			}
		})
	})
	made := slices.Concat(parts...)
	for _, c := range made {
		c.floor = b.floors.of(c.of, c.metric)
	}
	return judged(made, b.options)
}

// pair names two networks, with their paths.
type pair struct{ from, to string }

// bare is a network's name without its path.
func bare(name string) string {
	name, _, _ = strings.Cut(name, " (")
	return name
}

// waysToPods are the changes that clients of a cluster's pods can make.
func waysToPods() []pair { return []pair{{"clusterip", "headless"}, {"nodeport", "clusterip"}} }

// pairs are those that are held against each other directly.
func pairs(run result.Run) map[pair]bool {
	all := map[pair]bool{}
	for _, p := range waysToPods() {
		all[p] = true
	}
	for _, m := range network.Moves() {
		for _, from := range []string{m.From.Network, m.From.Name} {
			for _, to := range []string{m.To.Network, m.To.Name} {
				all[pair{from, to}] = true
			}
		}
	}
	for _, c := range run.Changes {
		all[pair{podNetwork, c.For}] = true
	}
	if choice, ok := Choose(run); ok {
		all[pair{choice.Worst, choice.Best}] = true
	}
	return all
}

// direct holds one network against another of the same table.
func (t cellSet) direct(from, to result.Cell, m metric, groups map[string]int, all []batch, o Options) (contrast, bool) {
	others := []string{from.ID}
	reference := cellSet{baseline: &result.Cell{ID: from.ID, Network: Name(from.Network, from.Path)}}
	c, _, missing := reference.contrast(to, others, typical(m, others, all), m, all, o)
	if missing == nil {
		c.delta.Headline = true
		return c, true
	}
	if groups == nil || groups[from.ID] == groups[to.ID] {
		return contrast{}, false
	}
	// They never stood in one build, as states of a cluster: what each differs from the baseline is compared.
	across := t.compareDirectly(to, from, m, groups, all, o)
	if across.estimate.Builds == 0 {
		return contrast{}, false
	}
	d := result.Delta{
		Cell: to.ID, Network: to.Network, Baseline: Name(from.Network, from.Path), Setting: to.Setting(),
		Path: to.Path, Metric: m.name, Headline: true, Unit: m.unit, Better: m.better,
		BaselineValue: typical(m, others, all), Judgement: result.Judgement{Blocks: across.estimate.Builds, Excluded: map[string]int{}}, Bound: boundOf(to.ID, all),
	}
	fill(&d, m, across.estimate)
	return contrast{delta: d, metric: m, estimate: across.estimate, batches: across.batches}, true
}

// Choice are the networks whose greatest cost over the settings of a run is the least and the greatest of all: the best and the worst of
// the worst case. Networks are named with their paths.
type Choice struct {
	Best, Worst string
	// Least and Most are their greatest costs.
	Least, Most result.Delta
	// Tied are further networks that are not known to cost more than Best. Of Open too little is known to
	// say so: their own cost is unresolved, while the cost of Best is not.
	Tied, Open []string
	// Settings is how many settings it rests on: those in which something is known of a network. Of Unknown others nothing is.
	Settings, Unknown int
}

// CutUp says of a setting that its datagrams are larger than the MTU of a link: every network cuts them up, but for loopback, which the
// baseline is on one node.
func CutUp(run result.Run, s result.Setting) bool {
	if s.Placement != result.SameNode || !strings.HasPrefix(s.Workload, "udp-") || !slices.Contains(loopbacks(), run.Baseline()) {
		return false
	}
	mtu := int(s.Params.MTU)
	for _, l := range run.Environment.Links {
		if s.Params.MTU == 0 && l.Name != "lo" {
			mtu = max(mtu, l.MTU)
		}
	}
	const headers = 20 + 8 // IPv4 and UDP
	return int(s.Params.Message) > cmp.Or(mtu, int(network.DefaultMTU))-headers
}

// loopbacks are the baselines that are loopback on one node.
func loopbacks() []string { return []string{"host", network.Metal, "docker:host"} }

// chosenFrom are the parts of a run that a choice rests on: those with headline deltas that are not CutUp, or all where every one is.
func chosenFrom(run result.Run) []Part {
	all := slices.DeleteFunc(Parts(run), func(p Part) bool { return len(p.Headlines()) == 0 }) // the budget left it out
	if whole := gather.Where(all, func(p Part) bool { return !CutUp(run, p.Setting) }); len(whole) > 0 {
		return whole
	}
	return all
}

// Choose is the choice among the networks that were measured in all settings of which something is known; false where there are not
// two, or where the best can't be told from the worst. Settings that are CutUp and demonstrations don't count beside others.
func Choose(run result.Run) (Choice, bool) {
	var c Choice
	worst, in := map[string]result.Delta{}, map[string]int{}
	var order []string
	for _, part := range chosenFrom(run) {
		deltas := slices.DeleteFunc(part.withoutDemonstrations().Headlines(), func(d result.Delta) bool { return !HasInterval(d) || d.Ratio == 0 })
		if !slices.ContainsFunc(deltas, func(d result.Delta) bool { return d.Verdict != string(stats.Unresolved) }) {
			c.Unknown++
			continue
		}
		c.Settings++
		for _, d := range deltas {
			name := Name(d.Network, d.Path)
			if in[name] == 0 {
				order, worst[name] = append(order, name), d
			}
			in[name]++
			if Cost(d) > Cost(worst[name]) {
				worst[name] = d
			}
		}
	}
	whole := slices.DeleteFunc(order, func(name string) bool { return in[name] < c.Settings })
	if len(whole) < 2 {
		return c, false
	}
	slices.SortStableFunc(whole, func(a, b string) int { return cmp.Compare(Cost(worst[a]), Cost(worst[b])) })
	c.Best, c.Worst = whole[0], whole[len(whole)-1]
	c.Least, c.Most = worst[c.Best], worst[c.Worst]
	_, high := costRange(c.Least)
	cheaper := Part{Contrasts: run.Contrasts}.cheaper()
	for _, name := range whole[1:] {
		low, _ := costRange(worst[name])
		differ := low > high // in settings of their own, intervals are all that there is
		if worst[name].Setting == c.Least.Setting {
			differ = cheaper[[2]string{c.Least.Cell, worst[name].Cell}]
		}
		switch open := string(stats.Unresolved); {
		case differ:
		case worst[name].Verdict == open && c.Least.Verdict != open:
			c.Open = append(c.Open, name)
		default:
			c.Tied = append(c.Tied, name)
		}
	}
	return c, !slices.Contains(slices.Concat(c.Tied, c.Open), c.Worst)
}

// inverted is a delta seen from the other side: its baseline against its network. Only what an opportunity shows is turned.
func inverted(d result.Delta) result.Delta {
	d.Network, d.Path, d.Baseline = d.Baseline, "", Name(d.Network, d.Path)
	d.BaselineValue, d.Value, d.Difference = d.Value, d.BaselineValue, -d.Difference
	d.DifferenceLow, d.DifferenceHigh = negative(d.DifferenceHigh), negative(d.DifferenceLow)
	if d.Ratio > 0 {
		d.Ratio = 1 / d.Ratio
	}
	d.RatioLow, d.RatioHigh = reciprocal(d.RatioHigh), reciprocal(d.RatioLow)
	switch d.Verdict {
	case "slower":
		d.Verdict = "faster"
	case "faster":
		d.Verdict = "slower"
	}
	return d
}

func negative(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := -*x
	return &y
}

func reciprocal(x *float64) *float64 {
	if x == nil || *x == 0 {
		return nil
	}
	return finite(1 / *x)
}

// sureGain is the share that a delta gains at least, by its interval, on the scale of Cost; it is negative where nothing is sure.
func sureGain(d result.Delta) float64 {
	_, high := costRange(d)
	if math.IsInf(high, 0) {
		return math.Inf(-1)
	}
	return -high
}
