package insight_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"netdelta/experiment/plan"
	"netdelta/insight"
	"netdelta/network"
	"netdelta/report/words"
	"netdelta/result"
)

// advised is what a run and direct deltas of it are advised, in words.
func advised(t *testing.T, run result.Run, direct ...result.Delta) []result.Advice {
	t.Helper()
	var all []result.Advice
	for _, found := range insight.Advise(run, direct) {
		a := words.Advice(found)
		if a.Why == "" || a.Says == "" || a.Kind == "" {
			t.Errorf("an advice lacks its reason, its sentence or its kind: %+v", a)
		}
		all = append(all, a)
	}
	return all
}

// saying are the sentences of one kind.
func saying(all []result.Advice, kind string) []string {
	var list []string
	for _, a := range all {
		if a.Kind == kind {
			list = append(list, a.Says)
		}
	}
	return list
}

// directly is a delta of one network against another.
func directly(from string, d result.Delta) result.Delta {
	d.Baseline = from
	return d
}

// Flannel's users gain across nodes by routing, and lose less on one node: both are said, with the commands and the risk.
func TestAdviceOnMoves(t *testing.T) {
	run := runOf(measured("vxlan-routed", "slower", 70, 73, 76), measured("routed", "slower", 25, 27, 29))
	gain := directly("vxlan-routed", measured("routed", "faster", -29, -27, -25))
	loss := directly("vxlan-routed", measured("routed", "slower", 3.9, 4.6, 5.3))
	loss.Placement = result.SameNode
	all := advised(t, run, loss, gain)
	if len(all) == 0 || all[0].Kind != words.KindChange || all[0].Gain == nil {
		t.Fatalf("no opportunity: %+v", all)
	}
	a := all[0]
	if want := "Take routed in place of vxlan-routed (Calico, Flannel, k3s): -27% [-29.0, -25.0], -8.10 µs of p50 across nodes (tcp-rr)."; a.Says != want {
		t.Errorf("got  %q\nwant %q", a.Says, want)
	}
	if want := "slower in 1; it costs +4.6%, +1.38 µs, on one node"; !strings.Contains(a.Why, want) {
		t.Errorf("%q does not say %q", a.Why, want)
	}
	for _, want := range []string{"# Calico", "kubectl -n kube-flannel rollout restart daemonset/kube-flannel-ds", "# k3s"} {
		if !slices.Contains(a.How, want) {
			t.Errorf("how lacks %q: %q", want, a.How)
		}
	}
	if !strings.Contains(a.Risk, "one link") || len(a.Undo) != len(a.How) {
		t.Errorf("risk %q, undo %q", a.Risk, a.Undo)
	}
	// Where it loses more than it surely gains, it is no opportunity.
	loss = directly("vxlan-routed", measured("routed", "slower", 48, 50, 52))
	if got := saying(advised(t, run, gain, loss), words.KindChange); len(got) != 0 {
		t.Errorf("advice that costs more than it gains: %q", got)
	}
}

// A lab's networks on a cluster's nodes are no choice for its pods, which the nodes' rules hold up; a move between two of a lab's is one.
func TestNoMoveToALab(t *testing.T) {
	run := runOf(measured("vxlan-routed", "slower", 20, 21, 22), measured("routed", "slower", 5, 6, 7), measured("pod", "slower", 70, 75, 80))
	away := directly("pod", measured("routed", "faster", -41, -40, -39))
	move := directly("vxlan-routed", measured("routed", "faster", -14, -13, -12))
	if got := saying(advised(t, run, away, move), words.KindChange); len(got) != 2 || !strings.Contains(got[0], "routed in place of pod") {
		t.Errorf("in a lab: %+v", got)
	}
	run.Environment.Cluster, run.Environment.Servers = &result.Cluster{}, []result.Server{{}}
	if got := saying(advised(t, run, away, move), words.KindChange); len(got) != 1 || !strings.Contains(got[0], "routed in place of vxlan-routed") {
		t.Errorf("on a cluster's nodes: %+v", got)
	}
}

