package words

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"netdelta/experiment/plan"
	"netdelta/insight"
	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// The kinds of result.Advice.
const (
	KindChange  = "change"
	KindKeep    = "keep"
	KindFix     = "fix"
	KindMeasure = "measure"
	// KindLastResort is a change that gives up a network of the pod's own.
	KindLastResort = "last-resort"
)

// Folder stands for the run folder in commands: a record does not know where it is kept.
const Folder = "DIR"

// InFolder is a command with the run folder in place of Folder; "" leaves it.
func InFolder(command, dir string) string {
	if dir == "" {
		return command
	}
	words := strings.Split(command, " ")
	for i, word := range words {
		if rest, found := strings.CutPrefix(word, Folder); found && (rest == "" || rest[0] == '/') {
			words[i] = dir + rest
		}
	}
	return strings.Join(words, " ")
}

// Advice puts an opportunity in words.
func Advice(a insight.Advice) result.Advice {
	switch a.Kind {
	case insight.AdviceChange:
		return opportunity(a.Change, a.Run)
	case insight.AdviceLastResort:
		out := opportunity(a.Change, a.Run)
		out.Kind, out.Says = KindLastResort, "If all else fails, t"+strings.TrimPrefix(out.Says, "T")
		return out
	case insight.AdviceBroken:
		return result.Advice{
			Kind: KindFix, Says: "Repair the network first: " + strings.TrimSuffix(a.Finding.Says, ".") + ".",
			Why: "Nothing could be measured over it, and your own pods may meet the same; what to change is for a run on a network that works.",
			How: []string{a.Finding.Fix},
		}
	case insight.AdviceFree:
		return result.Advice{
			Kind: KindKeep,
			Says: fmt.Sprintf("For %s %s, keep %s: %s networking would gain nothing that matters.", a.Workload, At(a.Placement), List(a.Networks), a.Baseline),
			Why:  fmt.Sprintf("The cost is inside the margin of %g%% in every setting measured: %s.", a.Margin*100, loads(a.Settings)),
		}
	case insight.AdviceDisk:
		return result.Advice{
			Kind: KindKeep, Says: "Don't change the network for " + loads(a.Settings) + ": the disk bounds it.",
			Why: "Its operations take nearly all that the server's storage does without a network.",
		}
	case insight.AdviceLink:
		out := result.Advice{
			Kind: KindChange, Says: "For " + loads(a.Settings) + ", a faster link or smaller headers help; a network that only costs less CPU does not.",
			Why: "The links carried at least 90% of their rate on every network.",
		}
		return out
	case insight.AdviceFix:
		r := findingRecipe(a.Finding, a.Run)
		return result.Advice{
			Kind: KindFix, Says: fmt.Sprintf("Look at %s: %s.", a.Finding.Topic, found(a.Finding)),
			Why: "Found by the doctor; " + gainOfFix(a.Change) + ".", How: r.how, Undo: r.undo, Risk: r.risk,
		}
	case insight.AdviceSight:
		return result.Advice{
			Kind: KindFix, Says: "See more of the nodes: " + strings.TrimSuffix(a.Finding.Says, ".") + ".", Why: "As it is, " + a.Finding.Why + ".",
			How: []string{"netdelta advise" + on(a.Run, true) + " --node-agent   # in a namespace that admits it"},
		}
	}
	return measure(a)
}

// gainOfFix says what the run knows of a fix that it does not advise by itself.
func gainOfFix(c insight.Change) string {
	if len(c.Open) == 0 {
		return "what a fix gains was not measured"
	}
	d := c.Open[0]
	for _, other := range c.Open { // the doctor's fix is about packets between nodes
		if other.Placement == result.CrossNode {
			d = other
			break
		}
	}
	return fmt.Sprintf("what it gains can't be told yet: %s in place of %s, %s %s", c.To, c.From, Gained(*gain(d)), inSetting(c, d))
}

