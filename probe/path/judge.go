package path

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/unit"
)

// Thresholds of the proof. docs/path-proof.md says why.
const (
	// leastShare of the payload is what each device on the way must have carried: a stream's last bytes may still be on
	// their way when the counters are read.
	leastShare = 0.9
	// strayShare is the share of what the client's own device carried that a device off the way may carry, strayFloor the
	// bytes that it may carry in any case, besides those that a sample shows to serve the network itself (requests for
	// addresses, memberships of groups), and blindFloor the same without a sample.
	strayShare = 0.05
	strayFloor = 1000
	blindFloor = 4000
	// overheadSlack is how far the overhead of a packet may be off where inner and outer device counted as many packets,
	// looseSlack where they did not.
	overheadSlack, looseSlack = 2.0, 4.0
	// mixedShare of a device's sampled packets may be wrapped otherwise than planned.
	mixedShare = 0.05
)

// Observation is all that a proof rests on.
type Observation struct {
	// Request and Response are the ways that the plan says.
	Request, Response []network.Hop
	// Shared are the devices that an opaque load passes both ways, whichever of its servers it goes to.
	Shared []network.Device
	// Background are the ways of daemons that talk to each other on their own: nothing is known of what passes there.
	Background []network.Hop
	// PathMTU is what the plan promises from client to server; Overhead is what its encapsulation adds to each packet, and
	// Encapsulation the name of it ("vxlan"), "none" without.
	PathMTU, Overhead unit.Bytes
	Encapsulation     string
	// Encryption is the plan's. Private are the addresses that must not be readable on the way where there is one.
	Encryption network.Encryption
	Private    []netip.Addr
	Load       Load
	// Servers are the addresses by which packets name the server: its own, and its node's where that stands in for it.
	Servers []netip.Addr
	// Virtual is the address that the client calls where no pod has it: no packet on the way must go there.
	Virtual netip.Addr
	// Observed says that the plan does not name all that is on the way, nor what packets are wrapped in there; Unforeseen are
	// the devices that it can't name.
	Observed   bool
	Unforeseen map[network.Device]bool
	// Crowded says that nodes are used as they are found: others' packets pass there, too, so that only a sample tells what of the load
	// passed devices off the way.
	Crowded bool
	// Polled says that devices may poll for what they receive (veth with GRO does), and then count it at both ends without its
	// Ethernet header.
	Polled bool
	// Bonds are the plan's. Their links carry what they carry.
	Bonds         []network.Bond
	Before, After Reading
	Sample        Sample
	Fit           Fit
}

// Sample is the packets that were looked at.
type Sample struct {
	// Spaces are the namespaces that were looked into.
	Spaces  []network.Space
	Packets []testbed.Packet
	Missed  int
	// Lacks says why there is none: "CAP_NET_RAW".
	Lacks string
}

// Judge says whether what was observed is what the plan says. The same observation gives the same answer.
func Judge(o Observation) result.Path {
	j := judgement{
		Observation: o,
		statement:   statement{result.Path{Payload: o.Load.payload(), Hops: []result.PathHop{}, MTU: o.Fit.Largest}},
		seen:        map[network.Device]*deviceSample{},
		changed:     bonded(changes(o.Before.Counters, o.After.Counters), o.Bonds),
		need:        need(o.Request, o.Response, o.Load),
	}
	allow(j.need, o.Background)
	j.look()
	j.lost()
	j.strays()
	j.amongOthers()
	j.hops()
	j.opaque()
	j.noted()
	j.overhead()
	j.fragments()
	j.sample()
	j.path.Findings = append(j.path.Findings, o.Fit.Findings...)
	if o.Fit.Lacks != "" {
		j.weak("path MTU not tried: needs %s", o.Fit.Lacks)
	}
	j.path.OK = len(j.path.Findings) == 0
	return j.path
}

// judgement is a proof in the making.
type judgement struct {
	Observation
	statement
	changed map[network.Device]change
	need    map[crossing]unit.Bytes
	seen    map[network.Device]*deviceSample
}

// statement is what a judgement says.
type statement struct{ path result.Path }

func (s *statement) find(format string, args ...any) {
	s.path.Findings = append(s.path.Findings, fmt.Sprintf(format, args...))
}

func (s *statement) weak(format string, args ...any) {
	s.path.Weak = append(s.path.Weak, fmt.Sprintf(format, args...))
}

func (s *statement) note(format string, args ...any) {
	s.path.Notes = append(s.path.Notes, fmt.Sprintf(format, args...))
}

// crossing is a device, and the direction in which its counters see a packet.
type crossing struct {
	network.Device
	sends bool
}