// On a cluster's nodes a change is one of the cluster's own product; with it stands what its pods would gain, and what the doctor found.
func TestMoveOfTheClustersProduct(t *testing.T) {
	pod := measured("pod", "slower", 70, 75, 80)
	run := runOf(measured("vxlan-routed", "slower", 20, 21, 22), measured("routed", "slower", 5, 6, 7), pod)
	run.Environment.Findings = []result.Finding{{Topic: "encapsulation", Says: "packets are encapsulated.", Fix: "calico: vxlanMode CrossSubnet"}}
	run.Environment.Cluster = &result.Cluster{Product: "calico-vxlan"}
	before := saying(advised(t, run), words.KindMeasure)
	if len(before) == 0 || !strings.Contains(before[0], "what calico-native would gain over calico-vxlan") {
		t.Errorf("in a run on the cluster alone: %q", before)
	}
	if fix := saying(advised(t, run), words.KindFix); len(fix) != 1 {
		t.Errorf("the doctor's finding: %q", fix)
	}
	run.Environment.Servers = []result.Server{{}}
	for _, a := range advised(t, run, directly("vxlan-routed", measured("routed", "unresolved", -30, -13, 4))) {
		if want := "can't be told yet: routed in place of vxlan-routed, -13% [-30, +4]"; a.Kind == words.KindFix && !strings.Contains(a.Why, want) {
			t.Errorf("a change that was measured: %q does not say %q", a.Why, want)
		}
	}
	all := advised(t, run, directly("vxlan-routed", measured("routed", "faster", -14, -13, -12)))
	if got := saying(all, words.KindFix); len(got) != 0 {
		t.Errorf("said twice: %q", got)
	}
	i := slices.IndexFunc(all, func(a result.Advice) bool { return a.Kind == words.KindChange })
	if i < 0 {
		t.Fatalf("no change: %+v", all)
	}
	a := all[i]
	if !strings.Contains(a.Says, "Take routed in place of vxlan-routed (Calico)") || slices.Contains(a.How, "# k3s") {
		t.Errorf("%q by %q", a.Says, a.How)
	}
	for _, want := range []string{"the pods of this cluster take " + words.Value("ns", pod.Value), "the doctor found it, too: packets are encapsulated"} {
		if !strings.Contains(a.Why, want) {
			t.Errorf("%q does not say %q", a.Why, want)
		}
	}
}

// A network of which little is known is not called the fastest together with one that is.
func TestOpenNetworkIsNotFastest(t *testing.T) {
	run := runOf(measured("netkit", "faster", -42, -40, -38), measured("macvlan", "unresolved", -50, 20, 180), measured("vxlan", "slower", 48, 50, 52))
	run.Contrasts = []result.Contrast{{Cell: run.Deltas[0].Cell, Other: run.Deltas[2].Cell, Cheaper: run.Deltas[0].Cell}}
	c, ok := insight.Choose(run)
	if !ok || c.Best != "netkit" || len(c.Tied) > 0 || !slices.Equal(c.Open, []string{"macvlan"}) {
		t.Errorf("the choice is %+v, %v", c, ok)
	}
	if says := words.Summary(run)[0]; !strings.Contains(says, "netkit (-40%, -12.0 µs) is faster") || !strings.Contains(says, "macvlan is unresolved") {
		t.Errorf("the answer is %q", says)
	}
}

// What pods hardly have is shown after all else, and neither an answer nor a choice; its changes are weighed last.
func TestDemonstrationsComeLast(t *testing.T) {
	run := runOf(measured("sockmap", "faster", -42, -40, -38), measured("routed", "slower", 19, 20, 21), measured("vxlan-routed", "slower", 48, 50, 52),
		measured("udp-tun", "slower", 90, 100, 110))
	part := insight.Answered(run)[0]
	if got, want := insight.Names(part.Shown()), []string{"routed", "vxlan-routed", "sockmap", "udp-tun"}; !slices.Equal(got, want) {
		t.Errorf("shown are %v, want %v", got, want)
	}
	if says := words.Summary(run)[0]; strings.Contains(says, "sockmap") || strings.Contains(says, "udp-tun") || !strings.Contains(says, "vxlan-routed the most") {
		t.Errorf("the answer is %q", says)
	}
	changes := saying(advised(t, run, directly("udp-tun", measured("routed", "faster", -42, -40, -38)), directly("vxlan-routed", measured("routed", "faster", -21, -20, -19))), words.KindChange)
	if len(changes) != 2 || !strings.HasPrefix(changes[0], "Take routed in place of vxlan-routed") {
		t.Errorf("changes: %q", changes)
	}
}

