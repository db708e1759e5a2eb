package network

import (
	"fmt"
	"strings"

	"netdelta/result"
)

// ServiceMap resolves virtual addresses by an nftables table in the namespace of a client: one look into a map leads to the
// chain of the service, which translates the destination. Ports stay.
type ServiceMap struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

// IPVS resolves virtual addresses in the namespace of a client by the kernel's load balancer, with address translation: two
// services for each address, of TCP and UDP, each for all ports. Ports stay.
type IPVS struct {
	In       Space
	Family   result.Family
	Services []VirtualAddress
}

func (ServiceMap) isOp() {}
func (IPVS) isOp()       {}

// String is the address and what stands behind it.
func (v VirtualAddress) String() string { return v.Virtual.String() + " to " + v.Backend.String() }

// String renders the step. Of a long table it shows the ends.
func (o ServiceMap) String() string {
	return fmt.Sprintf("%s: nftables map of %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}

// String renders the step. Of a long table it shows the ends.
func (o IPVS) String() string {
	return fmt.Sprintf("%s: IPVS with %d services\n  %s", o.In, len(o.Services), strings.Join(ends(o.Services), "\n  "))
}
