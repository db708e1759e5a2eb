// Package servers opens testbeds whose nodes are machines with networks of their own, however these are reached: a carrier starts a
// supervisor (testbed/servers/server) on each, and speaks to it by its standard input and output.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"netdelta/network"
	"netdelta/result"
	"netdelta/testbed"
	"netdelta/testbed/joined"
	"netdelta/testbed/servers/server"
	"netdelta/unit"
)

// NIC says how each node gets its cards.
type NIC struct {
	Mode string // one of package server's
	// Card is "" for the card by which the machine is reached, and several that can be a bond are "eth2+eth3".
	Card string
	// Function is the number of the card's virtual function.
	Function int
	// Addresses begin with this one and go to the end of its prefix; the zero prefix takes ones that are set aside for benchmarks.
	Addresses netip.Prefix
}

// Modes says how NICs are written.
const Modes = "macvlan[:CARD] or ipvlan[:CARD] over a card that stays with its server (without CARD the one that it is reached by), take:CARD for a spare card, " +
	"or vf:CARD/N for its virtual function N; macvlan and take with CARD+CARD for bonds; each with ,ADDRESS/LENGTH where the nodes' addresses are given"

// ParseNIC reads "macvlan:CARD", "ipvlan:CARD", "take:CARD", "vf:CARD/N", each with or without ",ADDRESS/LENGTH". Without a card the first two
// mean the card by which the machine is reached; "" is macvlan.
func ParseNIC(text string) (n NIC, err error) {
	fail := func(why string) (NIC, error) {
		return NIC{}, fmt.Errorf("nic %q: %s; it takes %s", text, why, Modes)
	}
	device, addresses, given := strings.Cut(text, ",")
	n.Mode, n.Card, _ = strings.Cut(device, ":")
	if n.Mode == "" && n.Card == "" {
		n.Mode = server.Macvlan
	}
	switch n.Mode {
	case server.Macvlan, server.IPVlan:
	case server.Take:
		if n.Card == "" {
			return fail("a card that is taken has to be named")
		}
	case server.VF:
		card, number, _ := strings.Cut(n.Card, "/")
		if n.Function, err = strconv.Atoi(number); card == "" || err != nil || n.Function < 0 {
			return fail("a virtual function is named by its card and its number, as vf:eth2/0")
		}
		n.Card = card
	default:
		return fail(fmt.Sprintf("%q is no such mode", n.Mode))
	}
	if why := notBonded(n); why != "" {
		return fail(why)
	}
	if !given {
		return n, nil
	}
	if n.Addresses, err = netip.ParsePrefix(addresses); err != nil {
		return fail("addresses are given as the first one, with the length of its prefix: 10.0.0.200/28")
	}
	return n, nil
}

// notBonded says why the cards of a NIC can't be a bond; "" where they can, or are one card.
func notBonded(n NIC) string {
	cards := server.Cards(n.Card)
	switch {
	case len(cards) < 2:
		return ""
	case server.OneMAC(n.Mode):
		return "the links of a bond have an address of its own, which " + n.Mode + " does not allow: take macvlan:" + n.Card + " or take:" + n.Card
	case len(cards) > network.MaxLinks:
		return fmt.Sprintf("a bond has up to %d links", network.MaxLinks)
	}
	for i, card := range cards {
		if card == "" || slices.Contains(cards[:i], card) {
			return "several cards are named as eth2+eth3, each once"
		}
	}
	return ""
}

// wiresOf divides the given addresses among so many nodes: each has as many in a row as there are wires. The result is by wire, then by
// node; it is nil where none are given. The last address of an IPv4 prefix stays unused, since it is its broadcast address.
func (n NIC) wiresOf(nodes int) (all [][]netip.Prefix, err error) {
	if !n.Addresses.IsValid() {
		return nil, nil
	}
	var usable []netip.Prefix
	for a := n.Addresses.Addr(); n.Addresses.Contains(a) && len(usable) < nodes*wires; a = a.Next() {
		if a.Is4() && (!n.Addresses.Contains(a.Next()) || a == n.Addresses.Masked().Addr()) {
			continue // of the broadcast, and of the network
		}
		usable = append(usable, netip.PrefixFrom(a, n.Addresses.Bits()))
	}
	each := len(usable) / nodes
	if each == 0 {
		return nil, fmt.Errorf("from %s there are %d addresses to the end of that prefix: %d nodes need one each, and another one for each further network that is measured at the same time", n.Addresses, len(usable), nodes)
	}
	for w := range each {
		var wire []netip.Prefix
		for i := range nodes {
			wire = append(wire, usable[i*each+w])
		}
		all = append(all, wire)
	}
	return all, nil
}

// over says in words what a node has of its machine's cards.
func (n NIC) over(all []server.CardReport) string {
	cards, it := "the card ", "it"
	if len(all) > 1 {
		cards, it = "the cards ", "each"
	}
	for i, c := range all {
		if i > 0 {
			cards += " and "
		}
		cards += About(c)
	}
	text := "macvlan devices over " + cards
	switch n.Mode {
	case server.IPVlan:
		text = "ipvlan devices over " + cards
	case server.Take:
		text = "to itself " + cards + ", with macvlan devices over " + it
	case server.VF:
		text = fmt.Sprintf("to itself the virtual function %d of %s, with ipvlan devices over it", n.Function, cards)
	}
	if n.Addresses.IsValid() {
		text += fmt.Sprintf(", with addresses from %s", n.Addresses)
	}
	return text
}