// The answer is about the load that a study names first, across nodes first; where none of its workload was measured, that is said first.
func TestAnswerIsOfTheOwnWorkload(t *testing.T) {
	run := runOf(measured("routed", "slower", 19, 20, 21), measured("vxlan", "slower", 48, 50, 52))
	near := run.Deltas[1]
	near.Placement = result.SameNode
	run.Deltas = append([]result.Delta{near}, run.Deltas...)
	run.Cells = append([]result.Cell{{ID: "near", Network: "vxlan", Placement: result.SameNode, Workload: "tcp-rr", Path: near.Path, Role: result.RoleCell}}, run.Cells...)
	run.Deltas[0].Cell = "near"
	says := words.Summary(run)
	if len(says) < 2 || !strings.HasPrefix(says[0], "tcp-rr, across nodes") || !strings.HasPrefix(says[1], "tcp-rr, on one node") {
		t.Errorf("the answers are %q", says)
	}
	lacking := result.Cell{ID: "oltp", Network: "vxlan", Placement: result.CrossNode, Workload: "oltp", Role: result.RoleCell, Unsupported: "needs mariadbd; install mariadb-server"}
	run.Cells = append([]result.Cell{lacking}, run.Cells...)
	if says := words.Summary(run)[0]; !strings.HasPrefix(says, "Not measured: oltp") || !strings.Contains(says, "install mariadb-server") {
		t.Errorf("without the study's own workload the first sentence is %q", says)
	}
}

// The best of the worst case is not the network with the lowest figure anywhere.
func TestChoose(t *testing.T) {
	near := func(d result.Delta) result.Delta { d.Placement = result.SameNode; return d }
	run := runOf(measured("ebpf-routed", "slower", 29, 30, 31), measured("routed", "slower", 19, 20, 21), measured("vxlan", "slower", 48, 50, 52))
	for _, d := range []result.Delta{near(measured("ebpf-routed", "faster", -42, -40, -38)), near(measured("routed", "slower", 20, 21, 22)), near(measured("vxlan", "slower", 14, 15, 16))} {
		run.Deltas = append(run.Deltas, d)
		run.Cells = append(run.Cells, result.Cell{ID: d.Network + "near", Network: d.Network, Placement: d.Placement, Workload: d.Workload, Path: d.Path, Role: result.RoleCell})
	}
	c, ok := insight.Choose(run)
	if !ok || c.Best != "routed" || c.Worst != "vxlan" || c.Settings != 2 || math.Abs(c.Least.Ratio-1.21) > 1e-9 || len(c.Tied) != 0 {
		t.Errorf("the choice is %+v, %v", c, ok)
	}
	// A setting that the budget left out, in which nothing has an interval, is no reason not to choose.
	left := hasty("routed", 10)
	left.Params.Message = 2048
	run.Deltas = append(run.Deltas, left)
	run.Cells = append(run.Cells, result.Cell{ID: "left", Network: "routed", Placement: left.Placement, Workload: "tcp-rr", Params: left.Params, Role: result.RoleCell})
	if c, ok := insight.Choose(run); !ok || c.Best != "routed" || c.Settings != 2 {
		t.Errorf("with a setting left out: %+v, %v", c, ok)
	}
	// One of which nothing is known yet is counted apart.
	vague := measured("vxlan", "unresolved", -3, 1, 5)
	vague.Params.Message = 4096
	run.Deltas = append(run.Deltas, vague)
	run.Cells = append(run.Cells, result.Cell{ID: "vague", Network: "vxlan", Placement: vague.Placement, Workload: "tcp-rr", Params: vague.Params, Role: result.RoleCell})
	if c, ok := insight.Choose(run); !ok || c.Settings != 2 || c.Unknown != 2 {
		t.Errorf("with an open setting: %+v, %v", c, ok)
	}
	// A network that was measured in one of the settings alone can't be the best of all.
	run.Deltas = slices.DeleteFunc(run.Deltas, func(d result.Delta) bool { return d.Network == "routed" && d.Placement == result.SameNode })
	if c, ok := insight.Choose(run); !ok || c.Best != "ebpf-routed" {
		t.Errorf("measured in one setting: %+v, %v", c, ok)
	}
}

