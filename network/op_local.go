package network

import (
	"fmt"
	"net/netip"
)

// LocalRoute has a namespace take an address that no device has for its own.
type LocalRoute struct {
	In Space
	To netip.Addr
	// From is what packets to the address come from, unless their sender says otherwise.
	From netip.Addr
}

func (LocalRoute) isOp() {}

// String renders the step.
func (o LocalRoute) String() string {
	return fmt.Sprintf("%s: route local %s from %s", o.In, o.To, o.From)
}