// About says in words what a card is.
func About(c server.CardReport) string {
	text := c.Name + " ("
	if c.Driver != "" {
		text += c.Driver + ", "
	}
	if c.Bond != "" {
		text += c.Bond + ", "
	}
	if c.Speed > 0 {
		text += unit.BitsPerSecond(c.Speed).String() + ", "
	}
	if c.Queues > 1 {
		text += fmt.Sprintf("%d queues, ", c.Queues)
	}
	if c.Interrupts != "" {
		text += "interrupts on CPU " + c.Interrupts + ", "
	}
	if len(c.Without) > 0 {
		text += "without " + strings.Join(c.Without, " ") + ", "
	}
	if c.NUMA != "" {
		text += "NUMA node " + c.NUMA + ", "
	}
	return text + fmt.Sprintf("MTU %d)", c.MTU)
}

// ways finds out how large packets can be between any two nodes, over the cards that they were given: on a testbed of its own, with the
// largest MTU that the cards take. Why that is not known is said in each way.
func (s *Servers) ways(ctx context.Context) (all []result.Way) {
	for i := range s.options.Machines {
		for k := range i {
			all = append(all, result.Way{Between: s.options.Machines[k].String(), And: s.options.Machines[i].String()})
		}
	}
	if len(all) == 0 {
		return nil
	}
	bed, err := s.widest(ctx)
	if err != nil {
		for w := range all {
			all[w].Why = err.Error()
		}
		return all
	}
	defer func() { _ = bed.Close() }() // what is lost there shows when networks are built
	pods := bed.Pods()
	var group sync.WaitGroup
	for from := range pods { // one at a time from each
		group.Go(func() {
			for to := from + 1; to < len(pods); to++ {
				way := &all[to*(to-1)/2+from]
				found, err := bed.LargestPacket(ctx, pods[from], pods[to])
				way.MTU, way.Device = found.Way, found.Device
				if err != nil {
					way.Why = err.Error()
				}
			}
		})
	}
	group.Wait()
	return all
}

// widest opens a testbed of the network host, with the largest MTU that the nodes' cards take.
func (s *Servers) widest(ctx context.Context) (*joined.Testbed, error) {
	family := result.IPv4
	if s.options.NIC.Addresses.Addr().Is6() {
		family = result.IPv6
	}
	least := s.leastMTU()
	sizes := []unit.Bytes{least}
	if s.options.NIC.Mode == server.Take && least < server.Jumbo {
		sizes = []unit.Bytes{server.Jumbo, least} // the first where the cards could be given it
	}
	var failed error
	for _, size := range sizes {
		bed, err := s.Driver.Open(ctx, testbed.Spec{Nodes: len(s.options.Machines), PodsPerNode: 1, Family: family, Network: "host", Link: testbed.Link{MTU: size}})
		if err == nil {
			return bed.(*joined.Testbed), nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

// wayNotesMost is how many ways are named one by one.
const wayNotesMost = 4

// wayNotes say how large packets can be between nodes: in one line what holds for most, and which are others.
func wayNotes(ways []result.Way) (notes []string) {
	count := map[result.Way]int{}
	var usual result.Way
	for _, w := range ways {
		same := result.Way{MTU: w.MTU, Device: w.Device, Why: w.Why}
		if count[same]++; count[same] > count[usual] {
			usual = same
		}
	}
	others := slices.DeleteFunc(slices.Clone(ways), func(w result.Way) bool {
		return w.MTU == usual.MTU && w.Device == usual.Device && w.Why == usual.Why
	})
	if len(ways) > 0 {
		notes = append(notes, wayNote("the servers", usual))
	}
	for i, w := range others {
		if i == wayNotesMost {
			return append(notes, fmt.Sprintf("%d more ways between servers differ, in result.json", len(others)-i))
		}
		notes = append(notes, wayNote(w.Between+" and "+w.And, w))
	}
	return notes
}

func wayNote(between string, w result.Way) string {
	switch {
	case w.Why != "":
		return fmt.Sprintf("how large packets can be between %s is not known: %s", between, w.Why)
	case w.MTU < w.Device:
		return fmt.Sprintf("between %s packets of up to %d bytes arrive, though the cards take %d", between, w.MTU, w.Device)
	}
	return fmt.Sprintf("between %s packets of %d bytes arrive, as large as the cards take", between, w.MTU)
}

// wayFindings are the ways on which packets get lost that the servers' own cards take.
func (s *Servers) wayFindings(ways []result.Way) (all []result.Finding) {
	own := map[string]int{}
	for _, l := range s.links {
		own[l.name] = l.report.Card.MTU
	}
	for _, w := range ways {
		if card := min(own[w.Between], own[w.And]); w.MTU > 0 && w.MTU < card {
			says, fix := Lost(w.MTU, card)
			all = append(all, result.Finding{Topic: w.Between + " to " + w.And, Says: says, Fix: fix})
		}
	}
	return all
}

// Lost says that packets larger than a way carries get lost, though the card at its beginning takes them, and what to do.
func Lost(way, card int) (says, fix string) {
	return testbed.Vanishing(way, card, ""),
		fmt.Sprintf("let the cards and switches on the way carry packets of %d bytes, or set the card's MTU to %d", card, way)
}