// Brief is as much of the explanation of an entry of advice as has room behind it: so many of its clauses, the most important first, that
// the whole fits. rest are the others.
func Brief(a result.Advice, fits func(text string) bool) (why string, rest []string) {
	if a.Why == "" {
		return "", nil
	}
	rest = strings.Split(strings.TrimSuffix(a.Why, "."), "; ")
	for len(rest) > 0 {
		longer := rest[0] + "."
		if why != "" {
			longer = strings.TrimSuffix(why, ".") + "; " + longer
		}
		if !fits(a.Says + " " + longer) {
			break
		}
		why, rest = longer, rest[1:]
	}
	return why, rest
}

// opportunity words a change.
func opportunity(c insight.Change, run result.Run) result.Advice {
	best := c.Gain()
	out := result.Advice{Kind: KindChange, Gain: gain(best), Why: evidence(c)}
	r := recipeOf(c, run)
	out.How, out.Undo, out.Risk = r.how, r.undo, r.risk
	change := fmt.Sprintf("%s in place of %s", c.To, c.From)
	switch {
	case c.Factor != "":
		change = fmt.Sprintf("%s %s in place of %s", factor(c.Factor), c.To, c.From)
	case len(c.Moves) > 0:
		change += " (" + strings.Join(systems(c.Moves), ", ") + ")"
	case c.Applied != nil:
		change += ", as the study did"
	case c.Choice != nil:
		change += ", if you are free to choose"
	}
	out.Says = fmt.Sprintf("Take %s: %s %s.", change, Gained(*out.Gain), inSetting(c, best))
	return out
}

// inSetting says in which setting a change gains, and of a condition on which network; the condition's own level is left out.
func inSetting(c insight.Change, d result.Delta) string {
	setting, on := d.Setting, ""
	if c.Factor != "" {
		setting.Params, on = setting.Params.Without(c.Factor), "on "+insight.Name(d.Network, d.Path)+", "
	}
	return on + At(d.Placement) + " (" + Load(setting) + ")"
}

// gain is a delta as a gain.
func gain(d result.Delta) *result.Gain {
	return &result.Gain{
		Setting: Title(d.Setting), Metric: d.Metric, Unit: Unit(d), Better: d.Better, Ratio: d.Ratio, RatioLow: d.RatioLow, RatioHigh: d.RatioHigh,
		Difference: d.Difference, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh,
	}
}

// Gained says how much a gain is: "-27% [-29, -25], -7.02 µs of p50".
func Gained(g result.Gain) string {
	d := result.Delta{
		Better: g.Better, Unit: g.Unit, Judgement: result.Judgement{
			Ratio: g.Ratio, RatioLow: g.RatioLow, RatioHigh: g.RatioHigh,
			Difference: g.Difference, DifferenceLow: g.DifferenceLow, DifferenceHigh: g.DifferenceHigh,
		},
	}
	amount := fmt.Sprintf("%s of %s", Difference(g.Unit, g.Difference), g.Metric)
	if g.Ratio == 0 {
		return amount
	}
	if insight.HasInterval(d) {
		return fmt.Sprintf("%s %s, %s", Percent(g.Ratio), Interval(d), amount)
	}
	return Percent(g.Ratio) + ", " + amount
}

// evidence says in which settings a change gains and in which not.
func evidence(c insight.Change) string {
	var parts []string
	add := func(deltas []result.Delta, verdict string) {
		if len(deltas) > 0 {
			parts = append(parts, fmt.Sprintf("%s in %d", verdict, len(deltas)))
		}
	}
	add(c.Better, "faster")
	add(c.Worse, "slower")
	add(c.Same, "the same")
	add(c.Open, "unresolved")
	n := len(c.Better) + len(c.Worse) + len(c.Same) + len(c.Open)
	what := "settings measured"
	if c.Factor != "" {
		what = "comparisons of a network in a setting"
	}
	text := fmt.Sprintf("Held against each other in %d %s: %s", n, what, strings.Join(parts, ", "))
	if n == 1 {
		text = "Held against each other in the one setting measured"
	}
	told := map[string]bool{c.Gain().Workload: true}
	for _, d := range c.Better {
		if !told[d.Workload] {
			text += fmt.Sprintf("; it gains %s, %s", Gained(*gain(d)), inSetting(c, d))
		}
		told[d.Workload] = true
	}
	if len(c.Worse) > 0 {
		d := c.Worse[0]
		text += fmt.Sprintf("; it costs %s, %s, %s", Percent(d.Ratio), Added(d), inSetting(c, d))
	}
	if c.Choice != nil {
		says := fmt.Sprintf("the worst case of %s over %s is the least of all networks", c.To, known(*c.Choice))
		if c.Choice.Settings == 1 && c.Choice.Unknown == 0 {
			says = c.To + " costs the least of all networks there"
		}
		text += fmt.Sprintf("; %s: %s%s, against %s of %s", says, Percent(c.Choice.Least.Ratio), tiedWith(c.Choice.Tied), Percent(c.Choice.Most.Ratio), c.From)
	}
	text += forecast(c)
	if c.Finding != nil {
		text += "; the doctor found it, too: " + strings.TrimSuffix(c.Finding.Says, ".")
	}
	return text + "."
}

