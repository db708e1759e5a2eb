package insight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"netdelta/internal/gather"
	"netdelta/network"
	"netdelta/result"
	"netdelta/stats"
	"netdelta/unit"
)

// Way is how packets get from a client to its server in a network: what a drawing of it shows.
type Way struct {
	// Name is the network's, with its path where that is not the pod's own address.
	Name string
	// Network is its entry in the catalogue; only Network.Name is given where the catalogue has none.
	Network   network.Network
	Placement result.Placement
	Baseline  bool
	// Stops are the devices on the way, from client to server.
	Stops []Stop
	// Measured says that Stops are what counters of a trial showed, and Trial which one. Else they are what the network says.
	Measured bool
	Trial    string
	// Notes are what that trial's proof noted of the way.
	Notes []string
	// Encapsulation is what packets between nodes are wrapped in, as sampled or else by the network's name; "" for none.
	Encapsulation string
	Overhead      unit.Bytes
	// Trials are all that went this way; Proved, Weak and Unwatched split those that count by the proof of their path.
	Trials, Proved, Weak, Unwatched, Misrouted int
	// Reasons say, each once, why a proof is weak or what was found wrong.
	Reasons []string
	// Stray are devices off the way that carried packets in a misrouted trial.
	Stray []string
}

// Stop is a device on the way.
type Stop struct {
	// Space is the namespace that the device is in, such as "node0"; Device its name there.
	Space, Device string
	Role          string
	Sends         bool
	Encapsulated  bool
	// Within is what joins this device to the next one of the same space: a bridge, the device it sits on, the kernel's
	// routing; "" where they are the two ends of one wire.
	Within string
	// Packets and Bytes are what it carried of the requests in the trial, where Way.Measured.
	Packets, Bytes uint64
}

// route is what the ways of several cells have in common.
type route struct {
	network   string
	path      string
	placement result.Placement
	role      result.Role
}

// Ways are the ways of a run's networks in the order of its cells, each placement by itself, the baseline first. known is the
// catalogue.
func (e Evidence) Ways(cells []result.Cell, known []network.Network) []Way {
	var order []route
	members, families := map[route][]string{}, map[route]result.Family{} // the family of the first cell stands for all
	for _, c := range cells {
		if c.Role == result.RoleControl || c.Unsupported != "" || c.Skipped != "" {
			continue
		}
		r := route{c.Network, c.Path, c.Placement, c.Role}
		if members[r] == nil {
			order = append(order, r)
			families[r] = c.Params.Family
		}
		members[r] = append(members[r], c.ID)
	}
	slices.SortStableFunc(order, func(a, b route) int { return cmp.Compare(a.role, b.role) })
	byCell := map[string][]*summary{}
	for _, s := range e.batches {
		for cell, summary := range s {
			byCell[cell] = append(byCell[cell], summary)
		}
	}
	ways := make([]Way, 0, len(order))
	for _, r := range order {
		w := Way{Name: Name(r.network, r.path), Placement: r.placement, Baseline: r.role == result.RoleBaseline}
		w.Network.Name = r.network
		w.plan(known, families[r])
		for _, cell := range members[r] {
			for _, t := range byCell[cell] {
				w.add(t)
			}
		}
		ways = append(ways, w)
	}
	return ways
}

// plan fills in what the catalogue says of the network.
func (w *Way) plan(known []network.Network, family result.Family) {
	n, err := network.Find(known, w.Network.Name)
	if err != nil {
		return // a network of another version: its trials may still show the way
	}
	w.Network = n
	topology, err := network.NewTopology(network.Layout{Nodes: 2, PodsPerNode: 2, Family: family, MTU: network.MaxMTU})
	if err != nil {
		return
	}
	p, err := n.Plan(topology)
	if err != nil {
		return
	}
	to := 1
	if w.Placement == result.CrossNode {
		to = 2
		w.Overhead = p.Overhead
	}
	joints := jointsOf(p)
	for _, h := range p.Path(0, to, network.TCP) {
		w.Stops = append(w.Stops, Stop{
			Space: h.In.String(), Device: h.Name, Role: string(h.Role), Sends: h.Sends, Encapsulated: h.Encapsulated,
			Within: joints[h.Device.String()],
		})
		if h.Encapsulated {
			w.Encapsulation, _, _ = strings.Cut(n.Name, "-")
		}
	}
}

// jointsOf says of a plan's devices what they hang on.
func jointsOf(p network.Plan) map[string]string {
	joints := map[string]string{}
	for _, op := range p.Ops {
		switch o := op.(type) {
		case network.Enslave:
			joints[o.Device.String()] = "bridge " + o.Bridge
		case network.Macvlan:
			joints[o.Device.String()] = "macvlan on " + o.Parent.Name
		case network.IPVlan:
			joints[o.Device.String()] = "ipvlan on " + o.Parent.Name
		}
	}
	return joints
}

// add takes in what a trial proved.
func (w *Way) add(t *summary) {
	w.Trials++
	p := t.path
	switch {
	case t.failed != "":
	case p == nil:
		w.Unwatched++
	case !p.OK:
		w.Misrouted++
		w.because(p.Findings)
		for _, h := range p.Stray {
			w.Stray = gather.Once(w.Stray, h.Device)
		}
	case len(p.Weak) > 0:
		w.Weak++
		w.because(p.Weak)
	default:
		w.Proved++
	}
	if p != nil && p.OK && len(p.Hops) > 0 && (!w.Measured || t.id() < w.Trial) {
		w.measured(t)
	}
}