// The direct comparison of two networks finds what truly lies between them, with an interval of its own.
func TestDirectsFindTheTruth(t *testing.T) {
	w := usual()
	w.networks = []string{"vxlan-routed", "routed"}
	w.logs = map[string]float64{"vxlan-routed": math.Log(1.31), "routed": math.Log(1.12)}
	run := result.Run{Cells: w.cells(), Confidence: 0.95, Margin: 0.02}
	trials := w.trials(t)
	o := insight.Options{Confidence: 0.95, Margin: 0.02}
	run.Deltas, run.Null, _ = insight.Deltas(run.Cells, trials, o)
	direct := insight.Directs(run, trials, o)
	if len(direct) != 1 {
		t.Fatalf("%d direct deltas", len(direct))
	}
	d := direct[0]
	truth := 1.12 / 1.31
	if d.Network != "routed" || d.Baseline != "vxlan-routed" || d.Verdict != "faster" || d.RatioLow == nil || *d.RatioLow > truth || *d.RatioHigh < truth {
		t.Errorf("routed against vxlan-routed: %+v, the truth is %.3f", d, truth)
	}
	added := baseNS * (1.12 - 1.31)
	if d.DifferenceLow == nil || *d.DifferenceLow > added*0.9 || *d.DifferenceHigh < added*1.2 {
		t.Errorf("time %v [%v, %v], the truth is about %.0f", d.Difference, d.DifferenceLow, d.DifferenceHigh, added)
	}
}

func TestAdviceOnWhatIsTheSame(t *testing.T) {
	macvlan := measured("macvlan", "same", -0.5, 0.3, 1.1)
	want := []string{"For tcp-rr across nodes, keep macvlan: host networking would gain nothing that matters."}
	if diff := cmp.Diff(want, saying(advised(t, runOf(macvlan)), words.KindKeep)); diff != "" {
		t.Errorf("advice on one network (-want +got):\n%s", diff)
	}
}

// An effect is an opportunity in the direction in which it gains.
func TestAdviceOnConditions(t *testing.T) {
	effect := func(factor, from, to, verdict string, low, ratio, high float64) result.Effect {
		d := measured("vxlan", verdict, low, ratio, high)
		return result.Effect{
			Cell: "vxlan", Network: d.Network, Setting: d.Setting, Path: d.Path, Factor: factor, From: from, To: to,
			Metric: d.Metric, Headline: true, Unit: d.Unit, Better: d.Better, FromValue: d.BaselineValue, Value: d.Value, Judgement: result.Judgement{Ratio: d.Ratio,
				RatioLow: d.RatioLow, RatioHigh: d.RatioHigh, Difference: d.Difference, DifferenceLow: d.DifferenceLow, DifferenceHigh: d.DifferenceHigh, Verdict: verdict},
		}
	}
	run := runOf()
	run.Effects = []result.Effect{
		effect("mtu", "1500", "9000", "faster", -22, -20, -18), effect("offload.gro", "on", "off", "slower", 45, 50, 55),
		effect("link.rate", "1Gbit/s", "10Gbit/s", "faster", -50, -49, -48), effect("policy", "none", "iptables:10", "unresolved", -1, 1, 3),
	}
	all := advised(t, run)
	want := []string{
		"Take GRO on in place of off: -33% [-35.5, -31.0], -15.0 µs of p50 on vxlan, across nodes (tcp-rr).",
		"Take MTU 9000 in place of 1500: -20% [-22.0, -18.0], -6.00 µs of p50 on vxlan, across nodes (tcp-rr).",
	}
	if diff := cmp.Diff(want, saying(all, words.KindChange)); diff != "" {
		t.Errorf("advice on conditions, the largest gain first (-want +got):\n%s", diff)
	}
	if len(all) > 1 && (all[0].How[0] != "ethtool -K eth0 gro on" || all[0].Undo[0] != "ethtool -K eth0 gro off" || all[1].Risk == "") {
		t.Errorf("how they are made: %+v", all[:2])
	}
}