// forecast says what a change between two of a lab's networks would make of the time that the cluster's own pods take: less by the same
// share, since each pass through their node's stack costs them more, or by the same time. docs/what-if.md holds both against two migrations.
func forecast(c insight.Change) string {
	gain := c.Gain()
	if c.Pod == nil || Unit(gain) != Unit(*c.Pod) || insight.HigherBetter(gain) {
		return ""
	}
	now := c.Pod.Value
	share, time := now*gain.Ratio, now+gain.Difference
	if min(share, time) <= 0 {
		return ""
	}
	return fmt.Sprintf("; the pods of this cluster take %s there, and may be expected to take %s (less by the same share) to %s (by the same time)",
		Value(Unit(gain), now), Value(Unit(gain), share), Value(Unit(gain), time))
}

// known says on how many settings a choice rests.
func known(c insight.Choice) string {
	if c.Unknown == 0 {
		return unit.Counted(c.Settings, "setting")
	}
	return fmt.Sprintf("%d of %d settings", c.Settings, c.Settings+c.Unknown)
}

// systems are the systems whose users can make a change, each once.
func systems(moves []network.Move) []string {
	var all []string
	for _, m := range moves {
		all = gather.Once(all, m.From.System)
	}
	return all
}

// measure words what a run would tell that this one does not.
func measure(a insight.Advice) result.Advice {
	out := result.Advice{Kind: KindMeasure}
	switch a.Kind {
	case insight.AdviceMove:
		networks := []string{a.Run.Baseline()}
		var changes []string
		for _, m := range a.Untried {
			from, to := m.From.Network, m.To.Network
			if slices.ContainsFunc(a.Run.Cells, func(c result.Cell) bool { return c.Network == m.From.Name }) { // the user calls it so
				from, to = m.From.Name, m.To.Name
			}
			networks, changes = gather.Once(gather.Once(networks, from), to), gather.Once(changes, from+" to "+to)
		}
		out.Says = "Measure what users of " + List(systems(a.Untried)) + " could change to."
		out.Why = fmt.Sprintf("%s measured: %s.", agree(len(changes), "One change was not", "These changes were not"), strings.Join(changes, ", "))
		out.How = []string{again(a.Run) + " --networks " + strings.Join(networks, ",")}
	case insight.AdviceWhatIf:
		changes := gather.Each(a.Untried, func(m network.Move) string { return m.To.Name })
		own := a.Untried[0].From.Name
		out.Says = fmt.Sprintf("Measure on these nodes, before the change, what %s would gain over %s.", List(changes), own)
		out.Why = "It puts a privileged pod on each node for the time of the run, and leaves the cluster's network as it is."
		out.How = []string{"netdelta advise" + on(a.Run, true) + " --what-if"}
	case insight.AdviceMTU:
		out.Says, out.Why = "Measure larger packets.", "Bulk transfers were measured with an MTU of 1500 alone, and each packet has its price."
		out.How = []string{again(a.Run) + " --mtu 1500,9000"}
	case insight.AdviceLeftOut:
		out.Says = fmt.Sprintf("Measure what the time budget left out: %s of %s.", unit.Counted(len(a.Settings), "setting"), List(workloads(a.Settings)))
		out.Why = "What holds at one size need not hold at others."
		out.How = []string{again(a.Run) + " --time-budget " + wholeBudget(a.Run)}
	case insight.AdviceKernel:
		out.Says = lacks(a)
		out.Why = "A guest has a kernel with all of them."
		command := again(a.Run) + " --testbed vm"
		if len(a.Beyond) > 0 {
			out.Why = "A guest has a kernel with all of them, but can't measure " + List(a.Beyond) + " on them."
			var rest []string
			for _, c := range a.Run.Cells {
				if !slices.Contains(a.Beyond, c.Workload) {
					rest = gather.Once(rest, c.Workload)
				}
			}
			command += " --workloads " + strings.Join(rest, ",")
		}
		out.How = []string{command}
	default:
		return more(a)
	}
	return out
}

