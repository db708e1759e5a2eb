package insight

import (
	"cmp"
	"math"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
)

// Change is what one change does in every setting in which both its sides were measured.
type Change struct {
	// Factor is what changes from the level From to the level To; "" of a change of network.
	Factor   string
	From, To string
	// Moves are how users of a system make a change of network; there are none where it takes another system.
	Moves []network.Move
	// Better, Worse, Same and Open are To against From by their verdicts, the surest gain and the surest loss first.
	Better, Worse, Same, Open []result.Delta
	// Choice is why To is the best of all; nil of other changes.
	Choice *Choice
}

// Gain is where the change gains most for sure.
func (c Change) Gain() result.Delta { return c.Better[0] }

// sort takes deltas of the change into its lists.
func (c *Change) sort(deltas []result.Delta) {
	for _, d := range deltas {
		list := &c.Open
		switch stats.Verdict(d.Verdict) {
		case stats.Faster:
			list = &c.Better
		case stats.Slower:
			list = &c.Worse
		case stats.Same:
			list = &c.Same
		}
		*list = append(*list, d)
	}
	slices.SortStableFunc(c.Better, func(a, b result.Delta) int { return cmp.Compare(sureGain(b), sureGain(a)) })
	slices.SortStableFunc(c.Worse, func(a, b result.Delta) int { return cmp.Compare(sureLoss(b), sureLoss(a)) })
}

// pays says whether a change gains something, and more than it may lose elsewhere.
func (c Change) pays() bool {
	return len(c.Better) > 0 && (len(c.Worse) == 0 || sureGain(c.Better[0]) > math.Abs(Cost(c.Worse[0])))
}

// escapes says whether a change gives up a network of the pod's own for the network of its node.
func (c Change) escapes() bool { return c.Factor == "" && (c.To == "host" || c.To == "docker:host") }

// sureLoss is the least that a delta costs, by its interval.
func sureLoss(d result.Delta) float64 {
	low, _ := costRange(d)
	return low
}

// Changes are the changes that a run speaks for, the surest gain first: of networks, by direct deltas, and of conditions, by the run's effects.
func Changes(run result.Run, direct []result.Delta) []Change {
	all := append(networkChanges(run, direct), factorChanges(run)...)
	all = slices.DeleteFunc(all, func(c Change) bool { return !c.pays() })
	slices.SortStableFunc(all, func(a, b Change) int { return cmp.Compare(sureGain(b.Gain()), sureGain(a.Gain())) })
	return all
}

// networkChanges sorts direct deltas by their networks. Changes to the baseline are its deltas seen from the other side.
func networkChanges(run result.Run, direct []result.Delta) []Change {
	turned, moves := slices.Clone(direct), network.Moves()
	for _, d := range run.Deltas {
		if d.Headline && toBaseline(d, moves) {
			turned = append(turned, inverted(d))
		}
	}
	choice, chosen := Choose(run)
	var all []Change
	for k, deltas := range By(turned, func(d result.Delta) pair { return pair{d.Baseline, Name(d.Network, d.Path)} }) {
		if onNodesOfCluster(run) && reaches(k.from) != reaches(k.to) {
			continue // a lab's pods do without the rules and programs of a cluster's nodes: pods of the cluster can't move there
		}
		c := Change{From: k.from, To: k.to}
		for _, m := range moves {
			if m.From.Network == bare(k.from) && m.To.Network == bare(k.to) {
				c.Moves = append(c.Moves, m)
			}
		}
		if chosen && k == (pair{choice.Worst, choice.Best}) {
			if !slices.Contains(waysToPods(), k) && reaches(k.from) && reaches(k.to) {
				continue // both stay: which of them a client uses is no choice of a network
			}
			c.Choice = &choice
		}
		c.sort(deltas)
		all = append(all, c)
	}
	return all
}

// onNodesOfCluster says whether a run measured a lab's networks on a cluster's nodes, together with the cluster's own.
func onNodesOfCluster(run result.Run) bool {
	return run.Environment.Cluster != nil && len(run.Environment.Servers) > 0
}

// reaches says whether a name is one of a cluster's own ways to a pod, which all exist side by side.
func reaches(name string) bool {
	return slices.Contains([]string{"pod", "clusterip", "headless", "nodeport"}, name)
}

// toBaseline says whether users of a delta's network may change to the baseline: Docker's own network to the host's, and pods of a
// cluster to the network of their nodes.
func toBaseline(d result.Delta, moves []network.Move) bool {
	return d.Network == "pod" && d.Baseline == "host" || slices.ContainsFunc(moves, func(m network.Move) bool {
		return m.From.Network == d.Network && m.To.Network == d.Baseline
	})
}

// changeable are the factors that users of a cluster or a machine can decide on.
func changeable() []string {
	return []string{
		"bond", "offload.tso", "offload.gso", "offload.gro", "offload.lro", "rps", "policy", "service", "from", "encryption", "qos",
		"mtu", "busy_poll", "congestion_control", "nagle", "storage_class",
	}
}

// factorChanges are the steps of the run's factors, each in the direction in which it gains.
func factorChanges(run result.Run) []Change {
	type key struct{ factor, from, to string }
	var all []Change
	headlines := slices.DeleteFunc(slices.Clone(run.Effects), func(e result.Effect) bool {
		return !e.Headline || !slices.Contains(changeable(), e.Factor)
	})
	for k, effects := range By(headlines, func(e result.Effect) key { return key{e.Factor, e.From, e.To} }) {
		there, back := Change{Factor: k.factor, From: k.from, To: k.to}, Change{Factor: k.factor, From: k.to, To: k.from}
		var deltas, turned []result.Delta
		for _, e := range effects {
			d := AsDelta(e)
			opposite := inverted(d)
			opposite.Network, opposite.Path, opposite.Baseline = d.Network, d.Path, k.to
			deltas, turned = append(deltas, d), append(turned, opposite)
		}
		there.sort(deltas)
		back.sort(turned)
		all = append(all, there, back)
	}
	return all
}
