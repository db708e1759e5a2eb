package servers

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"netdelta/network"
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
