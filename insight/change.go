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
	// Pod is what the cluster's own pods do today where the change gains most; nil where the run did not measure that, or where the change
	// is not one between two of a lab's networks.
	Pod *result.Delta
	// Finding is what the doctor found that this change puts right; nil of other changes.
	Finding *result.Finding
	// Applied is how the study made the change in the cluster, of which the other side is the cluster as it was found; nil of other changes.
	Applied *result.Changed
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

// demonstrates says whether one of the sides is a network that pods hardly have.
func (c Change) demonstrates() bool {
	return c.Factor == "" && (network.IsDemonstration(bare(c.From)) || network.IsDemonstration(bare(c.To)))
}

// Changes are the changes that a run speaks for, the surest gain first: of networks, by direct deltas, and of conditions, by the run's
// effects. Those of demonstrations come last.
func Changes(run result.Run, direct []result.Delta) []Change {
	all := append(networkChanges(run, direct), factorChanges(run)...)
	all = slices.DeleteFunc(all, func(c Change) bool { return !c.pays() })
	slices.SortStableFunc(all, func(a, b Change) int {
		switch {
		case a.demonstrates() == b.demonstrates():
			return cmp.Compare(sureGain(b.Gain()), sureGain(a.Gain()))
		case a.demonstrates():
			return 1
		}
		return -1
	})
	for i := range all {
		all[i].hold(run)
	}
	return all
}

// movesOf are the changes that users of the run's networks can make within their system: on a cluster whose product is known, its own.
func movesOf(run result.Run) []network.Move {
	all := network.Moves()
	if c := run.Environment.Cluster; c != nil && c.Product != "" {
		all = slices.DeleteFunc(all, func(m network.Move) bool { return m.From.Name != c.Product })
	}
	return all
}

// hold notes what the doctor found that a change puts right and, of one that was measured on a cluster's nodes, what the cluster's own pods do.
func (c *Change) hold(run result.Run) {
	ofProduct := len(c.Moves) > 0 && onNodesOfCluster(run) && c.Moves[0].From.Name == run.Environment.Cluster.Product
	if ofProduct && len(c.Better) > 0 {
		gain := c.Gain()
		for _, d := range run.Deltas {
			if d.Network == podNetwork && d.Setting == gain.Setting && d.Metric == gain.Metric {
				c.Pod = &d
			}
		}
	}
	for _, f := range run.Environment.Findings {
		if f.Topic == TopicEncapsulation && (ofProduct || c.Applied != nil && c.Applied.Expect == "none") {
			c.Finding = &f
		}
	}
}

// What the doctor calls some of its findings.
const (
	TopicEncapsulation = "encapsulation" // packets are encapsulated without need
	TopicNodeAgent     = "node agent"    // without one a node's devices are not seen
)

// networkChanges sorts direct deltas by their networks. Changes to the baseline are its deltas seen from the other side.
func networkChanges(run result.Run, direct []result.Delta) []Change {
	turned, moves := slices.Clone(direct), movesOf(run)
	for _, d := range run.Deltas {
		switch {
		case !d.Headline:
		case toBaseline(d, moves) || d.Network == podNetwork && applied(run, d.Baseline) != nil:
			turned = append(turned, inverted(d))
		case d.Baseline == podNetwork && applied(run, d.Network) != nil:
			turned = append(turned, d)
		}
	}
	choice, chosen := Choose(run)
	var all []Change
	for k, deltas := range By(turned, func(d result.Delta) pair { return pair{d.Baseline, Name(d.Network, d.Path)} }) {
		if onNodesOfCluster(run) && reaches(k.from) != reaches(k.to) {
			continue // a lab's pods do without the rules and programs of a cluster's nodes: pods of the cluster can't move there
		}
		c := Change{From: k.from, To: k.to}
		if k.from == podNetwork {
			c.Applied = applied(run, k.to)
		}
		for _, m := range moves {
			if m.From.Means(bare(k.from)) && m.To.Means(bare(k.to)) {
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

// podNetwork is the pods' own network, in the cluster as it was found.
const podNetwork = "pod"

// applied is how a run's study changed the cluster for a network or a level; nil where it did not.
func applied(run result.Run, name string) *result.Changed {
	i := slices.IndexFunc(run.Changes, func(c result.Changed) bool { return c.For == name })
	if i < 0 {
		return nil
	}
	return &run.Changes[i]
}

// reaches says whether a name is one of a cluster's own ways to a pod, which all exist side by side.
func reaches(name string) bool {
	return slices.Contains([]string{"pod", "clusterip", "headless", "nodeport"}, name)
}

// toBaseline says whether users of a delta's network may change to the baseline: Docker's own network to the host's, and pods of a
// cluster to the network of their nodes.
func toBaseline(d result.Delta, moves []network.Move) bool {
	return d.Network == podNetwork && d.Baseline == "host" || slices.ContainsFunc(moves, func(m network.Move) bool {
		return m.From.Means(d.Network) && m.To.Means(d.Baseline)
	})
}

// changeable are the factors that users of a cluster or a machine can decide on.
func changeable() []string {
	return []string{
		"bond", "offload.tso", "offload.gso", "offload.gro", "offload.lro", "rps", "bridge_netfilter", "policy", "service", "from", "encryption",
		"qos", "mtu", "busy_poll", "congestion_control", "nagle", "storage_class",
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
		there.Applied = applied(run, k.factor+"="+k.to)
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