// need is the payload that crosses each device, which is both ways where it meets itself, as on lo.
func need(request, response []network.Hop, l Load) map[crossing]unit.Bytes {
	all := map[crossing]unit.Bytes{}
	for _, h := range request {
		all[crossing{h.Device, h.Sends}] += l.Requests
	}
	for _, h := range response {
		all[crossing{h.Device, h.Sends}] += l.Responses
	}
	return all
}

// planned tells whether a device is on the way.
func (j *judgement) planned(d network.Device) bool {
	_, sends := j.need[crossing{d, true}]
	_, receives := j.need[crossing{d, false}]
	return sends || receives
}

// inOrder lists the devices that changed, in a fixed order, less the switch's: it belongs to no way, and what passes it
// passes the nodes.
func inOrder(changed map[network.Device]change) []network.Device {
	all := slices.SortedFunc(maps.Keys(changed), byPlace)
	return slices.DeleteFunc(all, func(d network.Device) bool { return d.In.Kind == network.SwitchSpace })
}

func byPlace(a, b network.Device) int {
	return cmp.Or(bySpace(a.In, b.In), cmp.Compare(a.Name, b.Name))
}

func bySpace(a, b network.Space) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index))
}

func byCrossing(a, b crossing) int {
	return cmp.Or(byPlace(a.Device, b.Device), cmp.Compare(a.verb(), b.verb()))
}

// verb says what the device did.
func (x crossing) verb() string {
	if x.sends {
		return "sent"
	}
	return "received"
}

// lost names the devices whose counters can't be held against each other: on the way that spoils the proof.
func (j *judgement) lost() {
	for _, d := range inOrder(j.changed) {
		switch c := j.changed[d]; {
		case c.lost != "" && j.planned(d):
			j.find("%s", c.loss(d))
		case c.lost != "":
			j.weak("%s", c.loss(d))
		case c.wrapped:
			j.weak("%s", c.correction(d))
		}
	}
	for _, h := range j.Request {
		if _, there := j.changed[h.Device]; !there {
			j.find("%s, on the way that the plan says, is not there", h.Device)
		}
	}
}

// reference is the whole load in bytes: what the client's own device counted, but no less than the payload.
func (j *judgement) reference() float64 {
	least := uint64(j.path.Payload)
	if len(j.Request) > 0 {
		if c := j.changed[j.Request[0].Device]; c.lost == "" {
			least = max(least, c.both().bytes)
		}
	}
	return float64(least)
}

// strays finds devices off the way that carried the load.
func (j *judgement) strays() {
	all := j.reference()
	for _, d := range inOrder(j.changed) {
		c := j.changed[d]
		if j.planned(d) || j.Unforeseen[d] || float64(c.both().bytes) <= j.tolerated(d) {
			continue
		}
		for _, sends := range []bool{true, false} {
			if t := c.of(sends); t.packets > 0 {
				j.path.Stray = append(j.path.Stray, result.PathHop{Device: d.String(), Sends: sends, Packets: t.packets, Bytes: t.bytes})
			}
		}
		j.find("%s carried %s of the bytes (%d in %d packets); %s",
			d, percent(c, all), c.both().bytes, c.both().packets, j.insteadOf(d, all))
	}
	for _, d := range detours(j.changed, j.need, j.tolerated) {
		j.find("%s", d)
	}
}

// tolerated is how many bytes a device may carry that the plan has not pass it.
func (j *judgement) tolerated(d network.Device) float64 {
	floor := float64(strayFloor)
	if j.Sample.Lacks != "" {
		floor = blindFloor
	}
	return max(strayShare*j.reference(), floor) + float64(j.control(d)) + j.shakes()
}

// insteadOf says what the plan has where a device carried what it should not.
func (j *judgement) insteadOf(stray network.Device, all float64) string {
	for _, h := range j.Request {
		if h.In == stray.In && j.short(h.Device) {
			return fmt.Sprintf("the plan says %s, which carried %s", h.Device, percent(j.changed[h.Device], all))
		}
	}
	return "it is not on the way that the plan says"
}

// percent is the share of all bytes that a device carried.
func percent(c change, all float64) string {
	return fmt.Sprintf("%.0f%%", 100*min(1, float64(c.both().bytes)/max(1, all)))
}

// short tells whether a device carried less than the plan has pass it, in either direction.
func (j *judgement) short(d network.Device) bool {
	return j.tooLittle(crossing{d, true}) || j.tooLittle(crossing{d, false})
}

func (j *judgement) tooLittle(x crossing) bool {
	c, there := j.changed[x.Device]
	return there && c.lost == "" && float64(c.of(x.sends).bytes) < leastShare*float64(j.need[x])
}