// What was not measured is offered as the run that would tell.
func TestAdviceToMeasure(t *testing.T) {
	run := runOf(measured("vxlan-routed", "slower", 70, 73, 76))
	run.Study, run.Testbed, run.Run = "latency", "lab", "latency-1"
	run.Notes = []string{"the time budget of 1m holds 1 of 9 workload settings; --time-budget 4m holds all"}
	left := run.Cells[2]
	left.ID, left.Params.Message, left.Skipped = "left", 2048, "left out"
	lacking := run.Cells[2]
	lacking.ID, lacking.Network, lacking.Unsupported, lacking.InGuest = "ipip", "ipip", "needs ipip links", true
	bare := run.Cells[2]
	bare.ID, bare.Network, bare.Unsupported = "geneve", "geneve", "needs a program that no guest has, and not with --testbed vm"
	run.Cells = append(run.Cells, left, lacking, bare)
	var commands []string
	for _, a := range advised(t, run) {
		commands = append(commands, a.How...)
		if strings.Contains(a.Says, "this kernel lacks") && strings.Contains(a.Says, "geneve") {
			t.Errorf("the guest is said to have what it has not: %s", a.Says)
		}
	}
	for _, want := range []string{"netdelta run DIR/study.yaml --networks host,vxlan-routed,routed", "netdelta run DIR/study.yaml --time-budget 4m", "netdelta run DIR/study.yaml --testbed vm"} {
		if !slices.Contains(commands, want) {
			t.Errorf("no advice is %q: %q", want, commands)
		}
	}
	served := lacking
	served.ID, served.Workload, served.InGuest = "served", "oltp", false // a guest has the kernel, and no database
	here := served
	here.ID, here.Network, here.Unsupported = "here", "vxlan-routed", ""
	database := run
	database.Cells = append(slices.Clone(run.Cells), served, here)
	if !slices.ContainsFunc(advised(t, database), func(a result.Advice) bool {
		return strings.Contains(a.Why, "can't measure oltp on them") && slices.Equal(a.How, []string{"netdelta run DIR/study.yaml --testbed vm --workloads tcp-rr"})
	}) {
		t.Errorf("the guest is offered for a database: %+v", advised(t, database))
	}
	bonded := lacking
	bonded.ID, bonded.Network, bonded.Params.Conditions.BondMode = "bonded", "vxlan-routed", "802.3ad"
	run.Cells = append(run.Cells, bonded)
	if !slices.ContainsFunc(advised(t, run), func(a result.Advice) bool {
		return a.Says == "Measure what this kernel lacks: ipip and 1 setting of the others."
	}) {
		t.Error("a condition that this kernel lacks is not told from a network")
	}
	vague := measured("bridge", "unresolved", -3, 1, 5)
	vague.Need = 40
	open := runOf(vague)
	open.Run = "latency-1"
	counted := open
	counted.Ended = "builds" // as many as were asked for: more have to be
	if all := advised(t, counted); !slices.ContainsFunc(all, func(a result.Advice) bool {
		return len(a.How) > 0 && strings.HasPrefix(a.How[0], "netdelta run --resume DIR --builds 40 --time-budget ")
	}) {
		t.Errorf("advice on a run of so many builds: %+v", all)
	}
	for _, a := range advised(t, open) {
		if strings.Contains(a.Why, "1 of 1 headline deltas is unresolved; about 40 builds") && strings.HasPrefix(a.How[0], "netdelta run --resume DIR --time-budget ") {
			return
		}
	}
	t.Errorf("advice on what is unresolved: %+v", advised(t, open))
}