// lacks says what a kernel lacks: networks, and conditions of networks that it has.
func lacks(a insight.Advice) string {
	conditions := unit.Counted(len(a.Settings), "setting") + " of the others"
	switch {
	case len(a.Settings) == 0:
		return "Measure the networks that this kernel lacks: " + List(a.Networks) + "."
	case len(a.Networks) == 0:
		return "Measure the conditions that this kernel lacks: " + unit.Counted(len(a.Settings), "setting") + "."
	}
	return "Measure what this kernel lacks: " + List(append(slices.Clone(a.Networks), conditions)) + "."
}

// workloads are the workloads of settings, each once.
func workloads(settings []result.Setting) []string {
	var all []string
	for _, s := range settings {
		all = gather.Once(all, s.Workload)
	}
	return all
}

// again is the command that runs the same study again: the file in the run folder has what the run was asked for, as the user gave it.
func again(run result.Run) string {
	return "netdelta run " + Folder + "/" + result.StudyFile + on(run, false)
}

// wholeBudget is the time budget that holds all of a study: the run's notes name it. Else it is long enough for every built-in study.
func wholeBudget(run result.Run) string {
	for _, n := range run.Notes {
		if _, rest, found := strings.Cut(n, "--time-budget "); found {
			budget, _, _ := strings.Cut(rest, " ")
			return strings.TrimRight(budget, ".;,")
		}
	}
	return "15m"
}

// more says what would settle unresolved deltas.
func more(a insight.Advice) result.Advice {
	out := result.Advice{Kind: KindMeasure, Says: "Give the run more time."}
	out.Why = fmt.Sprintf("%d of %d headline deltas %s unresolved", a.Open, a.Headlines, agree(a.Open, "is", "are"))
	if a.Need > 0 {
		out.Why += fmt.Sprintf("; about %d builds would settle %s at these estimates", a.Need, agree(a.Open, "it", "them"))
	}
	out.Why += "."
	switch {
	case a.Run.Exact != nil:
		out.Says = "Count in more guests: a larger --builds."
	case insight.Busy(a.Run): // more builds beside the same load would say no more
		out.Says = "Measure again while nothing else runs on this machine."
	case a.Run.Testbed == result.Imported:
		out.Says = "Measure more, the networks in turn: each file of a network is a build."
	default:
		command := Resume(a.Run)
		if a.Run.Ended == plan.EndedBuilds { // as many as were asked for: time alone adds none
			command += fmt.Sprintf(" --builds %d", max(a.Need, builds(a.Run)+stats.DefaultMinBuilds))
		}
		out.How = []string{fmt.Sprintf("%s --time-budget %s", command, longer(a))}
	}
	return out
}

// builds is how many a run has, at most of a delta.
func builds(run result.Run) int {
	most := 0
	for _, d := range run.Deltas {
		most = max(most, d.Blocks)
	}
	return most
}

// longer is a time budget that makes the missing builds, as far as the run so far tells how long one takes: at most an hour.
func longer(a insight.Advice) string {
	took, builds := a.Run.Took().Minutes(), builds(a.Run)
	minutes := 2 * took
	if a.Need > builds && builds > 0 {
		minutes = took * float64(a.Need) / float64(builds)
	}
	return fmt.Sprintf("%dm", int(math.Ceil(min(max(minutes, 1), 60))))
}