// hops notes what each device on the way carried, and finds those that carried too little.
func (j *judgement) hops() {
	told := map[crossing]bool{}
	for i, h := range slices.Concat(j.Request, j.Response) {
		x := crossing{h.Device, h.Sends}
		t := j.changed[h.Device].of(h.Sends)
		if i < len(j.Request) {
			j.path.Hops = append(j.path.Hops, result.PathHop{
				Device: h.Device.String(), Role: string(h.Role), Sends: h.Sends, Encapsulated: h.Encapsulated, Packets: t.packets, Bytes: t.bytes,
			})
		}
		if told[x] || !j.tooLittle(x) {
			continue
		}
		told[x] = true
		j.find("%s %s %d bytes in %d packets; the plan has %d bytes of payload pass it", h.Device, x.verb(), t.bytes, t.packets, int64(j.need[x]))
	}
}

// overhead holds what the underlay's port sent against what the client's pod sent, packet by packet.
func (j *judgement) overhead() {
	inner, outer := j.sends(network.RolePod), j.sends(network.RolePort)
	if j.Load.Opaque {
		return // what else passes the underlay's port is not known either
	}
	if inner == nil || outer == nil || inner.lost != "" || outer.lost != "" || inner.sent.packets == 0 || outer.sent.packets == 0 {
		return
	}
	per := (float64(outer.sent.bytes) - float64(inner.sent.bytes)) / float64(inner.sent.packets)
	least, most := j.portAdds()
	beyond := func(per float64) float64 { return max(float64(least)-per, per-float64(most), 0) }
	if j.Polled {
		for _, counted := range []float64{per - float64(ethernetHeader), per + float64(ethernetHeader)} {
			if beyond(counted) < beyond(per) {
				per = counted
			}
		}
	}
	off := beyond(per)
	switch {
	case j.Observed:
		j.path.Overhead = unit.Bytes(math.Round(max(0, per)))
	case inner.sent.packets != outer.sent.packets && off <= looseSlack:
		j.path.Overhead = unit.Bytes(math.Round(min(max(per, float64(least)), float64(most))))
	case inner.sent.packets == outer.sent.packets && off <= overheadSlack:
		j.path.Overhead = unit.Bytes(math.Round(per))
	case inner.sent.packets == outer.sent.packets && per >= 0:
		j.path.Overhead = unit.Bytes(math.Round(per))
		j.find("each packet was %+.1f bytes larger on the underlay than in its pod; the plan's encapsulation adds %s", per, between(least, most))
	case j.Sample.Lacks != "":
		// Cut up, joined or lost between the two devices, packets can't be held against each other, also where others took the places of the
		// lost, so that the counts agree: a sample could tell.
		j.weak("overhead not counted: the pod sent %d packets, the underlay's port %d", inner.sent.packets, outer.sent.packets)
	}
}

// portAdds is how much longer packets are on the underlay's port.
func (j *judgement) portAdds() (least, most unit.Bytes) {
	for _, h := range j.Request {
		if h.Role == network.RolePort {
			return j.adds(h)
		}
	}
	return j.Overhead, j.Overhead
}

// between puts a range in words.
func between(least, most unit.Bytes) string {
	if least == most {
		return fmt.Sprint(int64(least))
	}
	return fmt.Sprintf("%d to %d", int64(least), int64(most))
}

// sends is the change of the first device of a role that sends the request, nil where there is none.
func (j *judgement) sends(r network.Role) *change {
	for _, h := range j.Request {
		if h.Role == r && h.Sends {
			c := j.changed[h.Device]
			if h.Framed {
				c.sent.bytes -= min(c.sent.bytes, c.sent.packets*uint64(ethernetHeader))
			}
			return &c
		}
	}
	return nil
}

// fragments finds IP stacks that cut packets up or put them together, unless the load's own datagrams make them do so, or others' packets:
// where measurements share a namespace, a late datagram of one passes while another is looked at.
func (j *judgement) fragments() {
	if j.Load.fragments(j.PathMTU) {
		if j.Sample.Lacks != "" && j.Overhead > 0 {
			j.weak("fragments not attributed: the load's own datagrams are larger than the MTU, and there is no packet sample")
		}
		return
	}
	for _, s := range slices.SortedFunc(maps.Keys(j.After.Stacks), bySpace) {
		before, known := j.Before.Stacks[s]
		if !known {
			continue
		}
		after, others := j.After.Stacks[s], uint64(j.othersCut(s))
		for _, v := range []struct {
			before, after, others uint64
			says                  string
		}{
			{before.FragmentsMade, after.FragmentsMade, others, "%s cut packets into %d IP fragments; the plan's MTUs need none"},
			{before.Reassembled, after.Reassembled, others, "%s put %d packets together from IP fragments; the plan's MTUs need none"},
			{before.FragmentationRefused, after.FragmentationRefused, 0, "%s refused %d packets that were too large to pass and must not be cut"},
		} {
			if v.after > v.before+v.others {
				j.find(v.says, s, v.after-v.before)
			}
		}
	}
}