// A finding of the doctor that has a fix is advice.
func TestAdviceOfTheDoctor(t *testing.T) {
	run := runOf()
	run.Environment.Findings = []result.Finding{
		{Topic: "clock", Says: "hpet: reading it is slow.", Fix: "boot with clocksource=tsc"}, {Topic: "mtu", Says: "nodes differ"},
	}
	if diff := cmp.Diff([]string{"Look at clock: hpet: reading it is slow."}, saying(advised(t, run), words.KindFix)); diff != "" {
		t.Errorf("advice of the doctor (-want +got):\n%s", diff)
	}
}

// Where a network is broken, its repair is all that is advised: no change of what could not be measured.
func TestAdviceOnABrokenNetwork(t *testing.T) {
	run := runOf(measured("pod", "slower", 70, 75, 80), measured("nodeport", "faster", -30, -25, -20))
	run.Environment.Cluster = &result.Cluster{Product: "calico-vxlan"}
	run.Environment.Findings = []result.Finding{
		{Topic: "encapsulation", Says: "packets are encapsulated", Fix: "calico: vxlanMode CrossSubnet"},
		{Topic: result.TopicBroken, Says: "packets above 1450 bytes vanish from w1 to w2", Fix: "raise the MTU of the switch"},
	}
	all := advised(t, run, directly("pod", measured("nodeport", "faster", -30, -25, -20)))
	if len(all) != 1 || all[0].Kind != words.KindFix || !strings.Contains(all[0].Says, "1450 bytes vanish from w1 to w2") || all[0].How[0] != "raise the MTU of the switch" {
		t.Errorf("got %+v", all)
	}
}

// That a service is as fast as its pod is no advice: nobody chooses between the two.
func TestNothingToKeepBesidePods(t *testing.T) {
	headless := measured("headless", "same", -0.5, 0.3, 1.1)
	headless.Baseline = "pod"
	run := runOf(headless)
	for i := range run.Cells {
		if run.Cells[i].Network == "host" {
			run.Cells[i].Network = "pod"
		}
	}
	if got := saying(advised(t, run), words.KindKeep); len(got) != 1 {
		t.Errorf("in a lab: %q", got)
	}
	run.Environment.Cluster = &result.Cluster{}
	if got := saying(advised(t, run), words.KindKeep); len(got) != 0 {
		t.Errorf("on a cluster: %q", got)
	}
}

// On a cluster the run that would weigh a fix stands next to it, before last resorts and more time; what the doctor could not see is last.
func TestOrderOfAdviceOnACluster(t *testing.T) {
	run := runOf(measured("pod", "slower", 70, 75, 80), measured("nodeport", "unresolved", -10, 5, 20))
	run.Environment.Findings = []result.Finding{
		{Topic: insight.TopicNodeAgent, Says: "cards were not looked at", Why: "little is known", Fix: "--node-agent"}, {Topic: "encapsulation", Says: "packets are encapsulated", Fix: "calico: vxlanMode CrossSubnet"},
	}
	run.Environment.Cluster, run.Options = &result.Cluster{Product: "calico-vxlan"}, map[string]string{"base-image": "busybox"}
	var got []string
	for _, a := range advised(t, run) {
		got = append(got, a.Says[:12])
	}
	if want := []string{"Look at enca", "Measure on t", "If all else ", "Give the run", "See more of "}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	all := advised(t, run)
	if last := all[len(all)-1]; len(last.How) != 1 || !strings.HasPrefix(last.How[0], "netdelta advise --base-image busybox --node-agent") {
		t.Errorf("how to see more: %q", last.How)
	}
	run.Advice, run.Ended, run.Goals = all, plan.EndedBudget, []result.Goal{{Goal: "nodeport.p50 > +20%", Verdict: result.GoalUnknown}}
	if i := slices.IndexFunc(all, func(a result.Advice) bool { return strings.HasPrefix(a.Says, "Give the run") }); words.Next(run) != all[i].How[0] {
		t.Errorf("for a goal that is unknown the next command is %q, and more time is had by %q", words.Next(run), all[i].How[0])
	}
}

