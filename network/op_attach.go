package network

import (
	"fmt"
	"net/netip"
	"strings"
)

// Attach has a pod attached to its node by plugins of the Container Network Interface (CNI): ADD when the network is built,
// then CHECK, and DEL before it is torn down.
type Attach struct {
	// Device is the one that the plugins are to make in the pod.
	Device
	Role Role
	// Node is where the plugins run.
	Node Space
	// File is where the list of plugins was read, and List the list with the node's values filled in.
	File, List string
	// Sum is the SHA-256 sum of the file, in hexadecimal digits.
	Sum string
	// Plugins are the types of the plugins, in their order, those that give addresses among them.
	Plugins []string
	// Address is the one that the plugins are asked for, with the length of the prefix of the node's pods. They may give
	// another, unless pods outlive the network.
	Address netip.Prefix
	// MAC and Ports are offered to plugins whose capabilities say that they take them ("mac", "portMappings").
	MAC                 MAC
	FirstPort, LastPort uint16
}

func (Attach) isOp() {}

// String renders the step.
func (o Attach) String() string {
	return fmt.Sprintf("attach %s (%s) to %s by the plugins %s, asking for %s", o.Device, o.Role, o.Node, strings.Join(o.Plugins, ", "), o.Address)
}
