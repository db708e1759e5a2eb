package insight

import (
	"maps"
	"math"
	"slices"

	"netdelta/internal/gather"
	"netdelta/probe/sockets"
	"netdelta/probe/stalls"
	"netdelta/result"
	"netdelta/unit"
)

// Names of the checks that this package makes. A check is listed when it found something.
const (
	CheckFinished  = "finished"  // the trial ran to its end
	CheckMeasured  = "measured"  // there is something to compare
	CheckBaseline  = "baseline"  // the setting has a baseline
	CheckDisturbed = "disturbed" // most of the trial's bursts count
	CheckLoss      = "loss"      // all datagrams arrived, and TCP sent next to nothing again
	CheckHistogram = "histogram" // the histogram can be read
	CheckSender    = "sender"    // it is the network that bounds a search, not its sender
	CheckPath      = "path"      // the packets went the way that the network says
	CheckSockets   = "sockets"   // no buffer or queue of a socket bounded what was measured
	CheckStalls    = "stalls"    // something arrived all the time
	CheckErrors    = "errors"    // no transaction failed
	CheckDisk      = "disk"      // it is not the disk that bounds a workload
	CheckConfig    = "config"    // the configuration of devices, routes and rules stayed as it was built
	CheckStep      = "step"      // the trial stays at one level against its baseline
	CheckCarry     = "order"     // what is visited after a network in a sweep is as fast as after others
	CheckScatter   = "scatter"   // the network's bursts scatter as its baseline's do
	CheckLeftOut   = "left-out"  // as many of its bursts were left out as of its baseline's
	CheckState     = "state"     // the network's delta is the same while the machine is fast and while it is slow
	CheckBusy      = "busy"      // no other programs kept the processors busy throughout the run
	CheckNull      = "null"      // the baseline does not differ from its A/A control
	CheckServices  = "services"  // the daemons that serve were well, and none had to be started again
)

// Check is something that was found wrong with a trial, or with a cell where Trial is a cell's name.
type Check struct {
	Trial, Name string
	// N of Of bursts, datagrams, searches or transactions are concerned.
	N, Of int64
	// Found is what was found, in the words of the probe or error that found it.
	Found []string
	// Expected are the devices that the packets should have crossed (CheckPath), or the metric that is missing (CheckMeasured).
	Expected []string
	Stalls   []stalls.Stall        // CheckStalls
	Changes  []result.ConfigChange // CheckConfig
	Step     *LevelStep            // CheckStep
	Uneven   *Unevenness           // CheckScatter, CheckLeftOut
	State    *StateSplit           // CheckState
	Null     *result.Delta         // CheckNull
	Strict   bool                  // CheckNull: no delta of the setting is called different
	Drops    []result.Drop         // CheckLoss; Of are segments of TCP there, 0 for datagrams
	// Share is the part of the processors' time that others took (CheckBusy; N of Of are builds),
	// by how much visits after this network were longer, with its standard error (CheckCarry), or how much of what the storage does without a network was used, Disk that storage or nil (CheckDisk).
	Share, Error float64
	Disk         *result.Disk
	// Reasons counts what was left out, or how often each service failed.
	Reasons map[string]int
}

// ResentShare is the share of TCP's segments that are sent again from which that is called loss, resentLeast how many there are at least.
const (
	ResentShare = 0.001
	resentLeast = 5
)

// resent is how many segments both ends of TCP sent again, and how many they sent. Where neither end counts segments, they follow
// from the bytes.
func resent(t *result.Trial) (again, sent int64) {
	ends := []*result.TCPInfo{t.TCP}
	if t.Sockets != nil {
		ends = append(ends, t.Sockets.Server)
	}
	for _, end := range ends {
		if end == nil {
			continue
		}
		again += int64(end.Retransmits)
		sent += int64(end.Segments)
	}
	if sent == 0 && t.TCP != nil && t.TCP.MSS > 0 {
		sent = t.Bytes / int64(t.TCP.MSS)
	}
	return again, sent
}

// DisturbedShare is the share of disturbed bursts from which a trial is reported.
const DisturbedShare = 0.25

// CarriedShare is by how much visits after a network must be longer or shorter to be reported; and it must be carryErrors times its
// standard error.
const (
	CarriedShare = 0.001
	carryErrors  = 4 // among some fifty networks, chance alone makes one in 300 runs
)

// carryChecks look at what each network's visits left behind, over all builds.
func carryChecks(all []batch) []Check {
	sums := map[string]result.CarryOver{}
	for _, b := range all {
		for cell, s := range b {
			if s.carry != nil {
				sum := sums[cell]
				sum.Add(*s.carry)
				sums[cell] = sum
			}
		}
	}
	var checks []Check
	for _, cell := range slices.Sorted(maps.Keys(sums)) {
		c := sums[cell]
		n := float64(c.Visits)
		mean := c.Sum / n
		err := math.Sqrt(max(c.Squares/n-mean*mean, 0) / n)
		if math.Abs(mean) > CarriedShare && math.Abs(mean) > carryErrors*err {
			checks = append(checks, Check{Trial: cell, Name: CheckCarry, Share: mean, Error: err})
		}
	}
	return checks
}