// Every move has commands both ways.
func TestMovesHaveRecipes(t *testing.T) {
	for _, m := range network.Moves() {
		a := words.Advice(insight.Advice{Kind: insight.AdviceChange, Change: insight.Change{
			From: m.From.Network, To: m.To.Network, Moves: []network.Move{m}, Better: []result.Delta{measured(m.To.Network, "faster", -20, -19, -18)},
		}})
		if len(a.How) == 0 || len(a.Undo) == 0 || a.Risk == "" {
			t.Errorf("%s to %s: %+v", m.From.Name, m.To.Name, a)
		}
	}
}

// On a cluster the ways to a pod exist side by side: one that costs less than another is no change of a network. Those that a client can
// change between for what they are stay.
func TestAdviceOnWaysToPods(t *testing.T) {
	run := runOf(measured("nodeport", "slower", 47, 49, 51), measured("clusterip", "slower", 80, 83, 86))
	direct := directly("clusterip", measured("nodeport", "faster", -20.7, -18, -15.3))
	if got := saying(advised(t, run, direct), words.KindChange); len(got) != 0 {
		t.Errorf("advised is %q", got)
	}
	run = runOf(measured("headless", "slower", 47, 49, 51), measured("clusterip", "slower", 80, 83, 86))
	direct = directly("clusterip", measured("headless", "faster", -20.7, -18, -15.3))
	if got := saying(advised(t, run, direct), words.KindChange); len(got) != 1 {
		t.Errorf("advised is %q, want headless in place of clusterip", got)
	}
}

// Where the doctor found Cilium beneath kube-proxy, its values say how to lead pods past the nodes' firewall. The recipe for native routing has them too,
// since that is what the lab's eBPF networks stand for.
func TestAdviceOnHostRouting(t *testing.T) {
	run := runOf()
	run.Environment.Findings = []result.Finding{{Topic: "host routing", Says: "cilium leads pods' packets through their node's stack", Fix: "cilium: kubeProxyReplacement true"}}
	a := advised(t, run)[0]
	if how := strings.Join(a.How, "\n"); !strings.Contains(how, "helm upgrade cilium") || !strings.Contains(how, "kubeProxyReplacement=true --set bpf.masquerade=true") || a.Risk == "" {
		t.Errorf("how: %s; risk: %s", how, a.Risk)
	}
	if undo := strings.Join(a.Undo, "\n"); !strings.Contains(undo, "kubeProxyReplacement=false") {
		t.Errorf("undo: %s", undo)
	}
	run.Environment.Findings = []result.Finding{{Topic: "encapsulation", Says: "packets are encapsulated (vxlan)", Fix: "cilium: routing-mode native"}}
	run.Environment.Cluster = &result.Cluster{Product: "cilium"}
	if how := strings.Join(advised(t, run)[0].How, "\n"); !strings.Contains(how, "routingMode=native") || !strings.Contains(how, "kubeProxyReplacement=true") {
		t.Errorf("native routing alone gains nothing beneath kube-proxy: %s", how)
	}
}

// Where the doctor of a cluster found an encapsulation that is not needed, the commands of its product say how to be without, and how to
// go back.
func TestAdviceOnNeedlessEncapsulation(t *testing.T) {
	run := runOf()
	run.Environment.Findings = []result.Finding{{Topic: "encapsulation", Says: "packets between nodes are encapsulated (vxlan)", Fix: "flannel: Backend.Type host-gw, or vxlan with DirectRouting true"}}
	run.Environment.Cluster = &result.Cluster{Product: "flannel"}
	a := advised(t, run)[0]
	if how := strings.Join(a.How, "\n"); !strings.Contains(how, `"Type": "host-gw"`) || !strings.Contains(how, "DirectRouting") || a.Risk == "" {
		t.Errorf("how: %s; risk: %s", how, a.Risk)
	}
	if undo := strings.Join(a.Undo, "\n"); !strings.Contains(undo, `"Type": "vxlan"`) {
		t.Errorf("undo: %s", undo)
	}
}

