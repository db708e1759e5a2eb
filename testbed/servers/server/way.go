package server

import (
	"net/netip"

	"netdelta/testbed/nsmonitor"
)

// Way is what a server found of the way to another one.
type Way struct {
	To string `json:"to"`
	// MTU is the size of the largest packets that arrived of those that the way's first card takes, in one piece; 0 where the other end
	// answered none.
	MTU int `json:"mtu"`
	// Card is the MTU of that card.
	Card int    `json:"card"`
	Why  string `json:"why,omitempty"`
}

// ways finds out how large packets can be that get to the peers.
func (o Order) ways() (all []Way) {
	for _, to := range o.Peers {
		w := Way{To: to}
		at, err := netip.ParseAddr(w.To)
		if err == nil {
			w.MTU, w.Card, err = nsmonitor.LargestPacket(at)
		}
		if err != nil {
			w.Why = err.Error()
		}
		all = append(all, w)
	}
	return all
}
