// Package plugin calls plugins of the Container Network Interface (CNI) the way a container runtime does: ADD, CHECK and DEL,
// as the specification says, with the namespace of a node of the lab as the host and a pod's as the container.
//
// A plugin runs in the node's network namespace and in a mount namespace of its own, where the folders in which plugins keep
// state (/run and /var/lib/cni) are private to the node, and /sys shows the node's devices. So nothing that a plugin writes
// there reaches the machine, and no two nodes share it.
package plugin