// A pod in its node's network is a last resort: what the doctor found comes first, and the summary has the costs as its answer.
func TestLastResort(t *testing.T) {
	run := runOf(measured("pod", "slower", 70, 73, 76))
	run.Environment.Findings = []result.Finding{{Topic: "encapsulation", Says: "packets are encapsulated (vxlan)", Fix: "flannel: host-gw"}}
	run.Advice = advised(t, run)
	var kinds []string
	for _, a := range run.Advice {
		kinds = append(kinds, a.Kind)
	}
	if want := []string{words.KindFix, words.KindLastResort}; !slices.Equal(kinds, want) {
		t.Errorf("kinds %q, want %q", kinds, want)
	}
	if summary := words.Summary(run); len(summary) == 0 || strings.Contains(summary[0], "host in place of pod") || !strings.Contains(summary[0], "pod") {
		t.Errorf("summary %q", summary)
	}
}

// A change that a study made in a cluster is advised by the study's own steps, from the pods' network as it was found, whichever is the baseline.
func TestAdviceOnChangesOfTheStudy(t *testing.T) {
	changes := []result.Changed{{For: "routes", Apply: []string{"switch routes"}, Undo: []string{"switch vxlan"}}}
	pod := directly("routes", measured("pod", "slower", 35, 38, 41))
	for _, run := range []result.Run{runOf(pod), runOf(directly("pod", measured("routes", "faster", -29, -28, -27)))} {
		run.Environment.Cluster = &result.Cluster{Product: "calico-vxlan"}
		if got := saying(advised(t, run), words.KindChange); len(got) != 0 {
			t.Errorf("a change that the record does not know: %q", got)
		}
		run.Changes = changes
		all := advised(t, run)
		if len(all) == 0 || !strings.HasPrefix(all[0].Says, "Take routes in place of pod, as the study did: -28%") || !slices.Equal(all[0].How, changes[0].Apply) || !slices.Equal(all[0].Undo, changes[0].Undo) {
			t.Errorf("%+v", all)
		}
		run.Environment.Findings = []result.Finding{{Topic: "encapsulation", Says: "packets are encapsulated", Fix: "calico: vxlanMode CrossSubnet"}}
		run.Changes = []result.Changed{{For: "routes", Expect: "none", Apply: []string{"switch routes"}}}
		if again := advised(t, run); len(saying(again, words.KindFix)) != 0 || !strings.Contains(again[0].Why, "the doctor found it, too") {
			t.Errorf("what the study changed is left to the doctor: %+v", again)
		}
		if got := saying(all, words.KindMeasure); len(got) != 0 {
			t.Errorf("what was measured is to be measured: %q", got)
		}
	}
}

// A setting in which every network cuts datagrams up, and loopback does not, does not decide; alone it does.
func TestChooseLeavesOutWhatIsCutUp(t *testing.T) {
	large := func(d result.Delta) result.Delta {
		d.Setting = result.Setting{Workload: "udp-rr", Placement: result.SameNode, Params: result.Params{Message: 2048}}
		return d
	}
	run := runOf(large(measured("macvlan", "slower", 58, 59, 60)), large(measured("vxlan", "slower", 99, 100, 101)))
	for i := range run.Cells {
		run.Cells[i].Workload, run.Cells[i].Placement, run.Cells[i].Params.Message = "udp-rr", result.SameNode, 2048
	}
	if c, ok := insight.Choose(run); !ok || c.Settings != 1 || math.Abs(c.Least.Ratio-1.59) > 1e-9 {
		t.Errorf("alone: %+v, %v", c, ok)
	}
	for _, d := range []result.Delta{measured("macvlan", "slower", 4, 5, 6), measured("vxlan", "slower", 48, 50, 52)} {
		run.Deltas = append(run.Deltas, d)
		run.Cells = append(run.Cells, result.Cell{ID: d.Network + "across", Network: d.Network, Placement: d.Placement, Workload: d.Workload, Path: d.Path, Role: result.RoleCell})
	}
	if c, ok := insight.Choose(run); !ok || c.Settings != 1 || math.Abs(c.Least.Ratio-1.05) > 1e-9 {
		t.Errorf("beside another: %+v, %v", c, ok)
	}
	// With a larger MTU nothing is cut up.
	run.Environment.Links = []result.Link{{Name: "eth0", MTU: 9000}}
	if c, ok := insight.Choose(run); !ok || c.Settings != 2 {
		t.Errorf("with an MTU of 9000: %+v, %v", c, ok)
	}
}
