package servers

import (
	"fmt"
	"strings"

	"netdelta/testbed/servers/server"
	"netdelta/unit"
)

// NIC says how each node gets its cards.
type NIC struct {
	Mode string // server.Macvlan or server.Take
	Card string // "" is the card by which the machine is reached
}

// ParseNIC reads "macvlan:CARD", "take:CARD", or macvlan without a card, which "" is too.
func ParseNIC(text string) (NIC, error) {
	mode, card, _ := strings.Cut(text, ":")
	switch {
	case mode == "" && card == "", mode == server.Macvlan:
		return NIC{server.Macvlan, card}, nil
	case mode == server.Take && card != "":
		return NIC{server.Take, card}, nil
	}
	return NIC{}, fmt.Errorf("--nic %q: it takes macvlan, macvlan:CARD (devices over a card that the server keeps) or take:CARD (a spare card)", text)
}

// over says in words what a node has of its machine's card.
func (n NIC) over(c server.CardReport) string {
	if n.Mode == server.Take {
		return "to itself the card " + About(c) + ", with macvlan devices over it"
	}
	return "macvlan devices over the card " + About(c)
}

// About says in words what a card is.
func About(c server.CardReport) string {
	text := c.Name + " ("
	if c.Driver != "" {
		text += c.Driver + ", "
	}
	if c.Speed > 0 {
		text += unit.BitsPerSecond(c.Speed).String() + ", "
	}
	return text + fmt.Sprintf("MTU %d)", c.MTU)
}