// checksOf are what is wrong with one trial; broken is why its histogram can't be read.
func checksOf(t *result.Trial, broken error) []Check {
	if t.Failed != "" {
		return []Check{{Trial: t.ID(), Name: CheckFinished, Found: []string{t.Failed}}}
	}
	var checks []Check
	add := func(bad bool, c Check) {
		if bad {
			c.Trial = t.ID()
			checks = append(checks, c)
		}
	}
	if t.Path != nil {
		add(!t.Path.OK, Check{Name: CheckPath, Expected: devicesOf(*t.Path), Found: t.Path.Findings})
	}
	n, of := marked(t.Bursts.Disturbed), len(t.Bursts.Round)
	add(of > 0 && float64(n) > DisturbedShare*float64(of), Check{Name: CheckDisturbed, N: int64(n), Of: int64(of)})
	stalled := stalls.Find(*t)
	add(len(stalled) > 0, Check{Name: CheckStalls, Stalls: stalled})
	add(t.Lost > 0 && len(t.Bursts.NoDrop) == 0, Check{Name: CheckLoss, N: t.Lost, Drops: t.Drops})
	again, sent := resent(t)
	add(again >= resentLeast && float64(again) >= ResentShare*float64(sent), Check{Name: CheckLoss, N: again, Of: sent, Drops: t.Drops})
	add(len(t.Changes) > 0, Check{Name: CheckConfig, Changes: t.Changes})
	failed, begun := failures(t)
	add(failed > 0, Check{Name: CheckErrors, N: failed, Of: begun})
	if b := t.Bound; b != nil {
		add(b.By == result.BoundDisk, Check{Name: CheckDisk, Share: b.Disk, Disk: t.Disk})
	}
	unwell := unwellServices(t.Bursts)
	add(len(unwell) > 0, Check{Name: CheckServices, Reasons: unwell})
	turned := sockets.Findings(*t)
	add(len(turned) > 0, Check{Name: CheckSockets, Found: turned})
	own := senders(t.Bursts)
	add(2*own > len(t.Bursts.AtLeast), Check{Name: CheckSender, N: int64(own), Of: int64(len(t.Bursts.AtLeast))})
	if broken != nil {
		add(true, Check{Name: CheckHistogram, Found: []string{broken.Error()}})
	}
	return checks
}

// senders counts the undisturbed searches that their own sender has bounded.
func senders(b result.Bursts) int {
	n := 0
	for i, bounded := range b.AtLeast {
		if bounded && (i >= len(b.Disturbed) || b.Disturbed[i] == "") {
			n++
		}
	}
	return n
}

// baselineChecks says of each cell of a table that it has no baseline.
func baselineChecks(t cellSet) []Check {
	return gather.Each(t.cells, func(cell result.Cell) Check { return Check{Trial: cell.ID, Name: CheckBaseline} })
}

// unmeasured says why a cell has no delta.
func unmeasured(cell result.Cell, m metric, excluded map[string]int) *Check {
	return &Check{Trial: cell.ID, Name: CheckMeasured, Expected: []string{m.name}, Reasons: excluded}
}

// trialChecks are what is wrong with single trials, also of cells in no setting, in the order of builds and cells.
func trialChecks(all []batch) []Check {
	var checks []Check
	for _, batch := range all {
		for _, cell := range slices.Sorted(maps.Keys(batch)) {
			checks = append(checks, batch[cell].found...)
		}
	}
	return slices.Concat(checks, carryChecks(all))
}

// served are the daemons behind the trials that count, each once, by name: as the latest trial has them, with what they took at most and
// how often they had to be started again.
func served(trials *Summaries) []result.Service {
	last := map[string]result.Service{}
	for _, s := range trials.all {
		if s.failed != "" {
			continue
		}
		for _, service := range s.services {
			if had, known := last[service.Name]; known {
				service.Memory, service.Restarts = max(service.Memory, had.Memory), max(service.Restarts, had.Restarts)
			}
			last[service.Name] = service
		}
	}
	return gather.Each(slices.Sorted(maps.Keys(last)), func(name string) result.Service { return last[name] })
}

// wayKey tells what is proved of a network's way apart.
type wayKey struct {
	network   string
	placement result.Placement
	mtu       unit.Bytes
	family    result.Family
}

// wayProof is a proof in the making.
type wayProof struct {
	result.PathProof
	seen int               // the trial that Seen is of
	weak map[string][2]int // the first trial that lacks it, and its place there
}

// paths sum up which way the packets of each network went in each placement, in the order of the cells. Trials that failed before anything
// could be proved don't count.
func paths(cells []result.Cell, all []batch) []result.PathProof {
	ways := map[wayKey]*wayProof{}
	var order []*wayProof
	for _, c := range cells {
		k := wayKey{c.Network, c.Placement, c.Params.MTU, c.Params.Family}
		if ways[k] == nil {
			ways[k] = &wayProof{
				PathProof: result.PathProof{Network: k.network, Placement: k.placement, MTU: k.mtu, Family: k.family}, weak: map[string][2]int{},
			}
			order = append(order, ways[k])
		}
		for _, batch := range all {
			if s := batch[c.ID]; s != nil && (s.failed == "" || s.path != nil) {
				ways[k].note(s, without(c.Params))
			}
		}
	}
	var list []result.PathProof
	for _, w := range order {
		if w.Trials == 0 {
			continue
		}
		w.Weak = slices.SortedFunc(maps.Keys(w.weak), func(a, b string) int {
			x, y := w.weak[a], w.weak[b]
			return slices.Compare(x[:], y[:])
		})
		list = append(list, w.PathProof)
	}
	return list
}

// note counts a trial's proof; lacks is what it lacks where there is none.
func (w *wayProof) note(s *summary, lacks string) {
	w.Trials++
	weak := []string{lacks}
	if p := s.path; p != nil {
		weak = p.Weak
		if p.OK {
			w.Proved++
		}
		if w.Seen == nil || p.OK && !w.Seen.OK || p.OK == w.Seen.OK && s.index > w.seen {
			w.Seen, w.seen = p, s.index
		}
	}
	for i, what := range weak {
		at := [2]int{s.index, i}
		if first, known := w.weak[what]; !known || slices.Compare(at[:], first[:]) < 0 {
			w.weak[what] = at
		}
	}
}