// because keeps reasons, each once.
func (w *Way) because(reasons []string) {
	for _, r := range reasons {
		w.Reasons = gather.Once(w.Reasons, r)
	}
	slices.Sort(w.Reasons)
}

// measured replaces the way that the network says by the one that a trial's counters showed.
func (w *Way) measured(t *summary) {
	within := map[string]string{}
	for _, s := range w.Stops {
		within[s.Space+"/"+s.Device] = s.Within
	}
	w.Measured, w.Trial, w.Notes, w.Stops = true, t.id(), t.path.Notes, nil
	for _, h := range t.path.Hops {
		space, device, found := strings.Cut(h.Device, "/")
		if !found {
			space, device = "", h.Device
		}
		w.Stops = append(w.Stops, Stop{
			Space: space, Device: device, Role: h.Role, Sends: h.Sends, Encapsulated: h.Encapsulated, Within: within[h.Device],
			Packets: h.Packets, Bytes: h.Bytes,
		})
	}
	switch e := t.path.Encapsulation; e {
	case "": // no sample: what the network says stands
	case "none":
		w.Encapsulation, w.Overhead = "", 0
	default:
		w.Encapsulation, w.Overhead = e, t.path.Overhead
	}
}

// What a trial without a proof lacks.
const (
	unproved = "no proof: this testbed does not show its devices"
	external = "no proof: the target is external, so nothing watches where its packets arrive"
	mounted  = "no proof: volumes are mounted by the nodes, so pods have no server"
)

// without is what a trial with these parameters lacks that has no proof.
func without(p result.Params) string {
	switch {
	case p.Target != "":
		return external
	case p.StorageClass != "":
		return mounted
	}
	return unproved
}

// devicesOf are the devices that a network says its packets cross.
func devicesOf(p result.Path) []string {
	devices := gather.Each(p.Hops, func(h result.PathHop) string { return h.Device })
	return slices.Compact(devices)
}

// links sum up how each cell's traffic was spread over the links of the bonds on its way, in the order of the cells, of the
// bonds and of their links. Only trials that count in deltas count here.
func links(cells []result.Cell, batches []batch) []result.LinkShare {
	var all []result.LinkShare
	for _, c := range cells {
		if c.Role == result.RoleControl { // the A/A control is the baseline once more
			continue
		}
		var measured []*summary
		for _, s := range batches {
			if t := s.good(c.ID); t != nil && len(t.links) > 0 {
				measured = append(measured, t)
			}
		}
		if len(measured) == 0 {
			continue
		}
		for _, l := range measured[0].links {
			s := result.LinkShare{
				Cell: c.ID, Network: c.Network, Setting: c.Setting(), Bond: l.Bond, Device: l.Device,
			}
			var shares, used []float64
			for _, t := range measured {
				i := slices.IndexFunc(t.links, func(o result.LinkUse) bool { return o.Device == l.Device })
				if i < 0 {
					continue
				}
				shares = append(shares, t.links[i].Share)
				used = append(used, t.used(t.links[i], cmp.Or(t.links[i].Rate, c.Params.Conditions.LinkRate)))
			}
			s.Builds, s.Share, s.Used = len(shares), stats.Median(shares), stats.Median(used)
			s.ShareLow, s.ShareHigh = slices.Min(shares), slices.Max(shares)
			all = append(all, s)
		}
	}
	return all
}

// used is the part of a link's rate that the bursts of a trial used, with their warm-up.
func (s *summary) used(l result.LinkUse, rate unit.BitsPerSecond) float64 {
	var span int64
	for _, ns := range s.spans {
		span += ns
	}
	if span == 0 || rate == 0 {
		return 0
	}
	const bits, seconds = 8, 1e9
	return float64(l.Sent) * bits / (float64(span) / seconds) / float64(rate)
}

// Unwell begins the reason of a burst that was left out because a daemon that serves it failed.
const Unwell = "service unwell"

// unwellServices counts the bursts that were left out because a daemon failed, by what was wrong with it.
func unwellServices(b result.Bursts) map[string]int {
	found := map[string]int{}
	for _, reason := range b.Disturbed {
		if why, ok := strings.CutPrefix(reason, Unwell); ok {
			found[strings.TrimPrefix(why, ": ")]++
		}
	}
	return found
}

// failures are the transactions of a trial that failed, of so many that were begun: as the trial sums them up, or without
// such a sum as its bursts count them.
func failures(t *result.Trial) (failed, of int64) {
	failed = t.Errors
	done := t.Transactions
	if failed == 0 {
		done = 0
		for i, n := range t.Bursts.Errors {
			failed += n
			if i < len(t.Bursts.Transactions) {
				done += t.Bursts.Transactions[i]
			}
		}
	}
	return failed, done + failed
}

// failedShare warns of the transactions of a cell that failed, which no figure holds; "" if none did.
func failedShare(cell string, all []batch) string {
	failed, of := int64(0), int64(0)
	for _, s := range all {
		if t := s.good(cell); t != nil {
			failed, of = failed+t.errors, of+t.begun
		}
	}
	if failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d transactions failed and are in no figure", failed, of)
}
